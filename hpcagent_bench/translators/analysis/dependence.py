"""Which loops run their iterations in any order, proved; and why the others do not.

Two accesses of one array, at least one of them a store, meet in different iterations of a loop if integers
exist that obey all of: both iterations lie in the loop's range, one before the other; so do the indices of
the loops inside; the branches around either access are taken; their subscripts agree on every axis. A loop
is parallel when that is proved impossible for every pair (see ``linear``) and no scalar carries a value from
one iteration to the next. What cannot be proved is denied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.analysis import linear
from hpcagent_bench.translators.analysis.accesses import Access, Site, Survey, names_of, survey
from hpcagent_bench.translators.analysis.liveness import Liveness
from hpcagent_bench.translators.analysis.notation import element
from hpcagent_bench.translators.analysis.polynomials import Polynomial
from hpcagent_bench.translators.analysis.private_arrays import private_arrays
from hpcagent_bench.translators.analysis.reductions import Reduction, scalar_reduction


@dataclass(frozen=True)
class Verdict:
    """What is known of one loop.

    ``parallel``: its iterations may run in any order, given that every iteration has its own ``private``
    scalars and ``private_arrays`` and the ``reductions`` are made as such. ``reason`` says why (not).
    """

    loop: ir.For | ir.While
    parallel: bool
    reason: str
    reductions: tuple[Reduction, ...] = ()
    private: tuple[str, ...] = ()
    private_arrays: tuple[str, ...] = ()

    @property
    def line(self) -> int:
        return self.loop.line

    @property
    def index(self) -> str:
        """The loop's index, ``while`` where it has none."""
        return self.loop.var if isinstance(self.loop, ir.For) else "while"


def verdicts(function: ir.Function) -> dict[int, Verdict]:
    """One verdict for every loop of ``function``, by the id of the loop, in program order."""
    found = survey(function)
    liveness = Liveness(function.body)
    result: dict[int, Verdict] = {}
    for site in found.sites:
        verdict = _verdict(site, found, liveness, function)
        known = result.get(id(site.loop))
        if known is None or not verdict.parallel:  # one object may stand in two places
            result[id(site.loop)] = verdict
    return result


def parallel_loop(
    function: ir.Function, *, reductions: bool = False, private_arrays: bool = False
) -> ir.For | None:
    """The parallel loop of unit step to run in parallel, or None: the outermost one of the deepest nest.

    Of several the first in program order; loops of a few iterations come last and do not count as depth. A
    loop with more loops around it than inside is left alone: to start threads that often costs more than it
    gains.
    Loops that need reductions, or arrays of an iteration's own, count only where the caller can make these;
    a loop with reductions only when there is none without.
    """
    known = verdicts(function)
    fit = [
        place
        for place in _places(function.body, 0)
        if place.loop.unit
        and place.depth <= place.height
        and known[id(place.loop)].parallel
        and (private_arrays or not known[id(place.loop)].private_arrays)
    ]
    for wanted in (False, True) if reductions else (False,):
        among = [place for place in fit if bool(known[id(place.loop)].reductions) is wanted]
        if among:
            return min(among, key=_preference).loop
    return None


@dataclass(frozen=True)
class _Place:
    """A loop with the number of loops around it, and on the deepest path into it, itself included."""

    loop: ir.For
    depth: int
    height: int


def _preference(place: _Place) -> tuple[bool, int, int]:
    return _short(place.loop), -(place.depth + place.height), place.depth


def _places(body: tuple[ir.Stmt, ...], depth: int) -> Iterator[_Place]:
    for stmt in body:
        if isinstance(stmt, ir.For):
            yield _Place(stmt, depth, _deepest((stmt,)))
        yield from _places(ir.nested(stmt), depth + _counts(stmt))


def _deepest(body: tuple[ir.Stmt, ...]) -> int:
    return max((_counts(stmt) + _deepest(ir.nested(stmt)) for stmt in body), default=0)


def _counts(stmt: ir.Stmt) -> int:
    return int(isinstance(stmt, (ir.For, ir.While)) and not _short(stmt))


def _short(loop: ir.For | ir.While) -> bool:
    """Whether it is a loop of a few iterations, as over the axes of space."""
    match loop:
        case ir.For(start=ir.Const(value=int(start)), stop=ir.Const(value=int(stop))):
            return abs(stop - start) < _FEW
    return False


