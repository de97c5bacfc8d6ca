"""From a request's body to a Submission: every field, what is refused, and files that try to be more."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from hpcagent_bench import config, results_db
from hpcagent_bench.cluster import deliveries, requests
from hpcagent_bench.cluster.identity import ADHOC, Caller
from hpcagent_bench.cluster.refusals import Refused
from hpcagent_bench.cluster.requests import Place, Request

KERNEL = "tsvc_2_s311"
BODY = {"kernel": KERNEL, "language": "c", "rank": 0, "source": "int x;"}
GB = 2**30


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "shared").mkdir()
    settings = config.Judge()
    settings.service.input_mode = "any"
    return Place(settings, 0, tmp_path / "shared", tmp_path / "work")


def read(place: Place, caller: Caller = ADHOC, **more: Any) -> Request:
    return requests.read({**BODY, **more}, caller, place)


def refused(place: Place, caller: Caller = ADHOC, **more: Any) -> str:
    with pytest.raises(Refused) as caught:
        read(place, caller, **more)
    assert caught.value.code == 400
    assert "\n" not in caught.value.body["error"]
    return str(caught.value.body["error"])


def test_every_field_reaches_the_submission(place: Place) -> None:
    wanted = read(
        place,
        build=["-DN=3", "-O2", "-Iinclude", "-lm"],
        libraries=["pthread"],
        compiler="gcc",
        workspace_bytes=4096,
        optimizer="me",
        tokens=7,
        request_id="a-1",
    )
    found = wanted.submission
    assert found.build == ("-DN=3", "-O2", "-Iinclude", "-lm", "-lpthread")
    assert (found.libraries, found.family, found.workspace_bytes) == (("pthread",), "gcc", 4096)
    assert (wanted.optimizer, wanted.tokens, wanted.request_id) == ("me", 7, "a-1")
    assert wanted.ignored == ("-O2",)


@pytest.mark.parametrize(
    ("mode", "language", "field", "taken"),
    [
        ("source", "c", "source", True),
        ("source", "python", "source", False),
        ("source", "c", "library", False),
        ("py-binding", "python", "source", True),
        ("py-binding", "c", "source", False),
        ("library", "c", "source", False),
        ("any", "python", "source", True),
        ("any", "fortran", "source", True),
        ("any", "python", "library", False),
    ],
)
def test_input_mode_says_what_is_taken(
    place: Place, mode: str, language: str, field: str, taken: bool
) -> None:
    place.settings.service.input_mode = mode
    body = {"source": None, field: "x = 1" if field == "source" else "x.so", "language": language}
    if taken:
        assert read(place, **body).submission.language == language
    else:
        refused(place, **body)


@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast", "-std=c99", "-std=gnu++23"])
def test_flags_that_change_every_build_are_refused_by_name(place: Place, flag: str) -> None:
    assert flag in refused(place, build=["-DX", flag])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"build": ["-lcuda"]}, "-lcuda"),
        ({"libraries": ["cuda"]}, "'cuda' is not in the catalog"),
        ({"libraries": ["m -Wl,x"]}, "catalog"),
        ({"libraries": "m"}, "list of names"),
        ({"build": [3]}, "list of strings"),
        ({"build": ["-DA\0B"]}, "NUL"),
        ({"build": ["-DX"] * 1000}, "list of strings"),
        ({"compiler": "nvhpc"}, "families here: gcc"),
        ({"compiler": 3}, "compiler family"),
        ({"compiler": "gcc", "language": "python"}, "not compiled"),
        ({"device_source": "x"}, "device_source"),
        ({"device_source_file": "x"}, "device_source_file"),
        ({"distribution": {"grid": [2]}}, "distribution"),
        ({"sparse_config": "csr"}, "sparse_config"),
        ({"request_id": "a b"}, "request_id"),
        ({"request_id": "x" * 65}, "request_id"),
        ({"tokens": -1}, "tokens"),
        ({"tokens": True}, "tokens"),
        ({"optimizer": 5}, "optimizer"),
        ({"workspace_bytes": 1.5}, "workspace_bytes"),
        ({"workspace_bytes": True}, "workspace_bytes"),
        ({"workspace_bytes": "N"}, "names here: LEN_1D"),
        ({"workspace_bytes": "LEN_1D ** 2"}, "allowed: + - * // %"),
        ({"workspace_bytes": "__import__('os')"}, "workspace_bytes"),
        ({"workspace_bytes": "LEN_1D * LEN_1D * LEN_1D"}, "workspace_bytes"),
        ({"workspace_bytes": "0 - LEN_1D"}, "workspace_bytes"),
        ({"workspace_bytes": "LEN_1D // 0"}, "divides by zero"),
        ({"workspace_bytes": "(" * 200}, "workspace_bytes"),
        ({"workspace_bytes": "-" * 199 + "1"}, "workspace_bytes"),
        ({"workspace_bytes": "1\0"}, "workspace_bytes"),
        ({"workspace_bytes": "9" * 201}, "workspace_bytes"),
    ],
)
def test_wrong_field_is_refused_in_one_line(place: Place, fields: dict[str, Any], words: str) -> None:
    assert words in refused(place, **fields)


def test_a_workspace_grows_with_the_sizes_and_stays_within_the_memory(place: Place) -> None:
    found = read(place, workspace_bytes="8*LEN_1D + 256").submission
    assert found.workspace_for({"LEN_1D": 100}, GB) == 1056
    assert found.workspace_for({"LEN_1D": GB}, GB) == GB
    tricky = read(place, workspace_bytes="8000 // (LEN_1D - 1)").submission
    assert tricky.workspace_for({"LEN_1D": 1}, GB) == 0


def with_source(place: Place, name: str = f"{KERNEL}.c", text: str = "int y;") -> Path:
    assert place.shared is not None
    path = place.shared / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", [f"{KERNEL}.c", f"/shared/{KERNEL}.c", f"deep/er/{KERNEL}.c"])
def test_a_source_file_is_read_where_it_lies(place: Place, name: str) -> None:
    with_source(place, name.removeprefix("/shared/"))
    found = read(place, source=None, source_file=name).submission
    assert (found.source, found.source_mode) == ("int y;", "source_file")


@pytest.mark.parametrize("name", [f"{KERNEL}.cc", f"{KERNEL}.C", "x.c", f"{KERNEL}.c.txt", f"{KERNEL}.cpp"])
def test_a_source_file_has_the_one_right_name(place: Place, name: str) -> None:
    with_source(place, name)
    assert f"must be called {KERNEL}.c" in refused(place, source=None, source_file=name)


def hostile(folder: Path, kind: str) -> None:
    path = folder / f"{KERNEL}.c"
    secret = folder.parent / "secret.c"
    secret.write_text("secret")
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket folder":
        path.mkdir()
    elif kind == "link out":
        path.symlink_to(secret)
    elif kind == "link to a device":
        path.symlink_to("/dev/zero")
    elif kind == "link to itself":
        path.symlink_to(path)
    elif kind == "too large":
        path.write_bytes(b" " * (9 << 20))
    elif kind == "empty":
        path.touch()
    elif kind == "not text":
        path.write_bytes(b"\xff\xfe\x00")
    elif kind == "sparse":
        with path.open("wb") as handle:
            handle.truncate(1 << 40)


@pytest.mark.parametrize(
    "kind",
    [
        "fifo",
        "socket folder",
        "link out",
        "link to a device",
        "link to itself",
        "too large",
        "empty",
        "not text",
        "sparse",
        "missing",
    ],
)
def test_a_hostile_source_file_is_refused_at_once(place: Place, kind: str) -> None:
    assert place.shared is not None
    hostile(place.shared, kind)
    assert "secret" not in refused(place, source=None, source_file=f"{KERNEL}.c").replace("secret.c", "")


def test_a_link_inside_the_folder_is_followed(place: Place) -> None:
    assert place.shared is not None
    with_source(place, "versions/3.c")
    (place.shared / f"{KERNEL}.c").symlink_to("versions/3.c")
    assert read(place, source=None, source_file=f"{KERNEL}.c").submission.source == "int y;"


def test_a_file_swapped_for_a_link_between_check_and_opening_is_never_followed(place: Place) -> None:
    """Swaps go on while hundreds of requests read: each gets the file or a refusal, none the secret."""
    assert place.shared is not None
    path = with_source(place)
    secret = place.shared.parent / "secret.c"
    secret.write_text("the secret")
    stop = threading.Event()

    def swap() -> None:
        side = path.with_suffix(".side")
        while not stop.is_set():
            side.symlink_to(secret)
            side.replace(path)
            side.write_text("int y;")
            side.replace(path)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen = set()
        for _ in range(400):
            try:
                seen.add(read(place, source=None, source_file=f"{KERNEL}.c").submission.source)
            except Refused:
                seen.add("refused")
    finally:
        stop.set()
        thread.join()
    assert seen <= {"int y;", "refused"}


def test_nobody_hands_in_what_lies_in_another_agents_folder(place: Place) -> None:
    assert place.shared is not None
    episode = results_db.Episode("s", 7, "s.n0.p0.w0", kernel=KERNEL)
    caller = Caller(results_db.Setup("s"), episode, KERNEL, "c", "multi")
    lines = [{"folder": "agent-0", "episode_id": "s.n0.p0.w0"}, {"folder": "agent-1", "episode_id": "other"}]
    ledger = "\n".join(json.dumps(line) for line in lines)
    (place.shared.parent / deliveries.FOLDERS).write_text(ledger + "\n{cut")
    for folder in ("agent-0", "agent-1", "agent-2", "tasks"):
        with_source(place, f"{folder}/{KERNEL}.c")
    for folder in ("agent-0", "tasks"):
        assert read(place, caller, source=None, source_file=f"{folder}/{KERNEL}.c").submission.source
    for folder in ("agent-1", "agent-2", "agent-0/../agent-1"):
        told = refused(place, caller, source=None, source_file=f"{folder}/{KERNEL}.c")
        assert "another agent's folder" in told


@pytest.fixture
def library(place: Place) -> Path:
    assert place.shared is not None
    source, out = place.shared / "x.c", place.shared / "x.so"
    source.write_text("int answer(void) { return 42; }\n")
    gcc = shutil.which("gcc")
    assert gcc
    subprocess.run([gcc, "-shared", "-fPIC", "-o", str(out), str(source)], check=True)
    return out


def test_a_library_is_copied_at_once_and_discarded(place: Place, library: Path) -> None:
    body = library.read_bytes()
    wanted = read(place, source=None, library="/shared/x.so")
    copy = wanted.submission.library
    assert copy is not None
    library.write_bytes(b"something else")
    assert copy.is_relative_to(place.work)
    assert copy.read_bytes() == body
    assert (wanted.submission.source, wanted.submission.source_mode) == ("", "library")
    wanted.discard()
    assert list(copy.parent.iterdir()) == []


def test_what_is_no_library_is_refused_and_leaves_nothing(place: Place, library: Path) -> None:
    place.settings.service.max_library_mb = 1
    assert place.shared is not None
    (place.shared / "text.so").write_text("not a library")
    (place.shared / "big.so").write_bytes(b"\x7fELF" + b"\0" * (2 << 20))
    for name in ("text.so", "big.so", "x.c", "none.so", "../work/x.so", "/lib/x86_64-linux-gnu/libc.so"):
        refused(place, source=None, library=name)
    assert not (place.work / deliveries.LIBRARIES).exists()
    refused(place, source=None, library="x.so", build=["-lcuda"])
    assert not (place.work / deliveries.LIBRARIES).exists()


def test_a_judge_without_a_shared_folder_takes_no_files(place: Place, tmp_path: Path) -> None:
    bare = Place(place.settings, 0, None, tmp_path)
    assert "no shared" in refused(bare, source=None, source_file=f"{KERNEL}.c").replace(
        "has none", "no shared"
    )
