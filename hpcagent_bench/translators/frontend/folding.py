"""Reductions and running sums as loops: with a scalar, or growing in an array to read memory in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.frontend import functions, overlap, promotion
from hpcagent_bench.translators.frontend.arrays import Array, Axis, Fold, Index, Scan, flattened, moved
from hpcagent_bench.translators.frontend.promotion import Mismatch, Operand, constant
from hpcagent_bench.translators.frontend.sums import ONE, ZERO, minus

if TYPE_CHECKING:
    from hpcagent_bench.translators.frontend.lowering import Lowering

NAMES = {
    **{"sum": "total", "prod": "product", "min": "least", "max": "largest", "any": "found", "all": "holds"},
    **{"argmin": "where", "argmax": "where"},
}
"""What the local or array that holds a reduction is called when the reference gives it no name."""

_OPERATORS = {"sum": "+", "prod": "*"}
_EXTREMA = {"min": "minimum", "max": "maximum"}


def accumulator(kind: str, dtype: str) -> str:
    """The dtype of a reduction's result: sums of small integers are 64 bits wide."""
    if kind in ("any", "all"):
        return "bool"
    if kind in ("argmin", "argmax"):
        return "int64"
    if kind in _OPERATORS and promotion.kind(dtype) in ("bool", "int"):
        return "uint64" if dtype.startswith("u") else "int64"
    return dtype


def dtype_of(fold: Fold) -> str:
    return accumulator(fold.kind, fold.term.dtype)


def array_of(fold: Fold) -> Array:
    """The reduction as an array value."""
    return value_of(fold, fold.term.axes[: fold.kept], dtype_of(fold))


def value_of(source: Fold | Scan, axes: tuple[Axis, ...], dtype: str) -> Array:
    if isinstance(source, Fold):
        return Array(axes, dtype, lambda index, maker: maker.folded(source, index), fold=source, costly=True)
    return Array(axes, dtype, lambda index, maker: maker.scanned(source, index), scan=source, costly=True)


def without_first_axis(value: Array) -> Array:
    return moved(value, value.axes[1:], lambda index: (ZERO, *index))


def step(kind: str, so_far: Operand, value: Operand) -> Operand:
    """One step of a reduction; the value has the accumulator's dtype."""
    if kind in _OPERATORS:
        return promotion.binary(_OPERATORS[kind], so_far, value)
    if kind in _EXTREMA:
        result = functions.apply(_EXTREMA[kind], (so_far, value))
        assert result is not None
        return result
    return Operand(ir.Logical("or" if kind == "any" else "and", (so_far.expr, promotion.truth(value))))


def first(kind: str, dtype: str) -> Operand:
    """What a reduction starts from."""
    return Operand(constant(1 if kind in ("prod", "all") else 0, dtype))


def taken(value: Operand, kind: str, dtype: str) -> Operand:
    """An element as the reduction takes it."""
    return value if kind in ("any", "all") else Operand(promotion.convert(value, dtype))


# ---- with a scalar


def inline(low: Lowering, fold: Fold, index: Index) -> Operand:
    """The loop of one reduction, at the point where it is needed; its result is a local."""
    if fold.kind in ("argmin", "argmax"):
        return _position(low, fold, index)
    term, gone = fold.term, fold.term.axes[fold.kept :]
    dtype, name = dtype_of(fold), low.result_name(NAMES[fold.kind])
    if fold.kind in _EXTREMA:
        if term.guard is not None:
            raise Mismatch(f"np.{fold.kind} of elements that a mask selects")
        start = term.element((*index, *(ZERO for _ in gone)), low)
    else:
        start = first(fold.kind, dtype)
    so_far = low.define(name, start)

    def write(rest: Index) -> None:
        def advance() -> None:
            value = taken(term.element((*index, *rest), low), fold.kind, dtype)
            low.define(name, step(fold.kind, so_far, value))

        if term.guard is None:
            advance()
        else:
            with low.branch(promotion.truth(term.guard.element((*index, *rest), low))):
                advance()

    low.over(gone, write, first=1 if fold.kind in _EXTREMA and len(gone) == 1 else 0)
    return so_far


