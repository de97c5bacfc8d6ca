"""NumPy's functions that make new arrays: filled, counted, listed."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.frontend import functions, promotion
from hpcagent_bench.translators.frontend.arrays import Array, Axis, Index, Maker, Value, mapped
from hpcagent_bench.translators.frontend.promotion import Mismatch, Operand
from hpcagent_bench.translators.frontend.sums import ONE, ZERO, divided, known, minus, number, plus, times

if TYPE_CHECKING:
    from hpcagent_bench.translators.frontend.reading import ExpressionReader

Options = dict[str, ast.expr]


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


CALLS: dict[str, Callable[[ExpressionReader, list[ast.expr], Options], Value]] = {
    **{"empty": _new(0), "zeros": _new(0), "ones": _new(1), "full": _full, "full_like": _full_like},
    **{"empty_like": _like(0), "zeros_like": _like(0), "ones_like": _like(1)},
    **{"arange": _arange, "linspace": _linspace, "eye": _eye, "identity": _eye},
    **{"array": _array, "asarray": _array, "ascontiguousarray": _array},
}
