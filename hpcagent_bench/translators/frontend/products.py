"""Matrix products as reductions: ``@``, ``np.dot``, ``np.outer``, ``np.einsum``."""

from __future__ import annotations

from dataclasses import replace

from hpcagent_bench.translators.frontend import promotion
from hpcagent_bench.translators.frontend.arrays import (
    Array,
    Axis,
    Fold,
    Index,
    Maker,
    Value,
    broadcast,
    mapped,
    narrowed,
)
from hpcagent_bench.translators.frontend.folding import array_of
from hpcagent_bench.translators.frontend.promotion import Mismatch, Operand
from hpcagent_bench.translators.frontend.sums import known, minus


def contracted(left: Array, right: Array, subscripts: tuple[str, str, str]) -> Array:
    """``np.einsum("left,right->result")`` of two operands, one letter an axis."""
    return einsum([left, right], list(subscripts[:2]), subscripts[2])


def einsum(operands: list[Array], letters: list[str], result: str) -> Array:
    """The sum over all letters that the result leaves out of the products of the operands' elements."""
    axes: dict[str, Axis] = {}
    for operand, names in zip(operands, letters, strict=True):
        if len(names) != operand.rank or operand.guard is not None:
            raise Mismatch("subscripts that do not fit the arrays")
        for name, axis in zip(names, operand.axes, strict=True):
            gap = known(minus(axes[name].extent, axis.extent)) if name in axes else 0
            if gap:
                raise Mismatch("a product of arrays of different shapes")
            axes.setdefault(name, axis)
    gone = [name for name in axes if name not in result]
    order = [*result, *gone]

    def element(index: Index, maker: Maker) -> Operand:
        at = dict(zip(order, index, strict=True))
        parts = [
            operand.element(tuple(at[name] for name in names), maker)
            for operand, names in zip(operands, letters, strict=True)
        ]
        return _product(parts)

    dtype = _product([operand.sample for operand in operands]).dtype
    term = Array(tuple(axes[name] for name in order), dtype, element)
    if not gone:
        return term

    def scaled(factor: Operand) -> Fold:
        first = mapped(lambda x: promotion.binary("*", factor, x), operands[0])
        assert isinstance(first, Array)
        result_ = einsum([first, *operands[1:]], letters, result).fold
        assert result_ is not None
        return result_

    fold = array_of(Fold("any" if dtype == "bool" else "sum", term, len(gone), scaled))
    if fold.dtype == dtype:
        return fold
    # products of narrow integers are summed in their own width, not in 64 bits as np.sum would
    return Array(fold.axes, dtype, lambda i, maker: promotion.cast(fold.element(i, maker), dtype))


def _product(parts: list[Operand]) -> Operand:
    result = parts[0]
    for part in parts[1:]:
        result = promotion.binary("*", result, part)
    return result


def matmul(left: Array, right: Array) -> Array:
    """``left @ right``; leading axes beyond two broadcast."""
    if left.guard is not None or right.guard is not None:
        raise Mismatch("a product of elements that a mask selects")
    match left.rank, right.rank:
        case 1, 1:
            return contracted(left, right, ("k", "k", ""))
        case 2, 1:
            return contracted(left, right, ("ik", "k", "i"))
        case 1, 2:
            return contracted(left, right, ("k", "kj", "j"))
        case 2, 2:
            return contracted(left, right, ("ik", "kj", "ij"))
        case (0, _) | (_, 0):
            raise Mismatch("'@' of a single value")
    return _stacked(left, right)


def _stacked(left: Array, right: Array) -> Array:
    if left.rank < 2 or right.rank < 2:
        if left.rank > right.rank:
            names = "abcdefgh"[: left.rank - 1]
            return contracted(left, right, (f"{names}k", "k", names))
        raise Mismatch("'@' of arrays of these ranks")
    stack = broadcast([left.axes[:-2], right.axes[:-2]])
    rows, inner, columns = left.axes[-2], left.axes[-1], right.axes[-1]

    def element(index: Index, maker: Maker) -> Operand:
        *above, i, j, k = index
        a = left.element((*narrowed(tuple(above), left.axes[:-2], stack), i, k), maker)
        b = right.element((*narrowed(tuple(above), right.axes[:-2], stack), k, j), maker)
        return promotion.binary("*", a, b)

    dtype = promotion.binary("*", left.sample, right.sample).dtype
    return array_of(Fold("sum", Array((*stack, rows, columns, inner), dtype, element), 1))


def with_factor(result: Value, left: Value, right: Value) -> Value:
    """Mark a sum of products times one number: its terms may be multiplied by that instead."""
    if not isinstance(result, Array) or promotion.kind(result.dtype) not in ("float", "complex"):
        return result
    for total, factor in ((left, right), (right, left)):
        plain = isinstance(total, Array) and total.after is None and total.start is None
        if isinstance(total, Array) and isinstance(factor, Operand) and plain and result.dtype == total.dtype:
            return replace(result, factor=factor)
    return result


def with_start(result: Value, op: str, left: Value, right: Value) -> Value:
    """Mark ``x + sum`` and ``x - sum``, so that the sum may grow on top of ``x``."""
    if op not in ("+", "-") or not isinstance(result, Array) or result.guard is not None:
        return result
    pairs = [(left, right), (right, left)] if op == "+" else [(left, right)]
    for start, total in pairs:
        if not isinstance(total, Array) or not isinstance(start, Array):
            continue
        fold = total.fold
        if fold is not None and total.factor is not None and fold.scaled is not None:
            fold = fold.scaled(total.factor)
        elif total.after is not None:
            fold = None
        fits = total.rank == start.rank == result.rank and start.dtype == result.dtype
        if fold is None or total.start is not None or not fits or fold.kind != "sum":
            continue
        if all(mine.like(other) for mine, other in zip(start.axes, total.axes, strict=True)):
            return replace(result, fold=fold, start=start, sign=op, after=None)
    return result
