"""Planted strings in seeds, references, databases and others' files: no reply, log or file shows one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from attack_api import CANARY, KERNEL, PLANTED, World, leaked, source

from hpcagent_bench import paths, seal

EMBED = """__asm__(".section .rodata\\nstolen: .incbin \\"{path}\\"\\n.byte 0\\n.previous");
extern const char stolen[];"""
SAY = 'for (int fd = 1; fd < 64; fd++) dprintf(fd, "%s", stolen); fprintf(stderr, "%s", stolen);'


@pytest.fixture
def planted(world: World) -> World:
    """The judge with another worker's recorded source, workspace and notes, each with the planted string."""
    other = world.worker()
    world.ask("/score", other, source=f"#error {CANARY}\n", optimizer=CANARY)
    assert world.grades_an_honest_one()  # now the reference is built
    workspace = world.run_dir / "agents" / "node-0" / "problem-9-worker-9"
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / "solution.c").write_text(f"/* {CANARY} */")
    for library in (world.cache / "reference").rglob(f"{KERNEL}.so"):
        body = library.read_bytes()
        if CANARY.encode() not in body:  # bytes after the last section change nothing of a library
            side = library.with_suffix(".planted")
            side.write_bytes(body + CANARY.encode())
            side.replace(library)
    return world


def hiding(world: World) -> list[Path]:
    """Where the planted strings lie."""
    return [
        world.run_dir / "seeds.json",
        world.judge.shard,
        world.run_dir / "agents" / "node-0" / "problem-9-worker-9" / "solution.c",
        world.cache / "reference",
    ]


def test_no_reply_to_a_thief_shows_one(planted: World) -> None:
    token, replies = planted.worker(), []
    for path in hiding(planted):
        attempts = [
            {"source": source(before=f'#include "{path}"')},
            {"source": source(before=f'#line 1 "{path}"\nint f(void) {{ return undeclared; }}')},
            {"source": source(SAY, EMBED.format(path=path))},
            {"source": source(), "build": [f"-I{path.parent}", f"-L{path.parent}", f"-DX={path}"]},
            {"source_file": str(path)},
            {"library": str(path)},
        ]
        replies += [planted.ask("/score", token, **attempt) for attempt in attempts]
    replies += [planted.ask("/submit", token, source=source(), language="cpp", compiler="llvm")]
    for route in ("/health", "/openapi.json", f"/baseline/{KERNEL}?rank=0", "/build/c?rank=0"):
        header = {"Authorization": f"Bearer {token}"}
        replies.append(httpx.get(planted.url + route, headers=header, timeout=120))
    told = [reply.text + str(reply.headers) for reply in replies]
    assert [text for text in told if leaked(text)] == []


def test_no_failure_tells_a_seed_or_an_expected_value(planted: World) -> None:
    """A wrong answer is told by name, count and its own value alone."""
    wrong = source("for (int64_t i = 0; i < n; i++) a[i] = 1234.5;")
    for route in ("/score", "/submit"):
        text = planted.ask(route, planted.worker(), source=wrong).text
        assert not leaked(text)
        assert "expected" not in text


def test_the_judges_log_and_progress_show_none(planted: World) -> None:
    planted.grades_an_honest_one()
    for path in (planted.log, *(planted.run_dir / "judge" / "rank-0").glob("*.json")):
        assert not leaked(path.read_bytes()), path


def test_no_file_an_agent_sees_shows_one(planted: World) -> None:
    assert [path for path in planted.shared.rglob("*") if path.is_file() and leaked(path.read_bytes())] == []


SEARCH = r"""
cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\0' '\n'
find / -xdev -type f -print0 2>/dev/null | xargs -0 -r cat 2>/dev/null
for top in /workspace /tmp /run /dev/shm /etc /var /home /root /opt /srv /mnt; do
  find $top -xdev -type f -size -4M -print0 2>/dev/null | xargs -0 -r cat 2>/dev/null
done
find / \( -path /usr -o -path /proc -o -path "*/site-packages/*/*" \) -prune -o -name "*.db" \
  -o -name "seeds*.json" -o -name "hpcagent_bench*" -o -name "*_numpy.py" \
  -o -name ".git" -o -name fused-tokens -o -name "secret*" 2>/dev/null
git -C / log 2>&1; env
"""


def test_an_agents_shell_finds_none(planted: World, tmp_path: Path) -> None:
    """From the agent's seat: everything readable outside the toolchain, and every suspicious name."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "own.txt").write_text("the agent's own notes")
    socket = tmp_path / "judge.sock"
    socket.touch()
    argv = seal.agent(workdir=work, env={}, judge_socket=socket)
    done = subprocess.run([*argv, "/bin/sh", "-c", SEARCH], capture_output=True, timeout=300, check=False)
    found = done.stdout + done.stderr
    assert b"the agent's own notes" in found
    assert not leaked(found)
    for token in planted.run_dir.glob("fused-tokens/*"):
        assert token.name.encode() not in found
    named = [line for line in done.stdout.decode(errors="replace").splitlines() if line.startswith("/")]
    assert [line for line in named if str(paths.project_root()) in line and ".venv" not in line] == []


def test_nothing_of_this_program_can_be_imported_by_an_agent(tmp_path: Path) -> None:
    code = "import hpcagent_bench.harness.seeds as s; print(s.SEEDS_FILE.read_text())"
    argv = seal.agent(workdir=tmp_path, env={}, judge_socket=tmp_path)
    done = subprocess.run([*argv, sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "seeds" in done.stderr or "hpcagent_bench" in done.stderr


def test_twin_the_planted_strings_are_where_they_were_planted(planted: World) -> None:
    """Without this the other tests would pass on a judge that has no secrets."""
    assert leaked((planted.run_dir / "seeds.json").read_bytes()) == list(PLANTED)
    assert leaked(planted.judge.shard.read_bytes()) != []
    assert any(leaked(path.read_bytes()) for path in (planted.cache / "reference").rglob("*.so"))
    assert planted.grades_an_honest_one()
