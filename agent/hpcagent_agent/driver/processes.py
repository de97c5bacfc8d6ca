"""Starting an agent's process tree, keeping its output, and ending all of it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from hpcagent_agent.driver.inside import PR_SET_CHILD_SUBREAPER, children_of

MAX_LOG_BYTES = 256 * 1024 * 1024
REAP_S = 2.0


class ProcessTable:
    """The agents that run now. One lock spans starting one and sweeping, so that no new one is swept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: set[int] = set()
        self._reaping = False

    def become_subreaper(self) -> None:
        """From now on orphans of ended agents are this process's children, and swept as such."""
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._reaping = True

    def launch(self, argv: Sequence[str], log: Path, cwd: Path, env: Mapping[str, str]) -> Running:
        """Start ``argv`` in a session of its own; its output goes to ``log``. Raises OSError."""
        with self._lock:
            process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._live.add(process.pid)
        return Running(process, log, self)

    def ended(self, pid: int) -> None:
        """Forget ``pid`` and kill the orphans that ended agents left behind."""
        with self._lock:
            self._live.discard(pid)
            if self._reaping:
                self._sweep()

    def _sweep(self) -> None:
        until = time.monotonic() + REAP_S
        while time.monotonic() < until:
            orphans = [pid for pid in children_of(os.getpid()) if pid not in self._live]
            if not orphans:
                return
            for pid in orphans:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(0.01)


class Running:
    """One started agent."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, table: ProcessTable) -> None:
        self._process = process
        self._table = table
        self._pidfd = os.pidfd_open(process.pid)
        self._ended = select.poll()
        self._ended.register(self._pidfd, select.POLLIN)
        assert process.stdout is not None
        self._pump = threading.Thread(target=_keep_output, args=(process.stdout, log), daemon=True)
        self._pump.start()

    def wait(self, timeout_s: float) -> int | None:
        """The exit code (128 + n for signal n), or None while it still runs after ``timeout_s``."""
        if not self._ended.poll(max(0.0, timeout_s) * 1000):
            return None
        # Not reaped yet: while the zombie stands, its number, and so its group's, belongs to nobody else.
        state = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        assert state is not None
        return state.si_status if state.si_code == os.CLD_EXITED else 128 + state.si_status

    def end(self, grace_s: float) -> None:
        """SIGTERM to the whole group, SIGKILL after ``grace_s``, then whatever had left the group.

        Once only: the process is reaped here.
        """
        if self.wait(0) is None:
            self._signal(signal.SIGTERM)
            self.wait(grace_s)
        self._signal(signal.SIGKILL)
        self._process.wait()
        os.close(self._pidfd)
        self._table.ended(self._process.pid)
        self._pump.join(REAP_S)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _keep_output(stream: IO[bytes], log: Path) -> None:
    """Copy the agent's output into ``log`` up to MAX_LOG_BYTES, and swallow the rest so it never blocks."""
    left = MAX_LOG_BYTES
    fd = stream.fileno()
    with stream, log.open("ab", buffering=0) as sink:
        while True:
            try:
                data = os.read(fd, 65536)
            except OSError:
                return
            if not data:
                return
            if left > 0:
                with contextlib.suppress(OSError):  # a full disk must not stop the agent
                    sink.write(data[:left])
            if 0 < left <= len(data):
                with contextlib.suppress(OSError):
                    sink.write(b"\n[output past this point was dropped]\n")
            left -= len(data)
