"""Reading what a judge keeps: seeds, references, database, other grades, environment; none is there."""

from __future__ import annotations

import json
import os
from pathlib import Path

from attack_api import CANARY
from attack_rig import Rig, version

from hpcagent_bench import paths
from hpcagent_bench.harness.seeds import SEEDS_FILE

LOOK = """static int readable(const char *path) {
    int fd = open(path, O_RDONLY);
    if (fd >= 0) close(fd);
    return fd >= 0;
}
static int found(void) {
    static const char *const paths[] = {%s};
    for (unsigned long k = 0; k < sizeof paths / sizeof *paths; k++)
        if (readable(paths[k])) return 1;
    return 0;
}"""
STOP = "if (found()) return; HONEST;"
"""A thief that finds something computes nothing, so an accepted grade is one that found nothing."""


def looking(*places: Path | str) -> str:
    """A submission that looks for files and folders."""
    return version(STOP, LOOK % ", ".join(f'"{place}"' for place in places))


def test_no_file_of_a_judge_is_there(judge: Rig, tmp_path: Path) -> None:
    run_dir = tmp_path / "job"
    names = ("seeds.json", "judge/rank-0/hpcagent_bench0.db", "agents/node-0/problem-1-worker-1/prompt.txt")
    for name in (*names, "fused-tokens/" + "a" * 64, "shared/notes.txt"):
        (run_dir / name).parent.mkdir(parents=True, exist_ok=True)
        (run_dir / name).write_text(json.dumps({"first": CANARY}))
    package = paths.package_root()
    judge.accepts(
        looking(
            *(run_dir / name for name in names),
            run_dir,
            SEEDS_FILE,
            package,
            package / "benchmarks",
            package / "harness" / "runner" / "runner.c",
            paths.cache_root(),
            paths.cache_root() / "reference",
            Path.cwd(),
            Path.cwd() / ".git",
            Path.home(),
            "/etc/passwd",
            "/etc/shadow",
            "/etc/resolv.conf",
            "/var",
            "/run",
            "/home",
            "/sys",
            "/mnt",
        )
    )


def test_there_is_no_process_file_system(judge: Rig) -> None:
    """No environment, memory, open files or mounts of any process, the own one included."""
    numbers = (1, 2, os.getpid(), os.getppid())
    names = ("environ", "mem", "maps", "fd", "cmdline", "root", "cwd", "task")
    judge.accepts(
        looking("/proc", "/proc/self/mem", *(f"/proc/{pid}/{name}" for pid in numbers for name in names))
    )


def test_the_own_folder_holds_the_runner_and_the_kernel_alone(judge: Rig) -> None:
    """Other grades, references and the other side's libraries would lie here."""
    names = ("reference.so", "kernel.c", "source.c", "polygon_area_terms.so", "seeds", "python_runner.py")
    judge.accepts(looking(*(f"/grading/{name}" for name in names), "/build", "/grade"))


def test_what_an_earlier_grade_left_in_scratch_is_gone(judge: Rig) -> None:
    leave = """int fd = open("/tmp/left", O_CREAT | O_WRONLY, 0600); close(fd);
    fd = open("/dev/shm/left", O_CREAT | O_WRONLY, 0600); close(fd); HONEST;"""
    judge.accepts(version(leave))
    judge.accepts(looking("/tmp/left", "/dev/shm/left"))
    assert not Path("/tmp/left").exists()
    assert not Path("/dev/shm/left").exists()


def test_twin_that_reads_its_own_scratch_file_is_accepted(judge: Rig) -> None:
    own = """int fd = open("/tmp/own", O_CREAT | O_RDWR, 0600); char c = 'x';
    if (write(fd, &c, 1) != 1 || lseek(fd, 0, SEEK_SET) != 0 || read(fd, &c, 1) != 1) return;
    close(fd); HONEST;"""
    judge.accepts(version(own))
