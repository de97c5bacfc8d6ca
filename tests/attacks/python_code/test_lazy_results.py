"""Answers that are computed when somebody looks: the judge looks at memory, and nobody's code runs then."""

from __future__ import annotations

import pytest
from attack_python import module, takes
from attack_rig import Rig, refused

LAZY = """class Lazy:
    def __init__(self, x, y):
        self.x, self.y = x, y
    def __array__(self, *_, **__):
        return (self.x + np.roll(self.x, 1)) * (self.y - np.roll(self.y, 1))
    def __getattr__(self, name):
        return getattr(self.__array__(), name)
"""
LATER = {
    "returned": ("return Lazy(x, y)", LAZY),
    "a generator": ("HONEST\nyield 1", ""),
    "a coroutine's": ("return work(x, y, area)", "async def work(x, y, area):\n    HONEST"),
    "bound to the name": ("area = Lazy(x, y)", LAZY),
    "an array type of its own": (
        "return None",
        "class Late(np.ndarray):\n    def __array_finalize__(self, _):\n        pass\nnp.ndarray = Late",
    ),
    "in the destructor": (
        "global kept\nkept = Last(x, y, area)\ndel kept",
        "class Last:\n    def __init__(self, *all):\n        self.all = all\n        self.me = self\n"
        "    def __del__(self):\n        x, y, area = self.all\n        HONEST",
    ),
}


@pytest.mark.parametrize("name", LATER)
def test_what_is_not_in_the_buffers_at_return_is_wrong(judge: Rig, name: str) -> None:
    body, before = LATER[name]
    refused(judge.preview(module(body, before), "python"), "incorrect", r"rep-verify\[warm-up\]")


@pytest.mark.parametrize("daemon", [True, False])
def test_a_thread_that_writes_after_the_return_is_too_late(judge: Rig, daemon: bool) -> None:
    before = f"""import threading
def late(x, y, area):
    time.sleep(0.05)
    HONEST
def start(*all):
    threading.Thread(target=late, args=all, daemon={daemon}).start()"""
    refused(
        judge.preview(module("start(x, y, area)", before), "python"), "incorrect", r"rep-verify\[warm-up\]"
    )


def test_twin_that_returns_what_it_wrote_is_accepted(judge: Rig) -> None:
    takes(judge, module("HONEST\nreturn Lazy(x, y)", LAZY))
