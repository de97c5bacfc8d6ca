"""One bubblewrap command line for each kind of process that must not see or touch the host.

A *grader* runs a submission's code, a *builder* compiles it, an *agent* works on it. None sees another
process, a network it was not given, or a file it was not bound. Whatever of this program lies below a folder
that is bound for its libraries (an installation under ``/usr``, a virtual environment) is hidden by an empty
folder.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpcagent_bench import paths
from hpcagent_bench.errors import UserError

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
LOADER = ("/etc/ld.so.cache", "/etc/alternatives")
AGENT_ETC = (
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/nsswitch.conf",
)
COMPILERS = ("gcc", "g++", "gfortran", "clang", "clang++")
HIDDEN_PACKAGES = ("hpcagent_bench", "experiments", "slurm", "statistics", "tests")
JUDGE_SOCKET = "/run/judge.sock"
USER = "1000"
SCRATCH_BYTES = 64 << 20
"""Room of a grading child in its /tmp and in its /dev/shm."""
AGENT_SCRATCH_BYTES = 4 << 30
"""The same of an agent, which builds and runs there."""
COMPILER_SCRATCH_BYTES = 1 << 30
"""The same of a compiler, for its intermediate files."""
CLEAN = ("/usr/bin/env", "-i")
"""Starts bubblewrap itself without an environment: inside, /proc/1/environ shows what it was started with."""


@dataclass(frozen=True)
class Bind:
    """A host path shown inside at ``target``, read-only unless ``writable``."""

    source: Path
    target: Path
    writable: bool = False


@functools.lru_cache(maxsize=1)
def bwrap() -> str:
    """bubblewrap's program file; a UserError says how to install it."""
    found = shutil.which("bwrap")
    if not found:
        raise UserError(
            "bubblewrap (bwrap) is not installed", "apt-get install bubblewrap, or judge.grading.seal=false"
        )
    return found


@functools.lru_cache(maxsize=1)
def _is_recent() -> bool:
    """Whether this bubblewrap has ``--disable-userns`` and ``--size`` (0.8 and later)."""
    done = subprocess.run([bwrap(), "--version"], capture_output=True, text=True, check=False)
    version = re.search(r"(\d+)\.(\d+)", done.stdout)
    return bool(version) and (int(version[1]), int(version[2])) >= (0, 8) if version else False


@functools.lru_cache(maxsize=1)
def require_user_namespaces() -> None:
    """Try one empty sandbox; a UserError names the settings to change when the host forbids it."""
    probe = [*grader(env={}), "/bin/true"]
    try:
        done = subprocess.run(probe, capture_output=True, text=True, timeout=20, check=False)
    except subprocess.TimeoutExpired as late:
        raise UserError(
            "bubblewrap did not start within 20 s", "try the command by hand: bwrap --help"
        ) from late
    if done.returncode == 0:
        return
    said = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    raise UserError(
        f"this host cannot seal grading children: {said}",
        "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces=10000, "
        "kernel.apparmor_restrict_unprivileged_userns=0), or set judge.grading.seal=false: no credit then",
    )


def _isolation() -> list[str]:
    """Every namespace of its own, a plain user without capabilities, dying with whoever started it."""
    argv = [bwrap(), "--unshare-user", "--unshare-all", "--die-with-parent", "--new-session"]
    argv += ["--cap-drop", "ALL", "--uid", USER, "--gid", USER, "--hostname", "sandbox"]
    return argv


def _system(roots: Sequence[str], etc: Sequence[str]) -> list[str]:
    """Read-only system folders; a folder that is a link on the host is one inside."""
    argv: list[str] = []
    for name in roots:
        path = Path(name)
        if path.is_symlink():
            argv += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            argv += ["--ro-bind", name, name]
    for name in etc:
        argv += ["--ro-bind-try", name, name]
    return argv


def _hidden() -> set[Path]:
    """Folders of this program, wherever it is installed."""
    root = paths.package_root().parent
    return {root / name for name in HIDDEN_PACKAGES if (root / name).is_dir()}


def _mask(shown: Iterable[Path]) -> list[str]:
    """Empty folders over this program's own where they lie below something shown."""
    argv: list[str] = []
    tops = [path.resolve() for path in shown if path.is_dir()]
    for folder in sorted(_hidden()):
        if any(folder.is_relative_to(top) for top in tops):
            argv += ["--tmpfs", str(folder), "--remount-ro", str(folder)]
    return argv


def _binds(ro: Sequence[Bind], rw: Sequence[Bind]) -> list[str]:
    argv: list[str] = []
    for bind in ro:
        argv += ["--bind" if bind.writable else "--ro-bind", str(bind.source), str(bind.target)]
    for bind in rw:
        argv += ["--bind", str(bind.source), str(bind.target)]
    return argv


def _environment(env: Mapping[str, str]) -> list[str]:
    argv = ["--clearenv"]
    for key in sorted(env):
        argv += ["--setenv", key, env[key]]
    return argv


def _private(*folders: str, room: int | None = None) -> list[str]:
    """Empty folders in memory, of ``room`` bytes each: what is written there counts against no process."""
    size = ["--size", str(room)] if room is not None and _is_recent() else []
    argv: list[str] = []
    for folder in folders:
        argv += [*size, "--tmpfs", folder]
    return argv


