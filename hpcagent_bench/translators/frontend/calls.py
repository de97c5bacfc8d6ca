"""Calls in a reference: NumPy's functions on arrays, methods of arrays, Python's own functions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.frontend import functions, products, promotion, shaping
from hpcagent_bench.translators.frontend.arrays import Array, Fold, Scan, Value, mapped, reshaped
from hpcagent_bench.translators.frontend.folding import accumulator, array_of, value_of
from hpcagent_bench.translators.frontend.promotion import Mismatch, Operand

if TYPE_CHECKING:
    from hpcagent_bench.translators.frontend.reading import ExpressionReader

Arguments = tuple[list[ast.expr], dict[str, ast.expr]]
_FOLDS = {
    **{"sum": "sum", "prod": "prod", "min": "min", "max": "max", "amin": "min", "amax": "max"},
    **{"any": "any", "all": "all", "argmin": "argmin", "argmax": "argmax"},
}
_SCANS = {"cumsum": "sum", "cumprod": "prod"}
_UFUNC_FOLDS = {"add": "sum", "multiply": "prod", "minimum": "min", "maximum": "max"}
_METHODS = (*_FOLDS, *_SCANS, "mean", "var", "std", "ptp", "astype", "copy", "reshape", "ravel", "flatten")
METHODS = (
    *_METHODS,
    "transpose",
    "swapaxes",
    "squeeze",
    "dot",
    "conj",
    "conjugate",
    "clip",
    "trace",
    "diagonal",
)


def call(reader: ExpressionReader, node: ast.Call) -> Value:
    """The value of a call."""
    options = {word.arg: word.value for word in node.keywords if word.arg is not None}
    result: Value | None = None
    match node.func:
        case ast.Name(id=name):
            result = reader.invoke(node, name)
            if result is None and not options:
                result = _builtin(reader, node, name)
        case ast.Attribute(value=ast.Name(id="np"), attr=name):
            result = _numpy(reader, node, name, options)
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="np"), attr="linalg"), attr="norm"):
            result = _norm(reader, node.args, options)
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="np"), attr=ufunc), attr=name):
            result = _of_ufunc(reader, node, ufunc, name, options)
        case ast.Attribute(value=of, attr=name):
            result = method(reader, name, reader.read(of), node.args, options, node)
    if result is None:
        raise reader.refusal(node, f"'{_text(node)}'")
    return reader.settled(result) if isinstance(result, Array) else result


def _text(node: ast.AST) -> str:
    line = " ".join(ast.unparse(node).split())
    return line if len(line) <= 60 else f"{line[:57]}..."


def _builtin(reader: ExpressionReader, node: ast.Call, name: str) -> Value | None:
    values = [reader.read(arg) for arg in node.args]
    if name == "len" and len(values) == 1 and isinstance(values[0], Array):
        return reader.extent(values[0].axes[0])
    if name == "abs" and len(values) == 1:
        return mapped(lambda x: functions.builtin("abs", (x,)) or x, values[0])
    scalars = tuple(value for value in values if isinstance(value, Operand))
    return functions.builtin(name, scalars) if len(scalars) == len(values) else None


def _numpy(reader: ExpressionReader, node: ast.Call, name: str, options: dict[str, ast.expr]) -> Value | None:
    """``np.name(...)``."""
    args = node.args
    if name in functions.DTYPES and len(args) == 1 and not options:
        dtype = functions.DTYPES[name]
        return mapped(lambda x: promotion.cast(x, dtype), reader.read(args[0]))
    if name == "where" and len(args) == 3 and not options:
        return _where(*(reader.read(arg) for arg in args))
    if name in ("clip", "minimum", "maximum") or functions.known(name):
        return _elementwise(reader, node, name, options)
    if name == "count_nonzero" and args:
        return _count(reader, args, options)
    if name == "mean" or name in _FOLDS or name in METHODS:
        if not args:
            return None
        return method(reader, name, reader.read(args[0]), args[1:], options, node)
    if name in _PRODUCTS and not options:
        return _PRODUCTS[name](*(reader.array(arg) for arg in args))
    if name == "einsum" and not options and isinstance(args[0], ast.Constant):
        return _einsum(str(args[0].value), [reader.array(arg) for arg in args[1:]])
    if name in shaping.CALLS:
        return shaping.CALLS[name](reader, args, options)
    return None


_PRODUCTS: dict[str, Callable[..., Value]] = {
    "matmul": lambda a, b: products.matmul(a, b),
    "dot": lambda a, b: _dot(a, b),
    "vdot": lambda a, b: products.matmul(_conjugated(_flat(a)), _flat(b)),
    "inner": lambda a, b: products.contracted(a, b, ("k", "k", "")) if a.rank == b.rank == 1 else _no_inner(),
    "outer": lambda a, b: products.contracted(_flat(a), _flat(b), ("i", "j", "ij")),
}


def _no_inner() -> Value:
    raise Mismatch("np.inner of matrices")


def _dot(left: Array, right: Array) -> Array:
    if left.rank > 2 or right.rank > 2:
        raise Mismatch("np.dot of arrays of more than two axes")
    return products.matmul(left, right)


def _conjugated(array: Array) -> Array:
    result = mapped(lambda x: functions.apply("conj", (x,)) or x, array)
    assert isinstance(result, Array)
    return result


def _flat(array: Array) -> Array:
    return array if array.rank == 1 else reshaped(array, [None], lambda extent: extent)


def _einsum(subscripts: str, operands: list[Array]) -> Array:
    inputs, arrow, result = subscripts.replace(" ", "").partition("->")
    letters = inputs.split(",")
    if not arrow:
        counts = {name: inputs.count(name) for name in inputs if name != ","}
        result = "".join(sorted(name for name, count in counts.items() if count == 1))
    if "." in subscripts or len(letters) != len(operands):
        raise Mismatch(f"np.einsum('{subscripts}')")
    return products.einsum(operands, letters, result)


def _where(test: Value, then: Value, orelse: Value) -> Value:
    return mapped(
        lambda t, x, y: promotion.select(promotion.truth(t), x, y, elementwise=True), test, then, orelse
    )


def _elementwise(
    reader: ExpressionReader, node: ast.Call, name: str, options: dict[str, ast.expr]
) -> Value | None:
    """A function of single values on every element; ``dtype`` and ``out`` are no part of it."""
    values = [reader.read(arg) for arg in node.args]
    if name == "clip":
        values += [reader.read(options[key]) for key in ("a_min", "a_max", "min", "max") if key in options]
        if len(values) != 3:
            return None
    elif options:
        return None

    def operation(*args: Operand) -> Operand:
        result = functions.apply(name, args)
        if result is None:
            raise Mismatch(f"np.{name} with {len(args)} arguments")
        return result

    return mapped(operation, *values)


def _of_ufunc(
    reader: ExpressionReader, node: ast.Call, ufunc: str, name: str, options: dict[str, ast.expr]
) -> Value | None:
    """``np.add.reduce``, ``np.add.accumulate``, ``np.multiply.outer``."""
    if name == "reduce" and ufunc in _UFUNC_FOLDS:
        options = options if "axis" in options or len(node.args) > 1 else {**options, "axis": ast.Constant(0)}
        return method(reader, _UFUNC_FOLDS[ufunc], reader.read(node.args[0]), node.args[1:], options, node)
    if name == "accumulate" and ufunc in ("add", "multiply"):
        scan = {"add": "cumsum", "multiply": "cumprod"}[ufunc]
        options = options if "axis" in options or len(node.args) > 1 else {**options, "axis": ast.Constant(0)}
        return method(reader, scan, reader.read(node.args[0]), node.args[1:], options, node)
    if name == "outer" and functions.known(ufunc) and len(node.args) == 2 and not options:
        left, right = (reader.array(arg) for arg in node.args)
        tall = left
        for _ in range(right.rank):
            tall = shaping.with_axis(tall, tall.rank)
        return mapped(lambda x, y: functions.apply(ufunc, (x, y)) or x, tall, right)
    return None


# ---- reductions


def method(
    reader: ExpressionReader,
    name: str,
    value: Value,
    args: list[ast.expr],
    options: dict[str, ast.expr],
    node: ast.AST,
) -> Value | None:
    """``value.name(...)``, or ``np.name(value, ...)``."""
    if name == "astype" and (args or "dtype" in options):
        dtype = reader.element_type(args[0] if args else options["dtype"])
        result = mapped(lambda x: promotion.cast(x, ir.computes_in(dtype)), value)
        return replace(result, stored_as=dtype) if isinstance(result, Array) else result
    if name in ("conj", "conjugate", "clip"):
        values = [value, *(reader.read(arg) for arg in args)]
        return mapped(lambda *parts: functions.apply(name, parts) or parts[0], *values)
    if isinstance(value, Operand):
        return value if name in ("copy", "item", "sum", "min", "max") and not args else None
    if name in _FOLDS:
        return _fold(reader, _FOLDS[name], value, args, options)
    if name in _SCANS:
        return _scan(reader, _SCANS[name], value, args, options)
    if name in ("mean", "var", "std"):
        return _moments(reader, name, value, args, options)
    if name == "ptp":
        parts = [_fold(reader, kind, value, args, options) for kind in ("max", "min")]
        return mapped(lambda x, y: promotion.binary("-", x, y), *parts)
    if name == "copy":
        return shaping.copied(reader, value)
    if name == "dot" and len(args) == 1:
        return _dot(value, reader.array(args[0]))
    if name in shaping.METHODS:
        return shaping.METHODS[name](reader, value, args, options)
    return None


def _axes(
    reader: ExpressionReader, value: Array, args: list[ast.expr], options: dict[str, ast.expr]
) -> list[int]:
    """The axes that an ``axis`` argument names; all of them without one."""
    node = args[0] if args else options.get("axis")
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return list(range(value.rank))
    nodes = node.elts if isinstance(node, ast.Tuple) else [node]
    return sorted(shaping.axis_number(reader, part, value.rank) for part in nodes)


def _fold(
    reader: ExpressionReader, kind: str, value: Array, args: list[ast.expr], options: dict[str, ast.expr]
) -> Value:
    """One reduction, with ``axis``, ``keepdims`` and ``dtype``."""
    if not set(options) <= {"axis", "keepdims", "dtype", "initial"} or len(args) > 1:
        raise Mismatch(f"a reduction with {', '.join(sorted(options)) or 'these arguments'}")
    if "dtype" in options:
        dtype = ir.computes_in(reader.element_type(options["dtype"]))
        cast = mapped(lambda x: promotion.cast(x, dtype), value)
        assert isinstance(cast, Array)
        value = cast
    gone = _axes(reader, value, args, options)
    if value.guard is not None and len(gone) < value.rank:
        raise Mismatch("a reduction along an axis of elements that a mask selects")
    result: Array = array_of(Fold(kind, shaping.axes_last(value, gone), len(gone)))
    if "initial" in options:
        start = reader.expr(options["initial"])
        step = {"sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum"}[kind]
        mixed = mapped(lambda x: functions.apply(step, (x, start)) or x, result)
        assert isinstance(mixed, Array)
        result = mixed
    keep = options.get("keepdims")
    if isinstance(keep, ast.Constant) and keep.value:
        for axis in gone:
            result = shaping.with_axis(result, axis)
    return result


def _count(reader: ExpressionReader, args: list[ast.expr], options: dict[str, ast.expr]) -> Value:
    """How many elements are not zero: Python's number when it is one."""
    tested = mapped(lambda x: Operand(promotion.truth(x)), reader.array(args[0]))
    assert isinstance(tested, Array)
    result = _fold(reader, "sum", tested, args[1:], options)
    if isinstance(result, Array) and not result.axes:
        return Operand(result.element((), reader).expr, weak=True)
    return result


