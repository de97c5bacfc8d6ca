"""Speaking for the runner on its control socket: early, twice, with another nonce, or instead of a load."""

from __future__ import annotations

import pytest
from attack_python import module, takes
from attack_rig import Rig, refused

SPEAK = """import socket, struct
def control():
    gc.unfreeze()
    return next(o for o in gc.get_objects() if isinstance(o, socket.socket) and o.fileno() >= 0)
def nonce():
    frame = sys._getframe(2)
    return frame.f_locals["nonce"]
def done(number, inside):
    control().send(struct.pack("=IIQQQ", 5, 0, number, inside, 0))
"""
FORGED = {
    "an answer before the work": ("done(nonce(), 1)\nBUSY\nHONEST", "rep-verify.*(wrong|forged|elements)"),
    "an answer of its own and the runner's": (
        "HONEST\ndone(nonce(), 1)",
        "forged or repeated|spoke before|where 3 was due",
    ),
    "a guessed nonce": ("HONEST\ndone(7, 1)\ntime.sleep(9)", "forged or repeated"),
    "ready again": ("HONEST\ncontrol().send(struct.pack('=II', 3, 0))\ntime.sleep(9)", "forged or repeated"),
    "a negative time": ("HONEST\ndone(nonce(), 2**64 - 1)\ntime.sleep(9)", "says .* ns of a call"),
    "an endless frame": ("HONEST\ncontrol().send(b'\\0' * 60000)\ntime.sleep(9)", "forged or repeated"),
    "an empty frame": (
        "HONEST\ncontrol().send(b'')\ntime.sleep(9)",
        "closed its control socket|forged|killed",
    ),
    "a closed line": ("control().close()\nHONEST", "crash|closed|Error"),
    "a failure of the judge": (
        "control().send(struct.pack('=II', 6, 0) + b'seal: out of memory')\ntime.sleep(9)",
        "child: seal: out of memory",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_frame_is_refused(judge: Rig, name: str) -> None:
    body, reason = FORGED[name]
    refused(judge.preview(module(body, SPEAK), "python"), "incorrect", reason)


def test_twin_with_a_pipe_of_its_own_is_accepted(judge: Rig) -> None:
    pipe = (
        "r, w = os.pipe()\nos.write(w, b'x')\nassert os.read(r, 1) == b'x'\nos.close(r)\nos.close(w)\nHONEST"
    )
    takes(judge, module(pipe))
