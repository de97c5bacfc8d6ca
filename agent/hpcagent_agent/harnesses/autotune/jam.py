"""Unroll-and-jam: several iterations of an outer loop advance together through the inner one.

Each element of what the iterations share is then loaded once for all of them, and chains of dependent
operations run side by side. Triangular ranges are cut: what only some of the iterations have comes before or
after the common part, in the original order.
"""

from __future__ import annotations

from dataclasses import replace

from . import ir
from .affine import Poly, feasible, to_expr
from .dependence import Access, Analysis, Loops
from .rewrite import add, larger, minus, num, rewrite, smaller


def jam(fn: ir.Function, analysis: Analysis, count: int) -> ir.Function:
    """Jams ``count`` iterations of every loop around an innermost one where the dependences allow it."""
    fresh = ir.Fresh(fn)

    def visit(stmt: ir.Stmt, outer: Loops) -> ir.Body | None:
        if not isinstance(stmt, ir.Loop) or stmt.step != 1:
            return None
        return _jam_loop(stmt, analysis, outer, count, fresh)

    return fn.with_body(rewrite(fn.body, visit))


def _jam_loop(loop: ir.Loop, analysis: Analysis, outer: Loops, count: int, fresh: ir.Fresh) -> ir.Body | None:
    inner_loops = [s for s in loop.body if isinstance(s, ir.Loop)]
    if len(inner_loops) != 1 or not ir.innermost(inner_loops[0]) or ir.has_raw(loop.body):
        return None
    inner = inner_loops[0]
    place = loop.body.index(inner)
    lead, trail = loop.body[:place], loop.body[place + 1 :]
    if inner.step != 1 or any(isinstance(s, ir.If) for s in (*lead, *trail)):
        return None
    bounds = _common_range(loop, inner, analysis, outer, count)
    if bounds is None or not _may_jam(loop, inner, lead, trail, analysis, outer, count):
        return None
    block = replace(loop, hi=minus(loop.hi, count - 1), step=count)
    body = _block_body(block, inner, lead, trail, bounds, (analysis, outer), count, fresh)
    done = ir.Bin("*", ir.Bin("/", minus(loop.hi, loop.lo), num(count)), num(count))
    rest = replace(loop, lo=add(loop.lo, done), floor=loop.lo)
    return replace(block, body=body), rest


def _common_range(
    loop: ir.Loop, inner: ir.Loop, analysis: Analysis, outer: Loops, count: int
) -> tuple[Poly, Poly] | None:
    """The inner range that all ``count`` iterations from ``loop.var`` on share."""
    around = (*outer, loop)
    lo, hi = analysis.poly(inner.lo, around), analysis.poly(inner.hi, around)
    if lo is None or hi is None:
        return None
    last = Poly.name(loop.var) + (count - 1)
    low, high = lo.coefficient(loop.var).constant, hi.coefficient(loop.var).constant
    if low is None or high is None:
        return None
    start = lo.substitute(loop.var, last) if low > 0 else lo
    end = hi.substitute(loop.var, last) if high < 0 else hi
    return start, end


def _may_jam(
    loop: ir.Loop, inner: ir.Loop, lead: ir.Body, trail: ir.Body, analysis: Analysis, outer: Loops, count: int
) -> bool:
    if analysis.blocks_jam(loop, inner, outer, count):
        return False
    private = set(ir.declared(loop.body))

    def accesses(body: ir.Body) -> list[Access]:
        return [a for a in analysis.accesses(body, outer, (loop,)) if a.array not in private]

    def near(v1: Poly, v2: Poly) -> list[Poly]:
        return [v2 - v1 - 1, v1 - v2 + (count - 1)]

    first, middle, last = accesses(lead), accesses((inner,)), accesses(trail)
    pairs = [(x, y) for x in (*middle, *last) for y in first] + [(x, y) for x in last for y in middle]
    return not any(analysis.conflict(x, y, outer, near) for x, y in pairs)


def _block_body(
    block: ir.Loop,
    inner: ir.Loop,
    lead: ir.Body,
    trail: ir.Body,
    bounds: tuple[Poly, Poly],
    where: tuple[Analysis, Loops],
    count: int,
    fresh: ir.Fresh,
) -> ir.Body:
    analysis, outer = where
    start, end = to_expr(bounds[0]), to_expr(bounds[1])
    lower = analysis.poly(inner.lo, (*outer, block))
    upper = analysis.poly(inner.hi, (*outer, block))
    domain = analysis.domain((*outer, block))
    within = not feasible([*domain, bounds[0] - bounds[1] - 1])  # start <= end always
    leads: list[ir.Stmt] = []
    prefixes: list[ir.Stmt] = []
    jammed: list[ir.Stmt] = []
    suffixes: list[ir.Stmt] = []
    trails: list[ir.Stmt] = []
    for k in range(count):
        at = add(ir.Name(block.var), k)
        names = {name: fresh(f"{name}_{k}") for name in ir.declared((*lead, *trail))} if k else {}
        inside = names | ({name: fresh(f"{name}_{k}") for name in ir.declared(inner.body)} if k else {})

        def copy(body: ir.Body, own: dict[str, str], at: ir.Expr = at) -> ir.Body:
            return ir.rename(ir.substitute(body, {block.var: at}), own)

        own = copy((inner,), inside)[0]
        assert isinstance(own, ir.Loop)
        leads += copy(lead, names)
        trails += copy(trail, names)
        jammed += own.body
        low, high = to_expr(_at(lower, block, k)), to_expr(_at(upper, block, k))
        if low != start:
            prefixes.append(replace(own, lo=low, hi=start if within else smaller(start, high)))
        if high != end:
            suffixes.append(replace(own, lo=end if within else larger(start, end), hi=high))
    common = replace(inner, lo=start, hi=end, body=tuple(jammed))
    return (*leads, *prefixes, common, *suffixes, *trails)


def _at(poly: Poly | None, loop: ir.Loop, k: int) -> Poly:
    assert poly is not None
    return poly.substitute(loop.var, Poly.name(loop.var) + k)