def _moments(
    reader: ExpressionReader, name: str, value: Array, args: list[ast.expr], options: dict[str, ast.expr]
) -> Value:
    """Mean, variance and standard deviation, in floating point."""
    ddof = options.pop("ddof", None) if name != "mean" else None
    floating = functions.float_of(value.sample) if promotion.kind(value.dtype) == "float" else "float64"
    floating = value.dtype if promotion.kind(value.dtype) == "complex" else floating
    cast = mapped(lambda x: Operand(promotion.convert(x, floating)), value)
    assert isinstance(cast, Array)
    count = _counted(reader, value, _axes(reader, value, args, options))
    mean = mapped(lambda x: promotion.binary("/", x, count), _fold(reader, "sum", cast, args, options))
    if name == "mean":
        return mean
    if promotion.kind(value.dtype) == "complex":
        raise Mismatch(f"np.{name} of complex numbers")
    kept = {**options, "keepdims": ast.Constant(True)}
    centre = mapped(lambda x: promotion.binary("/", x, count), _fold(reader, "sum", cast, args, kept))
    centre = reader.settled(centre) if isinstance(centre, Array) else centre
    squares = mapped(
        lambda x, m: promotion.binary("**", promotion.binary("-", x, m), promotion.python(2)), cast, centre
    )
    assert isinstance(squares, Array)
    divisor = count if ddof is None else promotion.binary("-", count, reader.expr(ddof))
    result = mapped(lambda x: promotion.binary("/", x, divisor), _fold(reader, "sum", squares, args, options))
    return result if name == "var" else mapped(lambda x: functions.apply("sqrt", (x,)) or x, result)


