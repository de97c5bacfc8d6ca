"""Work in what the runner calls while a draw is handed over: compile hooks, array types, frame readers."""

from __future__ import annotations

import pytest
from attack_python import module, takes
from attack_rig import Rig, flagged, refused, said

AHEAD = """answers = []
def work(*_):
    BUSY
    answers.append(1)
"""
HOOKS = {
    "the reader of frames": "import json\nloads = json.loads\njson.loads = lambda t: (work(), loads(t))[1]",
    "the array type": (
        "array = np.ndarray\n"
        "def made(*all, **named):\n    work()\n    return array(*all, **named)\n"
        "np.ndarray = made"
    ),
    "numba's compiler": (
        "import numba\n"
        "class Never(set):\n    def __contains__(self, _):\n        return False\n"
        "class Compiled(numba.core.dispatcher.Dispatcher):\n"
        "    def __init__(self):\n        pass\n"
        "    def compile(self, signature):\n"
        "        sys._getframe(1).f_locals['self'].signatures = Never()\n        work()\n"
        "    def __call__(self, *all):\n        return function(*all)\n"
        "    def __del__(self):\n        pass\n"
        "function = None"
    ),
    "the receiver of descriptors": (
        "socket = sys.modules['socket']\n"
        "received = socket.recv_fds\n"
        "def receive(*all):\n    got = received(*all)\n    work()\n    return got\n"
        "socket.recv_fds = receive"
    ),
}


@pytest.mark.parametrize("name", HOOKS)
def test_work_outside_the_call_is_refused_or_suspect(judge: Rig, name: str) -> None:
    text = module("HONEST", AHEAD + HOOKS[name])
    if "compiler" in name:
        text += "\nfunction, polygon_area_terms = polygon_area_terms, Compiled()\n"
    verdict = judge.preview(text, "python")
    if verdict.status == "ok":
        flagged(verdict, "outside the clock")
    else:
        refused(verdict, "incorrect", r"rep-verify\[.*(outside the clocked call|between calls|Error)")
        assert "Error" not in verdict.reason or "compiler" in name, said(verdict)


def test_a_thread_between_the_calls_is_refused(judge: Rig) -> None:
    before = "import threading\ndef spin():\n    while True:\n        pass\n"
    start = "if threading.active_count() < 2:\n    threading.Thread(target=spin, daemon=True).start()\nHONEST"
    verdict = judge.preview(module(start, before), "python")
    refused(
        verdict,
        "incorrect",
        r"rep-verify\[.*(outside the clocked|between calls|after it returned|cores: used)",
    )


def test_twin_compiled_by_numba_is_accepted(judge: Rig) -> None:
    text = """import numba

@numba.njit(cache=True)
def polygon_area_terms(x, y, area, LEN_1D):
    before = LEN_1D - 1
    for i in range(LEN_1D):
        area[i] = (x[i] + x[before]) * (y[i] - y[before])
        before = i
"""
    takes(judge, text)