_FEW = 16


def _verdict(site: Site, found: Survey, liveness: Liveness, function: ir.Function) -> Verdict:
    loop = site.loop
    if isinstance(loop, ir.While):
        return Verdict(loop, False, "a while loop goes on as long as its iterations say")
    early = _early_exit(loop.body)
    if early is not None:
        return Verdict(loop, False, f"line {early.line} may leave the loop early")
    needed = liveness.entering[id(loop)] | liveness.leaving[id(loop)]
    reductions: list[Reduction] = []
    private: list[str] = []
    for name in sorted(ir.assigned(loop.body) & function.locals.keys()):
        if name not in needed:
            private.append(name)
            continue
        reduction = scalar_reduction(name, loop.body, function.locals[name])
        if reduction is None:
            return Verdict(loop, False, _carried(name, loop, name in liveness.entering[id(loop)]))
        reductions.append(reduction)
    own = private_arrays(site, found, function)
    conflict = None
    for first, second in _pairs(site, own):
        reduction = _same_cell(first, second, site, found)
        if reduction is not None:
            reductions += [reduction] if reduction not in reductions else []
        else:
            conflict = _first(conflict, _conflict(first, second, site, found))
    if conflict is not None:
        return Verdict(loop, False, conflict.reason)
    return Verdict(loop, True, _why(reductions, own), tuple(reductions), tuple(private), own)


def _why(reductions: list[Reduction], own: tuple[str, ...]) -> str:
    words = {"+": "sum", "*": "product", "min": "minimum", "max": "maximum", "and": "and", "or": "or"}
    made = []
    for reduction in reductions:
        into = reduction.name if reduction.index is None else element(reduction.name, reduction.index)
        made.append(f"the {words[reduction.op]} into {into}")
    parts = ["no iteration touches what another one stores"]
    if made:
        parts.append(f"but for {_listed(made)} (a reduction)")
    if own:
        parts.append(f"when each has its own {_listed(list(own))}")
    return ", ".join(parts)


# ---- scalars and control


def _early_exit(body: tuple[ir.Stmt, ...]) -> ir.Jump | ir.Return | None:
    """A ``break`` of this loop, not of one inside it, or a return."""
    for stmt in body:
        if isinstance(stmt, ir.Return) or (isinstance(stmt, ir.Jump) and stmt.kind == "break"):
            return stmt
        found = None
        if isinstance(stmt, ir.If):
            found = _early_exit(stmt.body) or _early_exit(stmt.orelse)
        elif isinstance(stmt, (ir.For, ir.While)):
            found = next((s for s in ir.statements(stmt.body) if isinstance(s, ir.Return)), None)
        if found is not None:
            return found
    return None


def _carried(name: str, loop: ir.For, enters: bool) -> str:
    writes = [s.line for s in ir.statements(loop.body) if isinstance(s, ir.Assign) and s.name == name]
    if enters:
        return (
            f"{name}, set in {_lines(writes)}, carries a value from one iteration of {loop.var} to the next"
        )
    return (
        f"the value {name} gets in the last iteration of {loop.var} ({_lines(writes)}) is used after the loop"
    )


def _lines(numbers: list[int]) -> str:
    distinct = [str(number) for number in sorted(set(numbers))]
    return f"line{'s' if len(distinct) > 1 else ''} {_listed(distinct)}"


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


# ---- arrays


@dataclass(frozen=True)
class _Conflict:
    rank: int
    reason: str


def _first(known: _Conflict | None, new: _Conflict | None) -> _Conflict | None:
    """The one that says more: a value read after it was stored, then one overwritten, then two stores."""
    if known is None or new is None:
        return known or new
    return new if new.rank < known.rank else known


def _pairs(site: Site, own: tuple[str, ...]) -> Iterator[tuple[Access, Access]]:
    """All pairs that could conflict: a store and another access of its array, a store and itself."""
    for position, first in enumerate(site.accesses):
        if first.array in own:
            continue
        for second in site.accesses[position:]:
            if first.array == second.array and (first.store or second.store):
                yield first, second


