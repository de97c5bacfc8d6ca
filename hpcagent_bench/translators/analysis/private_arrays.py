"""Local arrays that every iteration of a loop fills before it reads them: each could have its own copy."""

from __future__ import annotations

from collections.abc import Iterator

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.analysis import linear
from hpcagent_bench.translators.analysis.accesses import Access, Site, Survey, names_of
from hpcagent_bench.translators.analysis.polynomials import Polynomial


def private_arrays(site: Site, found: Survey, function: ir.Function) -> tuple[str, ...]:
    """Local arrays whose elements never pass from one iteration of the loop to another, nor out of it.

    Proved when every load finds, earlier in its own iteration, a store that certainly ran through a block of
    elements with this one among them, and nothing outside the loop loads from the array.
    """
    stored = {access.array for access in site.accesses if access.store}
    local = {name for name in stored if function.arrays[name].local}
    outside = _loaded_outside(function.body, site.loop) if local else frozenset()
    return tuple(name for name in sorted(local - outside) if _refilled(name, site, found))


def _loaded_outside(body: tuple[ir.Stmt, ...], loop: ir.Stmt) -> frozenset[str]:
    names: set[str] = set()
    for stmt in body:
        if stmt is not loop:
            nodes = (node for expr in ir.expressions(stmt) for node in ir.walk(expr))
            names |= {node.array for node in nodes if isinstance(node, ir.Load)}
            names |= _loaded_outside(ir.nested(stmt), loop)
    return frozenset(names)


def _refilled(name: str, site: Site, found: Survey) -> bool:
    inner = {s.counter: s for s in found.sites if site in s.around}
    stores: list[Access] = []
    for access in site.accesses:
        if access.array != name:
            continue
        if access.store:
            stores.append(access)
        elif not any(_covers(store, access, site, inner, found) for store in stores):
            return False
    return True


def _covers(store: Access, load: Access, site: Site, inner: dict[str, Site], found: Survey) -> bool:
    """Whether the loops around the store, run to their ends, reach the element of the load."""
    if store.branches != site.branches:
        return False
    shared = sum(1 for _ in _common(store.counters, load.counters))
    ran = {counter: inner[counter] for counter in store.counters[shared:]}
    if any(
        isinstance(s, (ir.Jump, ir.Return)) for each in ran.values() for s in ir.statements(each.loop.body)
    ):
        return False
    facts = [fact for name in sorted(names_of(load, found)) for fact in found.values[name].facts]
    facts += load.guards
    left = set(ran)
    for axis, wanted in zip(store.index, load.index, strict=True):
        counters = axis.names & ran.keys()
        if not counters:
            if axis != wanted:
                return False
            continue
        if len(counters) > 1 or not counters <= left:
            return False
        (counter,) = counters
        left.discard(counter)
        first = min(each.first for each in ran.values())
        if not _within(axis, wanted, ran[counter], facts, first, found):
            return False
    return not left


def _common(first: tuple[str, ...], second: tuple[str, ...]) -> Iterator[str]:
    for a, b in zip(first, second, strict=False):
        if a != b:
            return
        yield a


def _within(
    axis: Polynomial, wanted: Polynomial, ran: Site, facts: list[Polynomial], first: int, found: Survey
) -> bool:
    """Whether ``axis``, which follows the index of the loop ``ran`` at a fixed distance, takes the value.

    Values from number ``first`` on may change while the loops around the store run.
    """
    if not isinstance(ran.loop, ir.For) or not ran.loop.unit:
        return False
    shift = axis - (ran.start + Polynomial.name(ran.counter))
    low, high = ran.start + shift, ran.stop + shift
    if any(found.values[name].number >= first for name in low.names | high.names):
        return False
    below, above = [*facts, low - wanted - 1], [*facts, wanted - high]
    return linear.impossible([], [*below, *linear.products(below)]) and linear.impossible(
        [], [*above, *linear.products(above)]
    )
