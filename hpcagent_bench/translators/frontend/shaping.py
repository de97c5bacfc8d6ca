"""NumPy's functions that look at the same elements in another shape or order."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.frontend import functions, making, promotion
from hpcagent_bench.translators.frontend.arrays import (
    Array,
    Axis,
    Fold,
    Index,
    Maker,
    Value,
    cast_to,
    mapped,
    moved,
    reshaped,
    transposed,
)
from hpcagent_bench.translators.frontend.folding import array_of
from hpcagent_bench.translators.frontend.making import Options, extents, filled
from hpcagent_bench.translators.frontend.promotion import Mismatch, Operand
from hpcagent_bench.translators.frontend.subscripts import Part, Slice, subscript
from hpcagent_bench.translators.frontend.sums import ONE, ZERO, known, minus, number, plus

if TYPE_CHECKING:
    from hpcagent_bench.translators.frontend.reading import ExpressionReader


def axis_number(reader: ExpressionReader, node: ast.expr, rank: int) -> int:
    """A literal axis, counted from the front."""
    axis = known(reader.integer(node))
    if axis is None or not -rank <= axis < rank:
        raise Mismatch(f"axis {ast.unparse(node)}")
    return axis % rank


def axes_last(value: Array, last: list[int]) -> Array:
    """The named axes moved behind the others."""
    order = tuple([k for k in range(value.rank) if k not in last] + last)
    if order == tuple(range(value.rank)):
        return value
    turned = transposed(value, order)
    return replace(turned, guard=value.guard and transposed(value.guard, order))


def with_axis(value: Array, at: int) -> Array:
    """A new axis of extent one before axis ``at``."""
    axes = (*value.axes[:at], Axis(ONE, ONE), *value.axes[at:])
    return moved(value, axes, lambda index: (*index[:at], *index[at + 1 :]))


def whole(rank: int, parts: dict[int, Part]) -> list[Part]:
    """Subscripts of all axes, full slices where nothing else is given."""
    return [parts.get(k, Slice(None, None)) for k in range(rank)]


def part_of(reader: ExpressionReader, value: Array, parts: dict[int, Part]) -> Array:
    return subscript(value, whole(value.rank, parts), reader.known)


def copied(reader: ExpressionReader, value: Array) -> Array:
    """The same elements, which NumPy copies: a name for them gets memory of its own."""
    return replace(value, copied=True)


# ---- the same elements, seen otherwise


def _transpose(reader: ExpressionReader, value: Array, args: list[ast.expr], options: Options) -> Value:
    nodes = args or ([options["axes"]] if "axes" in options else [])
    if len(nodes) == 1 and isinstance(nodes[0], (ast.Tuple, ast.List)):
        nodes = nodes[0].elts
    order = [axis_number(reader, node, value.rank) for node in nodes]
    return transposed(value, tuple(order or reversed(range(value.rank))))


def _reshape(reader: ExpressionReader, value: Array, args: list[ast.expr], options: Options) -> Value:
    nodes = args[0].elts if len(args) == 1 and isinstance(args[0], (ast.Tuple, ast.List)) else args
    if options or not nodes or value.guard is not None:
        raise Mismatch("a reshape with these arguments")
    if len(nodes) == 1 and isinstance(nodes[0], ast.Attribute):
        shape: list[ir.Expr | None] = [axis.extent for axis in extents(reader, nodes[0])]
    else:
        shape = [None if known(extent) == -1 else extent for extent in map(reader.integer, nodes)]
    return _contiguous(reader, value, reshaped(value, shape, reader.limit))


def _ravel(reader: ExpressionReader, value: Array, args: list[ast.expr], options: Options) -> Value:
    if args or options or value.guard is not None:
        raise Mismatch("a flat array with these arguments")
    return value if value.rank == 1 else _contiguous(reader, value, reshaped(value, [None], reader.limit))


def _flatten(reader: ExpressionReader, value: Array, args: list[ast.expr], options: Options) -> Value:
    result = _ravel(reader, value, args, options)
    assert isinstance(result, Array)
    return replace(result, copied=True)


def _contiguous(reader: ExpressionReader, before: Array, after: Array) -> Array:
    """A reshaped array is a view of a whole array in memory, and a copy of anything else."""
    return after if reader.is_whole(before) else replace(after, copied=True)


def _swapaxes(reader: ExpressionReader, value: Array, args: list[ast.expr], options: Options) -> Value:
    a, b = (axis_number(reader, node, value.rank) for node in args)
    order = list(range(value.rank))
    order[a], order[b] = order[b], order[a]
    return transposed(value, tuple(order))


def _moveaxis(reader: ExpressionReader, args: list[ast.expr], options: Options) -> Value:
    value = reader.array(args[0])
    source, target = (axis_number(reader, node, value.rank) for node in args[1:])
    order = [k for k in range(value.rank) if k != source]
    order.insert(target, source)
    return transposed(value, tuple(order))


def _squeeze(reader: ExpressionReader, value: Array, args: list[ast.expr], options: Options) -> Value:
    kept = [k for k, axis in enumerate(value.axes) if not axis.single]
    parts: dict[int, Part] = {k: promotion.python(0) for k in range(value.rank) if k not in kept}
    return subscript(value, whole(value.rank, parts), reader.known)


def _expand_dims(reader: ExpressionReader, args: list[ast.expr], options: Options) -> Value:
    value = reader.array(args[0])
    node = args[1] if len(args) > 1 else options["axis"]
    return with_axis(value, axis_number(reader, node, value.rank + 1))


def _broadcast_to(reader: ExpressionReader, args: list[ast.expr], options: Options) -> Value:
    value, axes = reader.read(args[0]), extents(reader, args[1])
    if isinstance(value, Operand):
        return filled(axes, functions.strong(value), functions.strong(value).dtype)
    return replace(cast_to(value, axes), copied=True)


def _flip(axes: tuple[int, ...] | None) -> Callable[[ExpressionReader, list[ast.expr], Options], Value]:
    def call(reader: ExpressionReader, args: list[ast.expr], options: Options) -> Value:
        value = reader.array(args[0])
        chosen = axes if axes is not None else tuple(range(value.rank))
        node = args[1] if len(args) > 1 else options.get("axis")
        if node is not None:
            chosen = (axis_number(reader, node, value.rank),)
        return part_of(reader, value, {k: Slice(None, None, -1) for k in chosen})

    return call


def _roll(reader: ExpressionReader, args: list[ast.expr], options: Options) -> Value:
    """Elements shifted around along an axis: element i is the old one at (i - shift) modulo the extent."""
    value, shift = reader.array(args[0]), reader.integer(args[1])
    node = args[2] if len(args) > 2 else options.get("axis")
    if node is None and value.rank > 1:
        raise Mismatch("np.roll of a matrix without an axis")
    axis = 0 if node is None else axis_number(reader, node, value.rank)
    extent = value.axes[axis].extent

    def back(index: Index) -> Index:
        place = ir.Binary("%", minus(index[axis], shift), extent, "int64")
        return (*index[:axis], place, *index[axis + 1 :])

    axes = tuple(replace(a, origin=ZERO) if k == axis else a for k, a in enumerate(value.axes))
    return replace(moved(value, axes, back), copied=True)


def _diff(reader: ExpressionReader, args: list[ast.expr], options: Options) -> Value:
    value = reader.array(args[0])
    node = options.get("axis")
    if len(args) > 1 or not set(options) <= {"axis"}:
        raise Mismatch("np.diff with these arguments")
    axis = value.rank - 1 if node is None else axis_number(reader, node, value.rank)
    one = Slice(ONE, None), Slice(None, number(-1))
    later, earlier = (part_of(reader, value, {axis: part}) for part in one)
    op = "!=" if value.dtype == "bool" else "-"
    if op == "!=":
        return mapped(lambda x, y: promotion.compare("!=", x, y), later, earlier)
    return mapped(lambda x, y: promotion.binary("-", x, y), later, earlier)


def _diagonal(reader: ExpressionReader, value: Array, args: list[ast.expr], options: Options) -> Value:
    if value.rank != 2 or args or options:
        raise Mismatch("a diagonal with these arguments")
    rows, columns = value.axes
    shorter = rows
    if rows.extent != columns.extent:
        extent = ir.Call("min", (rows.extent, columns.extent), "int64")
        shorter = Axis(extent, rows.limit)
    return moved(value, (replace(shorter, origin=ZERO),), lambda index: (index[0], index[0]))


def _trace(reader: ExpressionReader, value: Array, args: list[ast.expr], options: Options) -> Value:
    diagonal = _diagonal(reader, value, args, options)
    assert isinstance(diagonal, Array)
    return array_of(Fold("sum", diagonal, 1))


def _diag(reader: ExpressionReader, args: list[ast.expr], options: Options) -> Value:
    value = reader.array(args[0])
    if value.rank == 2:
        return _diagonal(reader, value, args[1:], options)
    zero = promotion.constant(0, value.dtype)

    def element(index: Index, maker: Maker) -> Operand:
        here = value.element((index[0],), maker)
        return Operand(ir.Select(ir.Compare("==", index[0], index[1]), here.expr, zero, value.dtype))

    return Array((value.axes[0], value.axes[0]), value.dtype, element)


def _triangle(lower: bool) -> Callable[[ExpressionReader, list[ast.expr], Options], Value]:
    def call(reader: ExpressionReader, args: list[ast.expr], options: Options) -> Value:
        value = reader.array(args[0])
        node = args[1] if len(args) > 1 else options.get("k")
        shift = ZERO if node is None else reader.integer(node)
        zero = promotion.constant(0, value.dtype)

        def element(index: Index, maker: Maker) -> Operand:
            test = ir.Compare("<=" if lower else ">=", index[-1], plus(index[-2], shift))
            return Operand(ir.Select(test, value.element(index, maker).expr, zero, value.dtype))

        return Array(value.axes, value.dtype, element)

    return call


def _concatenate(reader: ExpressionReader, args: list[ast.expr], options: Options) -> Value:
    """Arrays one after the other along an axis."""
    if not isinstance(args[0], (ast.Tuple, ast.List)):
        raise Mismatch("arrays to join that are not listed")
    values = [reader.array(part) for part in args[0].elts]
    node = args[1] if len(args) > 1 else options.get("axis")
    axis = 0 if node is None else axis_number(reader, node, values[0].rank)
    return reader.joined(values, axis)


METHODS: dict[str, Callable[[ExpressionReader, Array, list[ast.expr], Options], Value]] = {
    "transpose": _transpose,
    "reshape": _reshape,
    "ravel": _ravel,
    "flatten": _flatten,
    "swapaxes": _swapaxes,
    "squeeze": _squeeze,
    "diagonal": _diagonal,
    "trace": _trace,
}
CALLS: dict[str, Callable[[ExpressionReader, list[ast.expr], Options], Value]] = {
    **making.CALLS,
    **{"moveaxis": _moveaxis, "expand_dims": _expand_dims, "broadcast_to": _broadcast_to},
    **{"flip": _flip(None), "flipud": _flip((0,)), "fliplr": _flip((1,)), "roll": _roll, "diff": _diff},
    **{"diag": _diag, "tril": _triangle(True), "triu": _triangle(False), "concatenate": _concatenate},
}