def _same_cell(first: Access, second: Access, site: Site, found: Survey) -> Reduction | None:
    """The reduction both accesses belong to, into an element that is the same in every iteration."""
    if first.update is None or first.update != second.update or first.index != second.index:
        return None
    if any(found.values[name].number >= site.first for axis in first.index for name in axis.names):
        return None
    if any(ir.reads(axis) & ir.assigned(site.loop.body) for axis in first.written):
        return None  # the element could not be named outside the loop
    return Reduction(first.array, first.update, first.written)


def _conflict(first: Access, second: Access, site: Site, found: Survey) -> _Conflict | None:
    """How two accesses meet in different iterations, or None when it is proved that they do not."""
    pair = _Pair(first, second, site, found)
    if pair.apart_at_sight():
        return None
    loop = site.loop
    assert isinstance(loop, ir.For)
    worst: _Conflict | None = None
    for forward in (True, False) if first is not second else (True,):
        distance = pair.distance(forward)
        if distance is not None:
            early, late = (first, second) if forward else (second, first)
            worst = _first(worst, _told(early, late, loop.var, distance, pair.certain))
    return worst


def _told(early: Access, late: Access, var: str, distance: int, certain: bool) -> _Conflict:
    """The conflict as a sentence; ``distance`` is 0 when it is not one number."""
    far = f" (distance {distance})" if distance else ""
    may = "" if distance or certain else "may "
    here, there = element(late.array, late.written), element(early.array, early.written)
    that = "" if here == there else f" as {there}"
    where = f" in line {early.line}" if early.line != late.line else ""
    if early.store and not late.store:
        reads = f"line {late.line} {may}{'read' if may else 'reads'} {here}"
        return _Conflict(0, f"{reads}, which an earlier iteration of {var} stores{that}{where}{far}")
    if late.store and not early.store:
        overwrites = f"a later iteration of {var} {may}{'overwrite' if may else 'overwrites'}"
        where = f" in line {late.line}" if early.line != late.line else ""
        return _Conflict(1, f"line {early.line} reads {there}, which {overwrites}{where}{far}")
    stores = "may store" if may else "stores"
    if early is late:
        return _Conflict(2, f"line {late.line} {stores} {here} in more than one iteration of {var}{far}")
    return _Conflict(
        2, f"line {late.line} {stores} {here}, which another iteration of {var} stores{that}{where}{far}"
    )


class _Pair:
    """Two accesses in two iterations: what belongs to the second's gets a prime."""

    def __init__(self, first: Access, second: Access, site: Site, found: Survey) -> None:
        left, right = names_of(first, found), names_of(second, found)
        values = found.values
        primed = {name: f"{name}'" for name in right if values[name].number >= site.first}
        self.here, self.there = site.counter, primed[site.counter]
        self.gaps = [a - b.renamed(primed) for a, b in zip(first.index, second.index, strict=True)]
        self.certain = not (first.guards or second.guards) and not any(
            values[name].opaque for gap in (*first.index, *second.index) for name in gap.names
        )
        facts = {fact for name in left for fact in values[name].facts} | set(first.guards)
        facts |= {fact.renamed(primed) for name in right for fact in values[name].facts}
        facts |= {guard.renamed(primed) for guard in second.guards}
        self.facts = sorted(facts, key=lambda fact: fact.key)

    def apart_at_sight(self) -> bool:
        """One axis differs when the iterations do: c·(here - there) + d has no zero then."""
        here, there = (self.here,), (self.there,)
        for gap in self.gaps:
            factor = gap.terms.get(here, 0)
            rest = {m: c for m, c in gap.terms.items() if m not in (here, there, ())}
            if rest or gap.terms.get(there, 0) != -factor:
                continue
            if (factor == 0 and gap.offset) or (factor and (gap.offset == 0 or gap.offset % factor)):
                return True
        return False

    def distance(self, forward: bool) -> int | None:
        """Iterations from one access to the other, 0 when not one number, None when they never meet.

        ``forward``: the first access comes in the earlier iteration.
        """
        ahead = Polynomial.name(self.there) - Polynomial.name(self.here)
        ahead = ahead if forward else -ahead
        facts = [*self.facts, ahead - 1]
        facts += linear.products(facts, self.gaps)
        if linear.impossible(self.gaps, facts):
            return None
        low, high = linear.span(ahead, self.gaps, facts)
        return low if low is not None and low == high else 0