def _read_only_rest() -> list[str]:
    """The sandbox's own root and /dev, which lie in memory as well and are writable until told otherwise."""
    return ["--remount-ro", "/", "--remount-ro", "/dev"]


def grader(
    *,
    ro: Sequence[Bind] = (),
    rw: Sequence[Bind] = (),
    env: Mapping[str, str],
    chdir: str = "/tmp",
    info_fd: int | None = None,
    proc: bool = False,
) -> list[str]:
    """Prefix for a process that runs code under grading; the program becomes process 1 of its namespace.

    There is no /proc (but for sanitizers, ``proc``), no /sys and no network; /tmp and /dev/shm are private
    and small. ``info_fd`` receives
    bubblewrap's JSON with ``child-pid``, the process' number on the host.
    """
    argv = [
        *_isolation(),
        *_forbid_nested(),
        "--as-pid-1",
        *_system(SYSTEM, LOADER),
        "--dev",
        "/dev",
        # mapped shared, /dev/zero is memory that no limit counts; a bound device cannot be opened
        *("--ro-bind", "/dev/null", "/dev/zero"),
        *_private("/tmp", "/dev/shm", room=SCRATCH_BYTES),
    ]
    argv += ["--proc", "/proc"] if proc else []
    argv += [*_binds(ro, rw), *_mask([Path("/usr"), *(bind.source for bind in ro)]), *_environment(env)]
    argv += _read_only_rest()
    if info_fd is not None:
        argv += ["--info-fd", str(info_fd)]
    return [*argv, "--chdir", chdir, "--"]


def builder(
    *, ro: Sequence[Bind] = (), rw: Sequence[Bind] = (), env: Mapping[str, str], chdir: str
) -> list[str]:
    """Prefix for a compiler: as ``grader`` with a /proc of its own; the output folder comes in ``rw``."""
    argv = [
        *CLEAN,
        *_isolation(),
        *_forbid_nested(),
        *_system(SYSTEM, LOADER),
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    ]
    argv += [*_private("/tmp", "/dev/shm", room=COMPILER_SCRATCH_BYTES), *_binds(ro, rw)]
    argv += [*_mask([Path("/usr"), *(bind.source for bind in ro)]), *_environment(env)]
    return [*argv, *_read_only_rest(), "--chdir", chdir, "--"]


def _forbid_nested() -> list[str]:
    return ["--disable-userns"] if _is_recent() else []


def interpreter_folders() -> list[Path]:
    """The Python installation and virtual environment in use, where not part of the system folders."""
    named = [Path(sys.base_prefix), Path(sys.prefix)]
    folders = dict.fromkeys([*(path.resolve() for path in named), *named])
    return [folder for folder in folders if not folder.is_relative_to("/usr")]


@functools.lru_cache(maxsize=1)
def toolchain_folders() -> tuple[Path, ...]:
    """Installation prefixes of compilers that lie outside the system folders (modules, local builds).

    A prefix that holds this project or a home folder is left out: it would show too much.
    """
    found: dict[Path, None] = {}
    for name in COMPILERS:
        path = shutil.which(name)
        if path:
            for place in (Path(path), Path(path).resolve()):
                found[place.parent.parent] = None
    private = (paths.project_root(), Path.home())
    return tuple(
        folder
        for folder in found
        if folder != Path("/")
        and not folder.is_relative_to("/usr")
        and not any(kept.is_relative_to(folder) for kept in private)
    )


def agent(
    *,
    workdir: Path,
    workdir_target: str = "/workspace",
    ro: Sequence[Bind] = (),
    rw: Sequence[Bind] = (),
    env: Mapping[str, str],
    judge_socket: Path,
) -> list[str]:
    """Prefix for an agent: ``workdir`` is its writable home, toolchain and Python are read-only.

    Its network namespace holds only its own loopback; the judge is the Unix socket at ``/run/judge.sock``.
    Paths are not resolved here, so placeholders may stand in them.
    """
    folders = [*toolchain_folders(), *interpreter_folders()]
    argv = [
        *CLEAN,
        *_isolation(),
        *_forbid_nested(),
        *_system(SYSTEM, (*LOADER, *AGENT_ETC)),
        "--proc",
        "/proc",
    ]
    argv += ["--dev", "/dev", *_private("/tmp", "/dev/shm", "/run", room=AGENT_SCRATCH_BYTES)]
    for folder in folders:
        argv += ["--ro-bind", str(folder), str(folder)]
    argv += [*_mask([Path("/usr"), *folders]), "--bind", str(workdir), workdir_target]
    argv += ["--bind", str(judge_socket), JUDGE_SOCKET, *_binds(ro, rw)]
    argv += _environment({"HOME": workdir_target, "PATH": _path(folders), "LANG": "C.UTF-8", **env})
    return [*argv, "--chdir", workdir_target, "--"]


def _path(folders: Sequence[Path]) -> str:
    """Search path inside: the interpreter in use first."""
    return ":".join(
        [*(f"{folder}/bin" for folder in reversed(folders)), "/usr/local/bin", "/usr/bin", "/bin"]
    )
