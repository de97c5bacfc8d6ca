"""One grading child as the operating system sees it: started, spoken to, stopped, ended, explained."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence

from hpcagent_bench.harness.messages import FRAME_MAX
from hpcagent_bench.harness.runner import proc

START_TIMEOUT_S = 60.0
FREEZE_TIMEOUT_S = 60.0
"""A stop needs nothing of the child but a processor to take it on; a busy machine may hold that back."""
STDERR_MAX = 1 << 16
WORDS_MAX = 4096
WATCH_S = 0.1
"""How often threads and memory of a child are looked at while the judge waits for it."""

Command = Callable[[int, int | None], list[str]]
"""(control descriptor, descriptor for bubblewrap's information or None) to the whole command line."""

_SPAWNER: list[concurrent.futures.ThreadPoolExecutor] = []


class Ended(Exception):
    """The child is gone; ``str`` says how."""


class Unstoppable(Exception):
    """The kernel did not stop the child in time: the machine's failure, whatever the child does."""


class Late(Exception):
    """The child did not answer in time."""


class Over(Exception):
    """The child holds more threads or memory than it was granted; ``str`` says which."""


def _spawn(argv: Sequence[str], control: int, info: int | None, stderr: int) -> subprocess.Popen[bytes]:
    """Start the child from one thread that lives as long as this process.

    A child is told to die with its parent, and to the kernel the parent is the thread that started it: a
    request thread that ends would take the children it started along.
    """
    if not _SPAWNER:
        _SPAWNER.append(concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="grading-spawner"))
    keep = (control,) if info is None else (control, info)
    start = _SPAWNER[0].submit(
        subprocess.Popen,
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        pass_fds=keep,
        env={"PATH": os.environ.get("PATH", "/usr/bin:/bin")},
        cwd="/",
        start_new_session=True,
    )
    return start.result()


def describe_exit(status: int) -> str:
    """How a process ended, in words; ``status`` as Popen gives it, 128+n (bwrap's habit) read as signal n."""
    number = -status if status < 0 else status - 128
    if number > 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(number).name}"
    return f"exited with status {status}"