def _counted(reader: ExpressionReader, value: Array, axes: list[int]) -> Operand:
    """How many elements a mean is over."""
    if value.guard is not None:
        counted = array_of(Fold("sum", replace(value.guard, guard=value.guard, fold=None), value.rank))
        return Operand(counted.element((), reader).expr, weak=True)
    return reader.size(replace(value, axes=tuple(value.axes[axis] for axis in axes)))


def _norm(reader: ExpressionReader, args: list[ast.expr], options: dict[str, ast.expr]) -> Value | None:
    """The Euclidean (Frobenius) norm."""
    if len(args) != 1 or not set(options) <= {"axis", "keepdims"}:
        return None
    squares = mapped(
        lambda x: promotion.binary("**", functions.apply("abs", (x,)) or x, promotion.python(2)),
        mapped(functions.strong, reader.array(args[0])),
    )
    assert isinstance(squares, Array)
    total = _fold(reader, "sum", squares, [], options)
    return mapped(lambda x: functions.apply("sqrt", (x,)) or x, total)


def _scan(
    reader: ExpressionReader, kind: str, value: Array, args: list[ast.expr], options: dict[str, ast.expr]
) -> Array:
    """A running sum or product along one axis."""
    if not set(options) <= {"axis", "dtype"} or len(args) > 1:
        raise Mismatch("a running sum with these arguments")
    if "dtype" in options:
        dtype = ir.computes_in(reader.element_type(options["dtype"]))
        cast = mapped(lambda x: promotion.cast(x, dtype), value)
        assert isinstance(cast, Array)
        value = cast
    if value.guard is not None:
        value = reader.packed(value, "selected")
    axes = _axes(reader, value, args, options)
    if len(axes) > 1:
        value, axes = reshaped(value, [None], reader.limit), [0]
    return value_of(Scan(kind, value, axes[0]), value.axes, accumulator(kind, value.dtype))
