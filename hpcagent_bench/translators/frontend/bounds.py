"""Indices below zero: NumPy counts them from the end, C leaves the array, so they are refused."""

from __future__ import annotations

from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.translators import ir
from hpcagent_bench.translators.analysis import linear
from hpcagent_bench.translators.analysis.accesses import names_of, survey
from hpcagent_bench.translators.frontend.reading import Unsupported


def check(kernel: Kernel, function: ir.Function) -> None:
    """Refuse an index that certainly starts below zero; what stands under a condition is left to it.

    Indices of loops that slices stand for are within their arrays, as NumPy's are.
    """
    found = survey(function)
    implied = {site.counter for site in found.sites if isinstance(site.loop, ir.For) and site.loop.implied}
    for access in found.accesses:
        if access.branches or access.guards:
            continue
        for axis in access.index:
            if axis.names & implied or (
                axis.offset >= 0 and all(factor >= 0 for factor in axis.terms.values())
            ):
                continue
            facts = [fact for name in sorted(names_of(access, found)) for fact in found.values[name].facts]
            low, _ = linear.span(axis, [], facts)
            if low is not None and low < 0:
                construct = f"an index of '{access.array}' that starts at {low}"
                raise Unsupported(kernel.numpy_source, access.line, construct, "start the loop where it is 0")
