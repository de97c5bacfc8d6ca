"""Loop order: splitting bodies, moving conditions inwards, swapping loops to walk memory in order."""

from __future__ import annotations

from dataclasses import replace

from . import ir
from .affine import Poly, to_expr
from .dependence import Analysis, Loops
from .rewrite import larger, rewrite, smaller

STRIDED_COST, UNKNOWN_COST = 8, 4


def reorder(fn: ir.Function, analysis: Analysis) -> ir.Function:
    """Splits and swaps every nest where that makes the innermost subscripts unit-stride."""

    def visit(stmt: ir.Stmt, outer: Loops) -> ir.Body | None:
        if not isinstance(stmt, ir.Loop) or ir.innermost(stmt):
            return None
        pieces = _split(stmt, analysis, outer)
        new = tuple(_reorder_nest(piece, analysis, outer) for piece in pieces)
        return new if any(a != b for a, b in zip(new, pieces, strict=True)) else None

    return fn.with_body(rewrite(fn.body, visit))


def _split(loop: ir.Loop, analysis: Analysis, outer: Loops) -> list[ir.Loop]:
    """The loop as several loops over parts of its body, cut wherever the dependences allow it."""
    if ir.has_raw(loop.body):
        return [loop]
    parts: list[ir.Body] = []
    start = 0
    for cut in range(1, len(loop.body)):
        if not analysis.blocks_split(loop, loop.body[:cut], loop.body[cut:], outer):
            parts.append(loop.body[start:cut])
            start = cut
    return [replace(loop, body=part) for part in (*parts, loop.body[start:])]


def _reorder_nest(loop: ir.Loop, analysis: Analysis, outer: Loops) -> ir.Loop:
    """The nest with its two loops swapped where that is legal and walks memory better."""
    nest = _push_condition(loop, analysis, outer)
    if len(nest.body) != 1 or not isinstance(inner := nest.body[0], ir.Loop):
        return loop
    if not ir.innermost(inner):
        deeper = _reorder_nest(inner, analysis, (*outer, nest))
        return replace(nest, body=(deeper,)) if deeper != inner else loop
    if ir.has_raw(inner.body) or _cost(nest, inner, analysis, outer) >= _cost(inner, nest, analysis, outer):
        return loop
    if analysis.blocks_interchange(nest, inner, outer):
        return loop
    swapped = _swap(nest, inner, analysis, outer)
    return loop if swapped is None else swapped


def _cost(candidate: ir.Loop, other: ir.Loop, analysis: Analysis, outer: Loops) -> int:
    """How badly memory is walked when ``candidate`` is the innermost loop."""
    nested = candidate if ir.innermost(candidate) else other
    around = (*outer, candidate, other)
    seen: set[tuple[str, Poly]] = set()
    cost = 0
    for access in analysis.accesses(nested.body, around):
        if access.dims == ():
            continue
        if access.flat is None:
            cost += UNKNOWN_COST
        elif (access.array, access.flat) not in seen:
            seen.add((access.array, access.flat))
            step = access.flat.coefficient(candidate.var)
            cost += 0 if not step.terms else 1 if abs(step.constant or STRIDED_COST) == 1 else STRIDED_COST
    return cost


def _push_condition(loop: ir.Loop, analysis: Analysis, outer: Loops) -> ir.Loop:
    """``for v: if (c) for w: B`` as ``for v: for w: if (c) B``, when B leaves c and the bounds alone."""
    if len(loop.body) != 1 or not isinstance(test := loop.body[0], ir.If):
        return loop
    if test.orelse or len(test.then) != 1 or not isinstance(inner := test.then[0], ir.Loop):
        return loop
    conditions = analysis.accesses((ir.Do(test.cond),), outer, (loop,))
    writes = [a for a in analysis.accesses((inner,), outer, (loop,)) if a.write]
    if any(
        analysis.conflict(c, w, outer, lambda v1, v2: [v1 - v2, v2 - v1]) for c in conditions for w in writes
    ):
        return loop
    return replace(loop, body=(replace(inner, body=(ir.If(test.cond, inner.body),)),))


def _swap(loop: ir.Loop, inner: ir.Loop, analysis: Analysis, outer: Loops) -> ir.Loop | None:
    """The swapped nest; None when the new bounds cannot be written down (one triangular side is fine)."""
    around = (*outer, loop)
    lo, hi = analysis.poly(inner.lo, around), analysis.poly(inner.hi, around)
    if lo is None or hi is None:
        return None
    low, high = lo.coefficient(loop.var), hi.coefficient(loop.var)
    if not low.terms and not high.terms:
        return replace(inner, body=(replace(loop, body=inner.body),))
    if loop.step != 1 or inner.step != 1:
        return None
    ends = analysis.poly(loop.lo, outer), analysis.poly(loop.hi, outer)
    if ends[0] is None or ends[1] is None:
        return None
    w, v = Poly.name(inner.var), Poly.name(loop.var)
    if low.constant == 1 and not high.terms:  # w >= v + c, so v <= w - c
        last = to_expr(w - (lo - v) + 1)
        middle = replace(loop, hi=smaller(loop.hi, last), body=inner.body)
        return replace(inner, lo=to_expr(lo.substitute(loop.var, ends[0])), body=(middle,))
    if high.constant == 1 and not low.terms:  # w < v + c, so v > w - c
        first = to_expr(w - (hi - v) + 1)
        middle = replace(loop, lo=larger(loop.lo, first), body=inner.body)
        return replace(inner, hi=to_expr(hi.substitute(loop.var, ends[1] - 1)), body=(middle,))
    return None
