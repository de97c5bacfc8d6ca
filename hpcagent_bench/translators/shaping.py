"""NumPy's functions that make arrays or look at the same elements in another shape or order."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from hpcagent_bench.translators import functions, ir, promotion
from hpcagent_bench.translators.arrays import (
    Array,
    Axis,
    Index,
    Maker,
    Value,
    cast_to,
    mapped,
    moved,
    reshaped,
    transposed,
)
from hpcagent_bench.translators.promotion import Mismatch, Operand
from hpcagent_bench.translators.subscripts import Part, Slice, subscript
from hpcagent_bench.translators.sums import ONE, ZERO, divided, known, minus, number, plus, times

if TYPE_CHECKING:
    from hpcagent_bench.translators.reading import ExpressionReader

Options = dict[str, ast.expr]


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


# ---- new arrays


def extents(reader: ExpressionReader, node: ast.expr) -> tuple[Axis, ...]:
    """The axes of a shape: a number, a tuple, or ``a.shape``."""
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return tuple(_axis(reader, reader.integer(part)) for part in parts)
        case ast.Attribute(value=of, attr="shape"):
            return tuple(replace(axis, origin=ZERO) for axis in reader.array(of).axes)
        case _:
            return (_axis(reader, reader.integer(node)),)


def _axis(reader: ExpressionReader, extent: ir.Expr) -> Axis:
    return Axis(extent, reader.limit(extent), spelled=reader.known.expanded(extent))


def filled(axes: tuple[Axis, ...], value: Operand, dtype: str) -> Array:
    """One value everywhere; ``dtype`` as in memory."""
    element = Operand(promotion.convert(value, ir.computes_in(dtype)))
    return Array(axes, ir.computes_in(dtype), lambda index, maker: element, stored_as=dtype)


def _new(value: int) -> Callable[[ExpressionReader, list[ast.expr], Options], Value]:
    def call(reader: ExpressionReader, args: list[ast.expr], options: Options) -> Value:
        if not 1 <= len(args) <= 2 or not set(options) <= {"dtype", "shape"}:
            raise Mismatch("an array with these arguments")
        dtype = options.get("dtype", args[1] if len(args) == 2 else None)
        return filled(
            extents(reader, args[0]),
            promotion.python(value),
            "float64" if dtype is None else reader.element_type(dtype),
        )

    return call


def _like(value: int) -> Callable[[ExpressionReader, list[ast.expr], Options], Value]:
    def call(reader: ExpressionReader, args: list[ast.expr], options: Options) -> Value:
        if len(args) != 1 or not set(options) <= {"dtype"}:
            raise Mismatch("an array with these arguments")
        model = reader.array(args[0])
        axes = tuple(replace(axis, origin=ZERO) for axis in model.axes)
        dtype = reader.element_type(options["dtype"]) if "dtype" in options else reader.memory_dtype(model)
        return filled(axes, promotion.python(value), dtype)

    return call


def _full(reader: ExpressionReader, args: list[ast.expr], options: Options) -> Value:
    value = functions.strong(reader.expr(args[1] if len(args) > 1 else options["fill_value"]))
    dtype = reader.element_type(options["dtype"]) if "dtype" in options else value.dtype
    return filled(extents(reader, args[0]), value, dtype)


def _full_like(reader: ExpressionReader, args: list[ast.expr], options: Options) -> Value:
    model, value = reader.array(args[0]), reader.expr(args[1])
    axes = tuple(replace(axis, origin=ZERO) for axis in model.axes)
    dtype = reader.element_type(options["dtype"]) if "dtype" in options else reader.memory_dtype(model)
    return filled(axes, value, dtype)


def _arange(reader: ExpressionReader, args: list[ast.expr], options: Options) -> Value:
    values = [reader.expr(arg) for arg in args]
    if not 1 <= len(values) <= 3 or not set(options) <= {"dtype"}:
        raise Mismatch("np.arange with these arguments")
    if any(not ir.is_integer(value.dtype) for value in values):
        raise Mismatch("np.arange of fractions")
    ends = [promotion.convert(value, "int64") for value in values]
    start, stop = (ends[0], ends[1]) if len(ends) > 1 else (ZERO, ends[0])
    step = ends[2] if len(ends) > 2 else ONE
    by = known(step)
    if by is None or by == 0:
        raise Mismatch("np.arange with a step that is no number")
    count = divided(plus(minus(stop, start) if by > 0 else minus(start, stop), number(abs(by) - 1)), abs(by))
    dtype = reader.element_type(options["dtype"]) if "dtype" in options else "int64"

    def element(index: Index, _: Maker) -> Operand:
        return promotion.cast(Operand(plus(start, times(index[0], step))), dtype)

    return Array((_axis(reader, count),), dtype, element)


def _linspace(reader: ExpressionReader, args: list[ast.expr], options: Options) -> Value:
    """Equal steps; the last element is the end itself."""
    count = options.get("num", args[2] if len(args) > 2 else None)
    if count is None or not set(options) <= {"num"}:
        raise Mismatch("np.linspace with these arguments")
    start, stop = (promotion.cast(reader.expr(arg), "float64") for arg in args[:2])
    extent = reader.integer(count)
    last = Operand(minus(extent, ONE), True)
    steps = Operand(ir.Call("max", (last.expr, ONE), "int64"), True)
    step = promotion.binary("/", promotion.binary("-", stop, start), promotion.cast(steps, "float64"))

    def element(index: Index, _: Maker) -> Operand:
        at = Operand(index[0], True)
        inner = promotion.binary("+", promotion.binary("*", at, step), start)
        ends = ir.Logical("and", (ir.Compare("==", at.expr, last.expr), ir.Compare(">", at.expr, ZERO)))
        return Operand(ir.Select(ends, stop.expr, inner.expr, "float64"))

    return Array((_axis(reader, extent),), "float64", element)


def _eye(reader: ExpressionReader, args: list[ast.expr], options: Options) -> Value:
    if not 1 <= len(args) <= 2 or not set(options) <= {"dtype"}:
        raise Mismatch("an identity with these arguments")
    rows = _axis(reader, reader.integer(args[0]))
    columns = _axis(reader, reader.integer(args[1])) if len(args) > 1 else rows
    dtype = reader.element_type(options["dtype"]) if "dtype" in options else "float64"

    def element(index: Index, _: Maker) -> Operand:
        one, zero = (promotion.constant(value, ir.computes_in(dtype)) for value in (1, 0))
        return Operand(ir.Select(ir.Compare("==", index[0], index[1]), one, zero, ir.computes_in(dtype)))

    return Array((rows, columns), ir.computes_in(dtype), element, stored_as=dtype)


def _array(reader: ExpressionReader, args: list[ast.expr], options: Options) -> Value:
    """``np.array`` of an array or of a list of scalars (or of rows of these)."""
    if len(args) != 1 or not set(options) <= {"dtype"}:
        raise Mismatch("np.array with these arguments")
    dtype = reader.element_type(options["dtype"]) if "dtype" in options else None
    if not isinstance(args[0], (ast.List, ast.Tuple)):
        value = reader.read(args[0])
        if dtype is not None:
            wanted = dtype
            value = mapped(lambda x: promotion.cast(x, ir.computes_in(wanted)), value)
        return (
            replace(value, copied=True, stored_as=dtype or value.stored_as)
            if isinstance(value, Array)
            else value
        )
    rows = [row.elts if isinstance(row, (ast.List, ast.Tuple)) else None for row in args[0].elts]
    flat = [part for row in rows if row is not None for part in row] if rows[0] is not None else args[0].elts
    values = [reader.expr(part) for part in flat]
    kind = dtype or promotion.common(*values)
    axes = [Axis(number(len(args[0].elts)), number(len(args[0].elts)))]
    if rows[0] is not None:
        if len({len(row or ()) for row in rows}) != 1:
            raise Mismatch("np.array of rows of different lengths")
        axes.append(Axis(number(len(rows[0])), number(len(rows[0]))))
    return reader.literal(
        tuple(axes), [promotion.convert(value, ir.computes_in(kind)) for value in values], kind
    )


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
    from hpcagent_bench.translators.arrays import Fold
    from hpcagent_bench.translators.folding import array_of

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
    **{"empty": _new(0), "zeros": _new(0), "ones": _new(1), "full": _full, "full_like": _full_like},
    **{"empty_like": _like(0), "zeros_like": _like(0), "ones_like": _like(1)},
    **{"arange": _arange, "linspace": _linspace, "eye": _eye, "identity": _eye, "array": _array},
    **{"asarray": _array, "ascontiguousarray": _array, "moveaxis": _moveaxis, "expand_dims": _expand_dims},
    **{"broadcast_to": _broadcast_to, "flip": _flip(None), "flipud": _flip((0,)), "fliplr": _flip((1,))},
    **{"roll": _roll, "diff": _diff, "diag": _diag, "tril": _triangle(True), "triu": _triangle(False)},
    **{"concatenate": _concatenate},
}
