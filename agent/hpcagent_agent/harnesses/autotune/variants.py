"""From one reference source to one variant of it: which transformations, in which order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from . import emit, fuse, ir, jam, order, pragmas, recompute, reduce, scalars
from .dependence import Analysis
from .normalise import normalise
from .parse import parse

Shapes = Mapping[str, Sequence[str]]
Step = Callable[[ir.Function, Analysis], ir.Function]


@dataclass(frozen=True)
class Plan:
    """What to apply; every transformation acts wherever it is legal and does nothing elsewhere.

    ``jam``: outer iterations advancing together; ``streams``: parts of a reduced range walked side by side;
    both 1 for off.
    """

    fuse: bool = True
    reorder: bool = True
    recompute: bool = True
    jam: int = 1
    streams: int = 4
    simd: bool = True
    past_cache: bool = False
    parallel: bool = False

    def label(self) -> str:
        """The switched-on parts, for the log."""
        parts = [
            name
            for name in ("fuse", "reorder", "recompute", "simd", "past_cache", "parallel")
            if getattr(self, name)
        ]
        parts += [f"{name}={getattr(self, name)}" for name in ("jam", "streams") if getattr(self, name) > 1]
        return "+".join(parts) or "plain"


def steps(plan: Plan) -> list[Step]:
    """The transformations of a plan, in the order they are applied."""
    found: list[Step] = []
    if plan.recompute:
        found.append(recompute.untie)
    if plan.reorder:
        found.append(order.reorder)
    if plan.fuse:
        found.append(fuse.fuse)
    if plan.recompute:
        found.append(recompute.inline_buffers)
    if plan.jam > 1:
        found.append(lambda fn, analysis: jam.jam(fn, analysis, plan.jam))
    found.append(scalars.keep_in_scalars)
    if plan.streams > 1:
        found.append(lambda fn, analysis: reduce.guard(fn, analysis, plan.streams))
        found.append(lambda fn, analysis: reduce.streams(fn, analysis, plan.streams))
    if plan.parallel:
        found.append(pragmas.parallel)
    if plan.simd:
        found.append(pragmas.simd)
    if plan.past_cache:
        found.append(pragmas.store_past_cache)
    return found


def build(source: str, symbol: str, shapes: Shapes, plan: Plan) -> str:
    """The C text of one variant. Raises ``Unparsable`` when the source is not understood."""
    fn = normalise(parse(source, symbol))
    for step in steps(plan):
        fn = step(fn, Analysis(fn, shapes))
    return emit.function(fn)
