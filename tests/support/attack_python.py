"""Python deliveries that attack: the module around one function of the kernel that attacks work on."""

from __future__ import annotations

import textwrap

from attack_rig import Rig, said

HONEST = """before = np.roll(x, 1), np.roll(y, 1)
area[:] = (x + before[0]) * (y - before[1])"""
BUSY = """until = now() + 0.02
while now() < until:
    pass"""
"""Work that takes 20 ms, far above what clocks on a busy machine disagree about."""
HEAD = """import ctypes, gc, os, sys, time
import numpy as np
now = time.perf_counter
"""


def module(body: str, before: str = "") -> str:
    """A module with this function body and these lines before it; ``HONEST`` and ``BUSY`` are lines of it."""
    for name, lines in (("HONEST", HONEST), ("BUSY", BUSY)):
        body, before = _put(body, name, lines), _put(before, name, lines)
    return f"{HEAD}{before}\ndef polygon_area_terms(x, y, area, LEN_1D):\n{textwrap.indent(body, '    ')}\n"


def _put(text: str, name: str, lines: str) -> str:
    """``lines`` in place of every line that is ``name``, at its indentation."""
    made = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        made += textwrap.indent(lines, indent).splitlines() if line.strip() == name else [line]
    return "\n".join(made)


def takes(judge: Rig, text: str) -> None:
    """Assert that a module's answers are right, and that its clocks are believed on one input at least.

    An interpreter's gaps between the clocks grow with a machine's load, so a suspicion is looked at again.
    """
    for _ in range(5):
        verdict = judge.preview(text, "python")
        assert verdict.status == "ok", said(verdict)
        assert all(one.result.correct for one in verdict.inputs), said(verdict)
        if any(one.valid for one in verdict.inputs):
            return
    raise AssertionError(said(verdict))