def _position(low: Lowering, fold: Fold, index: Index) -> Operand:
    """Where the first of the largest (smallest) elements stands; a NaN comes before any number."""
    term, gone = fold.term, fold.term.axes[fold.kept :]
    if term.guard is not None or promotion.kind(term.dtype) == "complex":
        raise Mismatch(f"np.{fold.kind} of {term.dtype} elements or elements that a mask selects")
    best_name = low.fresh("largest" if fold.kind == "argmax" else "least")
    where_name = low.fresh("where")
    best = low.define(best_name, term.element((*index, *(ZERO for _ in gone)), low))
    where = low.define(where_name, Operand(ir.Const(0, "int64")))
    shape = Array(gone, "int64", lambda at, _: Operand(at[0]))

    def write(rest: Index) -> None:
        value = term.element((*index, *rest), low)
        if not isinstance(value.expr, (ir.Load, ir.Name)):
            value = low.keep("value", value)
        test: ir.Expr = ir.Compare(">" if fold.kind == "argmax" else "<", value.expr, best.expr)
        if promotion.kind(term.dtype) == "bool":
            test = ir.Compare("!=", value.expr, best.expr)
            wanted = value.expr if fold.kind == "argmax" else ir.Unary("not", value.expr, "bool")
            test = ir.Logical("and", (test, wanted))
        elif promotion.kind(term.dtype) == "float":
            fresh = (ir.Compare("!=", value.expr, value.expr), ir.Compare("==", best.expr, best.expr))
            test = ir.Logical("or", (test, ir.Logical("and", fresh)))
        with low.branch(test):
            low.define(best_name, value)
            low.define(where_name, Operand(flattened(shape, rest)))

    low.over(gone, write, first=1 if len(gone) == 1 else 0)
    return where


# ---- growing in an array


class _Probe:
    """A maker that writes nothing: for a look at what an element loads."""

    def held(self, array: Array, index: Index) -> Operand:
        return Operand(ir.Name("probe", array.dtype))

    def folded(self, fold: Fold, index: Index) -> Operand:
        return Operand(ir.Name("probe", dtype_of(fold)))

    def scanned(self, scan: Scan, index: Index) -> Operand:
        return Operand(ir.Name("probe", accumulator(scan.kind, scan.term.dtype)))


PROBE = _Probe()


def probing(low: Lowering, term: Array) -> Callable[[Index], None]:
    """Computes elements and does nothing with them."""

    def write(index: Index) -> None:
        low.keep("probe", term.element(index, low))

    return write


def across(fold: Fold) -> bool:
    """Whether memory lies along the last axis kept, so that a sum in a scalar would jump through it."""
    if fold.kind not in ("sum", "prod", "min", "max", "any", "all") or fold.term.guard is not None:
        return False
    names = tuple(ir.Name(f"axis {k}", "int64") for k in range(fold.term.rank))
    if not fold.kept or fold.term.axes[fold.kept - 1].single:
        return False
    last = names[fold.kept - 1].name
    element = fold.term.element(names, PROBE)
    lines = [node.index[-1] for node in ir.walk(element.expr) if isinstance(node, ir.Load) and node.index]
    return any(last in ir.reads(line) for line in lines)


def grows(low: Lowering, target: Array, value: Array) -> bool:
    """Whether a reduction may grow in the target itself: same dtype, and nothing it reads is written."""
    fold, start = value.fold, value.start
    assert fold is not None
    assert target.place is not None
    name = target.place.array
    dtype = dtype_of(fold)
    if not across(fold) or low.arrays[name].dtype != dtype or value.dtype != dtype or not fold.kept:
        return False
    if (start is not None and fold.kind != "sum") or target.copied:
        return False
    with low.statement_block() as terms:
        low.over(fold.term.axes, probing(low, fold.term))
    with low.statement_block() as stores:
        low.over(target.axes, lambda index: low.put(target, index, first("sum", dtype)))
    if not overlap.disjoint(tuple(stores), overlap.loads(tuple(terms), name), name, low.known):
        return False
    if start is None:
        return True
    with low.statement_block() as opening:
        low.over(target.axes, lambda index: low.put(target, index, start.element(index, low)))
    return overlap.ordered(tuple(opening), name, low.known, turn=False) is not None


