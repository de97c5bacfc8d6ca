"""A source_file that is none: a link out of the share, a device, a pipe, what is swapped meanwhile."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from attack_api import CANARY, KERNEL, World, leaked, source

NAME = f"{KERNEL}.c"
SECRET = "what a link leads to"


@pytest.fixture
def folder(world: World, request: pytest.FixtureRequest) -> Path:
    """A folder of this test's own in the share."""
    made = world.shared / f"t{abs(hash(request.node.name))}"
    made.mkdir()
    return made


def secret(world: World) -> Path:
    """A file of the judge's own, called like a source."""
    path = world.run_dir / "private" / NAME
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#error {SECRET} {CANARY}\n")
    return path


def link_out(path: Path, world: World) -> None:
    path.symlink_to(secret(world))


def link_up(path: Path, world: World) -> None:
    path.symlink_to(os.path.relpath(secret(world), path.parent))


def link_to_seeds(path: Path, world: World) -> None:
    path.symlink_to(world.run_dir / "seeds.json")


def linked_folder(path: Path, world: World) -> None:
    path.parent.rmdir()
    path.parent.symlink_to(secret(world).parent)


def endless(path: Path, world: World) -> None:
    path.symlink_to("/dev/zero")


def terminal(path: Path, world: World) -> None:
    path.symlink_to("/dev/stdin")


def loop(path: Path, world: World) -> None:
    path.symlink_to(path)


def pipe(path: Path, world: World) -> None:
    os.mkfifo(path)


def directory(path: Path, world: World) -> None:
    path.mkdir()


def process_file(path: Path, world: World) -> None:
    path.symlink_to(f"/proc/{world.judge.process.pid}/environ")


def unreadable_text(path: Path, world: World) -> None:
    path.write_bytes(b"\xff\xfe int x;")


def enormous(path: Path, world: World) -> None:
    with path.open("wb") as sparse:
        sparse.truncate(1 << 40)


KINDS: tuple[Callable[[Path, World], None], ...] = (
    *(link_out, link_up, link_to_seeds, linked_folder, endless, terminal, loop, pipe, directory),
    *(process_file, unreadable_text, enormous),
)


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_what_is_no_source_in_the_share_is_400(
    world: World, folder: Path, make: Callable[[Path, World], None]
) -> None:
    make(folder / NAME, world)
    answer = world.ask("/score", world.worker(), source_file=f"{folder.name}/{NAME}", timeout=30)
    assert answer.status_code == 400
    assert "source_file" in answer.json()["error"]
    assert not leaked(answer.text)


@pytest.mark.parametrize("name", ["..", "../private", "/", "//", "/shared/..", "t/../../private", "\0", "~"])
def test_a_path_out_of_the_share_is_400(world: World, name: str) -> None:
    secret(world)
    answer = world.ask("/score", world.worker(), source_file=f"{name}/{NAME}", timeout=30)
    assert answer.status_code == 400
    assert not leaked(answer.text)


def test_a_link_swapped_between_look_and_use_never_shows_what_it_leads_to(world: World, folder: Path) -> None:
    """The honest file and the link take turns thousands of times; the canary would be in the build log."""
    path, token = folder / NAME, world.worker()
    good, bad, stop = folder / "good", folder / "bad", threading.Event()
    good.write_text("broken on purpose\n")
    bad.symlink_to(secret(world))

    def swap() -> None:
        for which in (good, bad) * 1_000_000:
            if stop.is_set():
                return
            side = folder / "side"
            if which is bad:
                side.symlink_to(secret(world))
            else:
                side.write_text("broken on purpose\n")
            side.replace(path)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        answers = [
            world.ask("/score", token, source_file=f"{folder.name}/{NAME}", timeout=60) for _ in range(15)
        ]
    finally:
        stop.set()
        swapping.join()
    assert {answer.status_code for answer in answers} <= {200, 400}
    assert not any(leaked(answer.text) for answer in answers)
    recorded = world.rows("SELECT text FROM sources")
    assert not any(SECRET in text for (text,) in recorded)


def test_another_agents_folder_is_not_ones_own(world: World) -> None:
    mine, other = world.worker(), world.worker()
    folder = world.shared / "agent-other"
    folder.mkdir()
    (folder / NAME).write_text(f"#error {CANARY}\n")
    listed = world.shared.parent / "agent-folders.jsonl"
    listed.write_text(f'{{"folder": "agent-other", "episode_id": "{world.label(other)}"}}\n')
    answer = world.ask("/score", mine, source_file=f"agent-other/{NAME}")
    assert answer.status_code == 400
    assert not leaked(answer.text)
    (folder / NAME).write_text(source())
    assert world.ask("/score", other, source_file=f"agent-other/{NAME}").json()["correct"] is True


def test_twin_links_within_the_share_and_files_beside_it_are_graded(world: World, folder: Path) -> None:
    (folder / "notes").mkdir()
    (folder / "notes" / "scratch.txt").write_text("left by an honest agent")
    (folder / "real.c").write_text(source())
    (folder / NAME).symlink_to("real.c")
    for name in (f"{folder.name}/{NAME}", f"/shared/{folder.name}/{NAME}"):
        assert world.ask("/score", world.worker(), source_file=name).json()["correct"] is True
