"""One bounded run of a delivery under the seal: its kernel on a public draw, watched from outside."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpcagent_bench import seal
from hpcagent_bench.harness.runner import build, environment

INSIDE = Path("/grading")
OUTPUT_MAX = 64 << 10
"""Bytes of each of its streams that are kept."""
FILE_BYTES = 16 << 20
REPORT_MAX = 64
WATCHERS_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH")
"""What a tool that watches may need to be found; the delivery's own environment is another."""
DRAIN_S = 2.0


@dataclass(frozen=True)
class Ran:
    """How a run ended. ``status`` as of a shell: 128 + n for signal n. ``call_s`` None: it did not report."""

    status: int
    stdout: str
    stderr: str
    elapsed_s: float
    call_s: float | None
    timed_out: bool


@dataclass(frozen=True)
class Limits:
    """What a run may use: these cores, bytes of memory, MiB of stack a thread, seconds."""

    cores: tuple[int, ...]
    memory_bytes: int
    stack_mb: int
    timeout_s: float
    sealed: bool


def command(
    program: Sequence[str],
    files: dict[str, Path],
    limits: Limits,
    env: dict[str, str],
    folders: Sequence[Path],
) -> list[str]:
    """The sealed command line of ``program``; ``{name}`` in it stands for where the file ``name`` is seen."""
    files = {"runner": build.runner(), **files}
    place = {name: str(INSIDE / name) if limits.sealed else str(path) for name, path in files.items()}
    stack = limits.stack_mb << 20
    data = limits.memory_bytes + stack * (len(limits.cores) + 1)
    cores = ",".join(map(str, limits.cores))
    launch = [place["runner"], "launch", cores, str(stack), str(data), str(FILE_BYTES), "--"]
    env = environment.thread_environment(limits.cores, limits.stack_mb) | environment.library_path() | env
    prefix = ["/usr/bin/env", "-i", *(f"{key}={value}" for key, value in sorted(env.items()))]
    if limits.sealed:
        shown = [*seal.toolchain_folders(), *folders]
        binds = [seal.Bind(path, INSIDE / name) for name, path in files.items()]
        prefix = seal.grader(ro=[*binds, *(seal.Bind(folder, folder) for folder in shown)], env=env)
    return [*prefix, *launch, *(place.get(part.strip("{}"), part) for part in program)]


def run(argv: Sequence[str], draw: int, report: tuple[int, int], limits: Limits) -> Ran:
    """Run a command line to its end or its limit; all of it is gone afterwards."""
    started = time.monotonic()
    process = subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(draw, report[1]),
        env={name: os.environ[name] for name in WATCHERS_ENVIRONMENT if name in os.environ},
        cwd="/",
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    streams = (process.stdout.fileno(), process.stderr.fileno())
    with process:
        try:
            kept, finished = _collect(streams, process, started + limits.timeout_s)
            elapsed = time.monotonic() - started
        finally:
            _end(process)
    said = b""
    os.set_blocking(report[0], False)
    with contextlib.suppress(BlockingIOError):
        said = os.read(report[0], REPORT_MAX)
    status = process.returncode
    return Ran(
        status if status >= 0 else 128 - status,
        kept[0].decode(errors="replace"),
        kept[1].decode(errors="replace"),
        elapsed,
        _per_call(said),
        not finished,
    )


def _per_call(said: bytes) -> float | None:
    """Seconds a call from the driver's report; a delivery that wrote nonsense over it has none."""
    try:
        calls, spent = (int(part) for part in said.split())
    except ValueError:
        return None
    return spent / calls / 1e9 if calls > 0 and spent >= 0 else None


def _collect(
    streams: tuple[int, int], process: subprocess.Popen[bytes], deadline: float
) -> tuple[tuple[bytearray, bytearray], bool]:
    """(the head of both streams, whether the process ended in time)."""
    kept = (bytearray(), bytearray())
    with selectors.DefaultSelector() as selector:
        for stream, head in zip(streams, kept, strict=True):
            selector.register(stream, selectors.EVENT_READ, head)
        while selector.get_map():
            left = deadline - time.monotonic()
            if process.poll() is not None:
                left = min(left, 0.1)  # what it printed is there; others may hold its streams open
            ready = selector.select(max(0.0, left)) if left > 0 else []
            if not ready and (left <= 0 or process.poll() is not None):
                break
            for key, _ in ready:
                part = os.read(key.fd, 1 << 16)
                key.data.extend(part[: OUTPUT_MAX - len(key.data)])
                if not part:
                    selector.unregister(key.fd)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, deadline - time.monotonic()))
    return kept, process.poll() is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and its whole group; a sealed child dies with its bubblewrap."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def report_pipe() -> Iterator[tuple[int, int]]:
    """A pipe for the driver's report."""
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


def interpreter() -> tuple[str, list[Path]]:
    """The Python in use and the folders it needs to be seen."""
    return sys.executable, seal.interpreter_folders()