def grow(low: Lowering, target: Array, value: Array) -> None:
    """The reduction with its last kept axis innermost, so that all memory is read in order."""
    fold, start = value.fold, value.start
    assert fold is not None
    assert target.place is not None
    kept, gone, dtype = fold.term.axes[: fold.kept], fold.term.axes[fold.kept :], dtype_of(fold)
    axes = target.axes
    sign = value.sign

    def opening(index: Index) -> None:
        if start is not None:
            low.put(target, index, start.element(index, low))
        elif fold.kind in _EXTREMA:
            low.put(target, index, fold.term.element((*index, *(ZERO for _ in gone)), low))
        else:
            low.put(target, index, first(fold.kind, dtype))

    def advance(index: Index, rest: Index) -> None:
        so_far, element = target.element(index, low), fold.term.element((*index, *rest), low)
        element = taken(element, fold.kind, dtype)
        if sign == "-":
            low.put(target, index, promotion.binary("-", so_far, element))
        else:
            low.put(target, index, step(fold.kind, so_far, element))

    def rows(outer: Index) -> None:
        if start is None or not _is(start, target):
            low.over(axes[-1:], lambda last: opening((*outer, *last)))
        low.over(
            gone,
            lambda rest: low.over(axes[-1:], lambda last: advance((*outer, *last), rest)),
            first=1 if fold.kind in _EXTREMA and len(gone) == 1 else 0,
        )

    assert len(axes) == len(kept)
    low.over(axes[:-1], rows)
    after = value.after
    if after is not None:
        low.over(axes, lambda index: low.put(target, index, after(target.element(index, low))))


def _is(start: Array, target: Array) -> bool:
    """Whether the start is the target itself."""
    if start.place is None or target.place is None or start.place.array != target.place.array:
        return False
    index = tuple(ir.Name(f"axis {k}", "int64") for k in range(target.rank))
    return start.rank == target.rank and start.place.locate(index) == target.place.locate(index)


# ---- running sums


def scan_into(low: Lowering, target: Array, scan: Scan) -> bool:
    """``target[...] = np.cumsum(term, axis)``; whether it is known that nothing is read too late."""
    assert target.place is not None
    name, dtype = target.place.array, accumulator(scan.kind, scan.term.dtype)
    with low.statement_block() as terms:
        low.over(scan.term.axes, probing(low, scan.term))
    inside = bool(overlap.loads(tuple(terms), name)) or low.arrays[name].dtype != dtype
    if scan.axis == scan.term.rank - 1 or inside:
        _scan_with_scalar(low, target, scan, dtype)
        return False
    before, after = target.axes[: scan.axis], target.axes[scan.axis + 1 :]

    def element(outer: Index, at: ir.Expr, inner: Index) -> Operand:
        return Operand(promotion.convert(scan.term.element((*outer, at, *inner), low), dtype))

    def planes(outer: Index) -> None:
        low.over(after, lambda inner: low.put(target, (*outer, ZERO, *inner), element(outer, ZERO, inner)))
        low.over(
            (target.axes[scan.axis],), lambda at: low.over(after, lambda inner: row(outer, at[0], inner)), 1
        )

    def row(outer: Index, at: ir.Expr, inner: Index) -> None:
        so_far = target.element((*outer, minus(at, ONE), *inner), low)
        low.put(target, (*outer, at, *inner), step(scan.kind, so_far, element(outer, at, inner)))

    low.over(before, planes)
    return True


def _scan_with_scalar(low: Lowering, target: Array, scan: Scan, dtype: str) -> None:
    others = [k for k in range(target.rank) if k != scan.axis]
    name = low.fresh(NAMES[scan.kind])

    def line(outer: Index) -> None:
        so_far = low.define(name, first(scan.kind, dtype))

        def write(at: Index) -> None:
            index = list(outer)
            index.insert(scan.axis, at[0])
            value = Operand(promotion.convert(scan.term.element(tuple(index), low), dtype))
            low.define(name, step(scan.kind, so_far, value))
            low.put(target, tuple(index), so_far)

        low.over((target.axes[scan.axis],), write)

    low.over([target.axes[k] for k in others], line)