class ChildProcess:
    """A child with a control socket. Starting it returns at once; ``hello`` waits until it is ready.

    ``sealed`` says that the command starts bubblewrap, which tells the real child's process number over the
    information descriptor. ``budget`` is watched while the judge waits for an answer; ``scratch`` is removed
    when the child is closed. Methods raise Ended, Late, Over or Unstoppable; no process is left once
    ``close`` has run.
    """

    def __init__(
        self,
        command: Command,
        *,
        sealed: bool,
        budget: proc.Budget | None = None,
        scratch: tempfile.TemporaryDirectory[str] | None = None,
    ) -> None:
        self._budget = budget
        self._scratch = scratch
        self._pid = 0
        self._pidfd = -1
        self._info = -1
        self._said = ""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._stderr = os.memfd_create("stderr", os.MFD_CLOEXEC)
        info = None
        if sealed:
            self._info, info = os.pipe()
        try:
            self._process = _spawn(command(theirs.fileno(), info), theirs.fileno(), info, self._stderr)
        except BaseException:
            ours.close()
            self._close_descriptors()
            raise
        finally:
            theirs.close()
            if info is not None:
                os.close(info)
        self._socket = ours
        self._exit = os.pidfd_open(self._process.pid)
        self._poll = select.poll()
        self._poll.register(ours, select.POLLIN)
        self._poll.register(self._exit, select.POLLIN)
        if not sealed:
            self._attach(self._process.pid)

    @property
    def pid(self) -> int:
        """Process number of the child itself on this host (not of bubblewrap), 0 when it never started."""
        if self._info >= 0:
            self._learn_pid()
        return self._pid

    @property
    def ended(self) -> bool:
        """Whether the child is gone."""
        return self._process.poll() is not None

    def _attach(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._pidfd = os.pidfd_open(pid)
            self._pid = pid

    def _learn_pid(self) -> None:
        """Read bubblewrap's information: {"child-pid": n}. It closes the pipe after it, or when it fails."""
        text = b""
        deadline = time.monotonic() + START_TIMEOUT_S
        poll = select.poll()
        poll.register(self._info, select.POLLIN)
        while poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            part = os.read(self._info, 4096)
            text += part
            if not part:
                break
        os.close(self._info)
        self._info = -1
        with contextlib.suppress(ValueError, KeyError):
            self._attach(int(json.loads(text)["child-pid"]))

    def send(self, frame: bytes, descriptors: Sequence[int] = ()) -> None:
        """One frame to the child, with open descriptors."""
        try:
            if descriptors:
                socket.send_fds(self._socket, [frame], list(descriptors))
            else:
                self._socket.send(frame)
        except OSError as error:
            raise Ended(self.last_words()) from error

    def receive(self, timeout_s: float) -> bytes:
        """The next frame. A child that ended is found at its exit, however long its descriptors live on."""
        deadline = time.monotonic() + timeout_s
        while True:
            ready = self._wait_until(deadline)
            if not ready:
                raise Late(f"no answer within {timeout_s:g} s")
            frame = self.waiting()
            if frame:
                return frame
            if frame == b"" or any(fd == self._exit for fd, _ in ready):
                raise Ended(self.last_words())

    def _wait_until(self, deadline: float) -> list[tuple[int, int]]:
        """What happened first, nothing at the deadline. Looks at the child's budget in between."""
        while True:
            left = max(0.0, deadline - time.monotonic())
            ready = self._poll.poll(min(left, WATCH_S) * 1000)
            if ready or left <= 0:
                return ready
            if self._budget is not None and self._pid:
                excess = self._budget.excess(self._pid)
                if excess:
                    raise Over(excess)

    def waiting(self) -> bytes | None:
        """A frame that is there already, None without one, empty when the other end is closed."""
        try:
            return self._socket.recv(FRAME_MAX, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def freeze(self) -> None:
        """Stop every thread of the child and wait until they stand."""
        self._signal(signal.SIGSTOP)
        deadline = time.monotonic() + FREEZE_TIMEOUT_S
        while not self._stands():
            if self._process.poll() is not None:
                return
            if time.monotonic() > deadline:
                raise Unstoppable(f"the child did not stand within {FREEZE_TIMEOUT_S:g} s of its stop")
            time.sleep(2e-5)

    def thaw(self) -> None:
        """Let the child run again."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def _stands(self) -> bool:
        standing = proc.stands(self.pid)
        return self._process.poll() is not None if standing is None else standing

    def printed(self) -> str:
        """The head of what the child, bubblewrap or the loader printed where the judge alone reads it."""
        return os.pread(self._stderr, STDERR_MAX, 0).decode(errors="replace")

    def last_words(self) -> str:
        """Wait for the end, then say how it was; what bubblewrap or the loader printed comes along."""
        if not self._said:
            try:
                how = describe_exit(self._process.wait(timeout=0.5))
            except subprocess.TimeoutExpired:
                self.kill()
                how = "closed its control socket"
            printed = self.printed()[:WORDS_MAX].strip()
            self._said = how + (f": {printed}" if printed else "")
        return self._said

    def kill(self) -> None:
        """End the child and, sealed, its whole process namespace."""
        if self._process.poll() is None:
            if self._info >= 0:
                self._learn_pid()  # killing bubblewrap before it is set up could leave its child behind
            self._signal(signal.SIGKILL)
            if self._pidfd < 0:
                self._process.kill()

    def close(self) -> None:
        """End the child, reap it and give every descriptor back. May be called again."""
        if self._exit < 0:
            return
        self.kill()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._socket.close()
        os.close(self._exit)
        self._exit = -1
        self._close_descriptors()
        if self._scratch is not None:
            self._scratch.cleanup()

    def _close_descriptors(self) -> None:
        for name in ("_pidfd", "_info", "_stderr"):
            descriptor: int = getattr(self, name)
            if descriptor >= 0:
                os.close(descriptor)
                setattr(self, name, -1)
