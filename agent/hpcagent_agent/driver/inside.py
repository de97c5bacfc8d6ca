"""The first program of an agent's own process tree: opens the way to the judge, then runs the harness.

Inside the seal the only way out is one unix socket. This stub listens on a loopback port, hands every
connection on to that socket, sets JUDGE_URL and runs the command. It uses the standard library alone and is
started by its file name, because nothing but the interpreter is set up when it starts.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command after ``--``; returns its exit code, 128 + n when signal n ended it."""
    parser = argparse.ArgumentParser(prog="inside", description=__doc__)
    parser.add_argument("--socket", required=True, help="unix socket that leads to the judge")
    parser.add_argument("--workdir", required=True, help="where the command runs")
    parser.add_argument("--cpus", default="", help="cores the command may use, for example 2,3")
    parser.add_argument("--env", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(argv)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.error("no command given")

    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # a driver that died leaves no agent behind
    _prctl(PR_SET_CHILD_SUBREAPER, 1)  # whoever the agent detached is ours to end
    # The group gets SIGTERM as a whole: the command may use the grace it is given, so the stub stays for it.
    signal.signal(signal.SIGTERM, lambda *_: None)
    if options.cpus:
        os.sched_setaffinity(0, {int(cpu) for cpu in options.cpus.split(",")})

    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    env = {**os.environ, **dict(item.split("=", 1) for item in options.env)}
    env["JUDGE_URL"] = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        # No thread runs yet, so the function between fork and exec is safe.
        process = subprocess.Popen(
            command, cwd=options.workdir, env=env, stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent
        )
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return 1
    threading.Thread(target=_serve, args=(listener, options.socket), daemon=True).start()
    code = process.wait()
    _end_descendants()
    return 128 - code if code < 0 else code


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _die_with_parent() -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _serve(listener: socket.socket, target: str) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        upstream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            upstream.connect(target)
        except OSError:
            client.close()
            upstream.close()
            continue
        for source, sink in ((client, upstream), (upstream, client)):
            threading.Thread(target=_copy, args=(source, sink), daemon=True).start()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    """Copy until the source ends, then pass the end on; the other direction may still be talking."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def _end_descendants() -> None:
    """Kill what the command left running: every orphan of the tree is a child of this subreaper."""
    while children := children_of(os.getpid()):
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def children_of(parent: int) -> list[int]:
    """The processes whose parent is ``parent``, dead ones not yet reaped included."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
        except OSError:
            continue
        # The command name may hold spaces and brackets; the fields after the last bracket do not.
        if int(stat.rpartition(")")[2].split()[1]) == parent:
            found.append(int(entry.name))
    return found


if __name__ == "__main__":
    sys.exit(main())
