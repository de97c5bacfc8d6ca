"""Python code in the runner's own process can change the runner's clock: the judge's clocks outside tell."""

from __future__ import annotations

import pytest
from attack_python import module, takes
from attack_rig import Rig, flagged

FIND = """def runner():
    gc.unfreeze()
    return next(o for o in gc.get_objects() if type(o).__name__ == "Runner")
"""
SKEWS = {
    "the overhead that is taken off": ("runner().overhead_ns = 10**12\nBUSY\nHONEST", FIND),
    "the clock it holds": ("BUSY\nHONEST\nrunner().clock = lambda which: 5", FIND),
    "the function that bounds it": ("BUSY\nHONEST", "import builtins\nbuiltins.max = lambda *all: 1"),
    "which clock it reads": (
        "time.sleep(0.02)\nHONEST",
        "time.CLOCK_MONOTONIC = time.CLOCK_THREAD_CPUTIME_ID",
    ),
    "the time it started": (
        "BUSY\nHONEST\nframe = sys._getframe(1)\nframe.f_locals['start'] = time.clock_gettime_ns(1)\n"
        "ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))",
        "",
    ),
    "the answer's packing": (
        "BUSY\nHONEST",
        "real = sys.modules['__main__'].DONE_FRAME\n"
        "class Packer:\n"
        "    def pack(self, kind, modes, nonce, inside, cpu):\n"
        "        return real.pack(kind, modes, nonce, 1, cpu)\n"
        "sys.modules['__main__'].DONE_FRAME = Packer()",
    ),
}
HARMLESS = {
    "the clock's name": "time.clock_gettime_ns = lambda which: 5\ntime.perf_counter = lambda: 5.0",
    "the clock of numpy": "np.datetime64 = None",
}


@pytest.mark.parametrize("name", SKEWS)
def test_a_skewed_clock_makes_every_input_suspect(judge: Rig, name: str) -> None:
    body, before = SKEWS[name]
    flagged(
        judge.preview(module(body, before), "python"), "clocks inside and outside disagree|GB/s|ratio above"
    )


@pytest.mark.parametrize("name", HARMLESS)
def test_names_changed_after_the_runner_took_them_change_nothing(judge: Rig, name: str) -> None:
    verdict = judge.preview(module("HONEST", HARMLESS[name]), "python")
    assert verdict.status == "ok", verdict.reason
    assert all(min(one.result.runs.inside) > 1 for one in verdict.inputs)


def test_twin_that_reads_the_clock_is_accepted(judge: Rig) -> None:
    takes(judge, module("started = now()\nHONEST\nassert now() >= started"))
