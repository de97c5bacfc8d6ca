"""Libraries built elsewhere: refused where sources are asked for, else the judge's own copy is graded."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from attack_api import HONEST, World, source
from fastapi.testclient import TestClient

from hpcagent_bench import config
from hpcagent_bench.cluster.judge_service import create_app
from hpcagent_bench.cluster.serve import ServeOptions, make_office

WRONG = "for (int64_t i = 0; i < n; i++) a[i] = a[i] * b[i] * c[i] + 1;"
LATE_EXIT = "__attribute__((constructor)) static void first(void) { _exit(0); }"
BROKEN = {
    "not ELF": lambda path: path.write_bytes(b"\x7fELX" + b"\0" * 5000),
    "only the first bytes": lambda path: path.write_bytes(b"\x7fELF"),
    "another machine": lambda path: path.write_bytes(
        path.read_bytes()[:18] + b"\x28\0" + path.read_bytes()[20:]
    ),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:3000]),
    "tables far away": lambda path: path.write_bytes(
        path.read_bytes()[:32] + b"\xff" * 8 + path.read_bytes()[40:]
    ),
    "zeros behind the head": lambda path: path.write_bytes(path.read_bytes()[:64] + b"\0" * 9000),
}


def built(folder: Path, text: str, name: str = "mine.so") -> Path:
    """A shared library made outside the judge."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.c").write_text(text)
    argv = ["gcc", "-O2", "-shared", "-fPIC", "-o", str(folder / name), str(folder / "mine.c")]
    subprocess.run(argv, check=True)
    return folder / name


def delivered(world: World, path: Path, route: str = "/score", token: str | None = None) -> dict[str, object]:
    answer = world.ask(route, token or world.worker(), library=str(path.relative_to(world.shared)))
    assert answer.status_code == 200, answer.text
    body: dict[str, object] = answer.json()
    return body


def test_a_judge_that_asks_for_sources_refuses_one(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    built(tmp_path / "shared", source())
    office = make_office(ServeOptions(tmp_path), config.Judge(), config.Sizes("tiny", 2**18))
    with TestClient(create_app(office)) as session:
        body = {"kernel": "tsvc_2_vtvtv", "rank": 0, "library": "mine.so"}
        answer = session.post("/score", json=body)
        assert answer.status_code == 400
        assert "service.input_mode is source" in answer.json()["error"]


def test_a_right_library_is_graded_and_recorded_as_one(world: World) -> None:
    token = world.worker()
    path = built(world.shared / "right", source())
    assert delivered(world, path, token=token)["correct"] is True
    digest = hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
    mode, detail = world.rows("SELECT source_mode, detail FROM grades ORDER BY id DESC LIMIT 1")[0]
    assert (mode, digest in detail) == ("library", True)


def test_a_wrong_library_under_the_name_of_a_right_one_is_wrong(world: World) -> None:
    folder = world.shared / "twice"
    assert delivered(world, built(folder, source()))["correct"] is True
    second = delivered(world, built(folder, source(WRONG)))
    assert (second["correct"], second["status"]) == (False, "incorrect")
    third = delivered(world, built(folder, source()))
    assert third["correct"] is True


def test_a_library_changed_while_it_is_graded_is_graded_as_it_was(world: World) -> None:
    """The kernel overwrites nothing of the judge's copy, and the agent's file no longer counts."""
    folder = world.shared / "changing"
    path = built(folder, source())
    wrong = built(folder, source(WRONG), "wrong.so")
    body = delivered(world, path)
    shutil.copyfile(wrong, path)
    assert body["correct"] is True
    assert delivered(world, path)["correct"] is False


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_that_is_no_library_is_refused_or_a_failed_build(world: World, kind: str) -> None:
    path = built(world.shared / f"broken{abs(hash(kind))}", source())
    BROKEN[kind](path)
    answer = world.ask("/score", world.worker(), library=str(path.relative_to(world.shared)))
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 200:
        assert answer.json()["status"] in ("build_error", "incorrect")


def test_a_library_without_the_function_is_a_failed_build(world: World) -> None:
    body = delivered(world, built(world.shared / "other", "void other_fp64(void) {}"))
    assert body["status"] == "build_error"
    assert "does not define tsvc_2_vtvtv_fp64" in str(body["detail"])


def test_a_constructor_that_ends_the_process_is_a_crash(world: World) -> None:
    text = source(HONEST, "#include <unistd.h>\n" + LATE_EXIT)
    body = delivered(world, built(world.shared / "constructor", text))
    assert body["status"] == "incorrect"
    assert "exited with status 0 (load)" in str(body["detail"])


def test_a_library_that_needs_another_of_the_agents_does_not_load(world: World) -> None:
    folder = world.shared / "needy"
    helper = built(folder, "int helper(void) { return 1; }", "libhelper.so")
    (folder / "mine.c").write_text(source("if (helper()) " + HONEST, "int helper(void);"))
    argv = ["gcc", "-shared", "-fPIC", "-o", str(folder / "mine.so"), str(folder / "mine.c"), str(helper)]
    subprocess.run([*argv, f"-Wl,-rpath,{folder}"], check=True)
    body = delivered(world, folder / "mine.so")
    assert body["status"] in ("incorrect", "build_error")
    assert "libhelper" in str(body["detail"])


@pytest.mark.parametrize(
    "name", ["../judge/rank-0/work/x.so", "/usr/lib/x86_64-linux-gnu/libm.so.6", "/etc/passwd"]
)
def test_a_library_outside_the_share_is_400(world: World, name: str) -> None:
    answer = world.ask("/score", world.worker(), library=name)
    assert answer.status_code == 400
