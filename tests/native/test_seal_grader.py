"""What a sealed process can see and do: nothing but its own call."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpcagent_bench import paths, seal
from tests.native.native_kernels import child, draw, scalars

HEADERS = """#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <dirent.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
"""
DENIED = {
    "fork": "fork() < 0",
    "exec": 'execl("/bin/true", "true", (char *)0) < 0',
    "ptrace": "ptrace(PTRACE_TRACEME, 0, 0, 0) < 0",
    "process memory": "syscall(SYS_process_vm_readv, 1, 0, 0, 0, 0, 0) < 0",
    "user namespace": "unshare(CLONE_NEWUSER) < 0",
    "socket": "socket(AF_INET, SOCK_STREAM, 0) < 0",
    "unix socket": "socket(AF_UNIX, SOCK_STREAM, 0) < 0",
    "userfaultfd": "syscall(SYS_userfaultfd, 0) < 0",
    "io_uring": "syscall(SYS_io_uring_setup, 1, 0) < 0",
    "perf": "syscall(SYS_perf_event_open, 0, 0, -1, -1, 0) < 0",
    "keys": 'syscall(SYS_add_key, "user", "k", "v", 1, -3) < 0',
    "time-stamp counter": "prctl(PR_SET_TSC, PR_TSC_SIGSEGV) < 0",
    "a filter of its own": "prctl(PR_SET_SECCOMP, 1) < 0",
    "anonymous shared memory": "mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED",
    "memfd": 'memfd_create("m", 0) < 0',
    "/proc": 'open("/proc/self/status", O_RDONLY) < 0',
    "/sys": 'open("/sys/kernel", O_RDONLY) < 0',
    "/etc/passwd": 'open("/etc/passwd", O_RDONLY) < 0',
    "home": 'open("/root", O_RDONLY) < 0 && open("/home", O_RDONLY) < 0',
    "the project": f'open("{paths.package_root()}", O_RDONLY) < 0',
    "writing to the system": 'open("/usr/made", O_CREAT | O_WRONLY, 0600) < 0',
    "writing to itself": 'open("/grading/kernel.so", O_WRONLY) < 0',
    "a second process": "getpid() == 1 && kill(-1, 0) < 0",
    "core dumps": "({ struct rlimit r; getrlimit(RLIMIT_CORE, &r); r.rlim_max == 0; })",
}


def test_nothing_to_reach() -> None:
    lines = [f"y[{k}] = {check};" for k, check in enumerate(DENIED.values())]
    given = draw()
    with child("\n".join(lines), HEADERS + "#include <signal.h>\n") as running:
        outcome = running.call(given, scalars(), timeout_s=10)
        assert outcome.status == "ok", outcome
        held = running.outputs["y"][: len(DENIED)]
        assert [name for name, ok in zip(DENIED, held, strict=True) if ok != 1] == []
    given.close()


def test_private_scratch_is_there_and_bounded() -> None:
    body = """FILE *f = fopen("/tmp/scratch", "w"); y[0] = f != NULL; signal(SIGXFSZ, SIG_IGN);
    static char block[1 << 20]; size_t n = 0, got;
    while ((got = fwrite(block, 1, sizeof block, f)) == sizeof block && n < 64) n++;
    y[1] = n <= 16;
    f = fopen("/dev/null", "w"); y[2] = f != NULL;
    f = fopen("/dev/urandom", "r"); y[3] = f != NULL;"""
    given = draw()
    with child(body, "#include <signal.h>\n") as running:
        assert running.call(given, scalars(), timeout_s=20).status == "ok"
        assert running.outputs["y"][:4].tolist() == [1, 1, 1, 1]
    given.close()
    assert not Path("/tmp/scratch").exists()


def test_the_environment_is_the_given_one() -> None:
    prefix = seal.grader(env={"ONLY": "this"})
    shown = subprocess.run([*prefix, "/usr/bin/env"], capture_output=True, text=True, check=True).stdout
    assert {line.partition("=")[0] for line in shown.splitlines()} <= {"ONLY", "PWD"}


def test_this_host_can_seal() -> None:
    seal.require_user_namespaces()


def test_own_packages_below_a_bound_folder_are_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site-packages"
    (site / "hpcagent_bench").mkdir(parents=True)
    (site / "hpcagent_bench" / "secret").write_text("seed")
    (site / "numpy").mkdir()
    monkeypatch.setattr(paths, "package_root", lambda: site / "hpcagent_bench")
    prefix = seal.grader(ro=[seal.Bind(tmp_path, tmp_path)], env={})
    command = [*prefix, "/bin/ls", "-R", str(site)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "numpy" in shown
    assert "secret" not in shown


AGENT_LOOK = """
import os, socket, subprocess, sys
import numpy
assert os.getcwd() == "/workspace" == os.environ["HOME"]
open("made", "w").write("x")
assert os.path.exists("/run/judge.sock")
assert not any(os.path.exists(p) for p in sys.argv[1:]), sys.argv[1:]
assert os.getuid() != 0 and len(os.listdir("/proc")) > 0
assert open("/proc/1/environ").read() == ""
assert {i[1] for i in socket.if_nameindex()} == {"lo"}
open("k.c", "w").write("int main(void) { return 0; }")
subprocess.run(["gcc", "k.c", "-o", "k"], check=True)
subprocess.run(["./k"], check=True)
try:
    open(numpy.__file__, "a")
except OSError:
    print("sealed")
"""


def test_an_agent_has_its_workspace_and_nothing_else(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    judge = tmp_path / "judge.sock"
    judge.touch()
    other = tmp_path / "other-agent"
    other.mkdir()
    argv = seal.agent(workdir=work, env={}, judge_socket=judge)
    look = [sys.executable, "-c", AGENT_LOOK, str(other), str(paths.package_root()), "/etc/shadow"]
    environment = {"PATH": "/usr/bin", "JUDGE_SECRET": "token"}
    done = subprocess.run([*argv, *look], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout) == (0, "sealed\n"), done.stderr
    assert (work / "made").exists()


def test_its_descriptors_say_nothing_of_the_judges() -> None:
    """However many files the judge has open: the standard three and the control socket, and those first."""
    body = "for (int fd = 0; fd < 256; fd++) y[fd] = fcntl(fd, F_GETFD) >= 0;"
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(80)]
    given = draw()
    with child(body, "#include <fcntl.h>\n") as running:
        assert running.call(given, scalars(), timeout_s=10).status == "ok"
        assert running.outputs["y"][:256].tolist() == [1] * 4 + [0] * 252
    given.close()
    for descriptor in held:
        os.close(descriptor)
