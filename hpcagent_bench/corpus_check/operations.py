"""How many operations on data a kernel performs: its typed form with counters, compiled, run at small sizes.

Counted are arithmetic and mathematical functions on floating-point numbers, one each (min and max included;
a complex + - * / as the 2, 2, 6 and 8 real ones it takes), and integer arithmetic on data; not indices,
comparisons, loads and stores. Of a conditional expression and a helper's branches the costlier one counts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from hpcagent_bench.corpus.declarations import ArrayDecl
from hpcagent_bench.corpus.manifest import PRESETS
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.corpus_check import draws
from hpcagent_bench.corpus_check.calls import native_call
from hpcagent_bench.corpus_check.draws import Case
from hpcagent_bench.toolchain import flags
from hpcagent_bench.toolchain.in_process import Call
from hpcagent_bench.translators import frontend, ir
from hpcagent_bench.translators.backends import emit_c
from hpcagent_bench.translators.backends.writing import Source, without_dead_locals
from hpcagent_bench.translators.rewriting import with_bodies

KINDS = ("flops", "integer operations")
_ARRAY = "operation_counts"
_COMPLEX = {"+": 2, "-": 2, "*": 6}
_SPACING = 4  # sizes are sampled at its multiples, where halves and quarters come out whole
_MOST_SAMPLES = 256
Counts = tuple[int, int]
Body = tuple[ir.Stmt, ...]


@dataclass(frozen=True)
class Operations:
    """Operations of one call per preset, by kind. ``exact``: a polynomial in the sizes, and fits all samples.

    Otherwise the count at S grows with the bytes of the arrays as it does from S to twice S.
    """

    per_preset: dict[str, dict[str, int]]
    exact: bool


def count(kernel: Kernel) -> Operations:
    """Operations of the first configuration at every preset."""
    counter = _Counter(kernel)
    fitted = counter.fitted()
    if fitted is not None:
        return Operations(fitted, exact=True)
    return Operations(counter.scaled(), exact=False)


class _Counter:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._call = _counting_call(kernel)

    def _at(self, sizes: Mapping[str, int], seed: int = draws.SEEDS[0]) -> Counts:
        params = {**sizes, **self._kernel.configs[0]}
        arrays = draws.draw(self._kernel, Case(tuple(sorted(params.items())), None, seed, "counting"))
        arrays[_ARRAY] = np.zeros(2, np.int64)
        self._call(arrays, params)
        return int(arrays[_ARRAY][0]), int(arrays[_ARRAY][1])

    def fitted(self) -> dict[str, dict[str, int]] | None:
        """By interpolation over a grid of small sizes; None when another sample contradicts it."""
        symbols = self._kernel.size_symbols
        degree = 4 if len(symbols) < 3 else 3
        points = [_SPACING * step for step in range(1, degree + 2)]
        small, presets = self._kernel.presets["S"], self._kernel.presets
        grid = list(itertools.product(points, repeat=len(symbols)))
        sizes = [{**small, **dict(zip(symbols, point, strict=True))} for point in grid]
        if len(grid) > _MOST_SAMPLES or any(self._kernel.broken_constraint(s) for s in sizes):
            return None
        samples = [self._at(size) for size in sizes]
        seen = self._at(small), self._at(small, seed=draws.SEEDS[1])
        result: dict[str, dict[str, int]] = {preset: {} for preset in PRESETS}
        for kind, name in enumerate(KINDS):
            values = dict(zip(grid, (sample[kind] for sample in samples), strict=True))
            for preset in PRESETS:
                target = [presets[preset][symbol] for symbol in symbols]
                result[preset][name] = round(_interpolated(values, points, target))
            if {result["S"][name]} != {counts[kind] for counts in seen}:
                return None
        return result

    def scaled(self) -> dict[str, dict[str, int]]:
        """From preset S upwards, by the exponent over bytes that the step from S to twice S shows."""
        kernel = self._kernel
        small = kernel.presets["S"]
        twice = {name: 2 * size if name in kernel.size_symbols else size for name, size in small.items()}
        if kernel.broken_constraint(twice):
            twice = small
        low, high = self._at(small), self._at(twice)
        step = math.log(kernel.input_bytes(twice) / kernel.input_bytes(small))
        result: dict[str, dict[str, int]] = {}
        for preset in PRESETS:
            grown = math.log(kernel.input_bytes(kernel.presets[preset]) / kernel.input_bytes(small))
            result[preset] = {}
            for kind, name in enumerate(KINDS):
                power = math.log(high[kind] / low[kind]) / step if step > 0 and low[kind] else 1.0
                result[preset][name] = round(low[kind] * math.exp(power * grown))
        return result


def _interpolated(
    values: Mapping[tuple[int, ...], int], points: Sequence[int], target: Sequence[int]
) -> Fraction:
    """Lagrange's polynomial through ``values`` on the grid of ``points``, at ``target``."""
    weights = [[_basis(points, index, at) for index in range(len(points))] for at in target]
    total = Fraction(0)
    for choice in itertools.product(range(len(points)), repeat=len(target)):
        weight = math.prod((weights[axis][index] for axis, index in enumerate(choice)), start=Fraction(1))
        total += weight * values[tuple(points[index] for index in choice)]
    return total


def _basis(points: Sequence[int], index: int, at: int) -> Fraction:
    own = points[index]
    others = [point for point in points if point != own]
    return math.prod((Fraction(at - point, own - point) for point in others), start=Fraction(1))


# ---- the typed form with counters


def _counting_call(kernel: Kernel) -> Call:
    """The kernel compiled with one more array, which takes the two counts."""
    init = kernel.manifest.init
    arrays = {**init.arrays, _ARRAY: ArrayDecl(shape="(2,)", dtype="int64")}
    manifest = kernel.manifest.model_copy(
        update={
            "init": init.model_copy(update={"arrays": arrays}),
            "output_args": [*kernel.manifest.output_args, _ARRAY],
        }
    )
    counted = replace(kernel, manifest=manifest, arg_order=(*kernel.arg_order, _ARRAY))
    function = without_dead_locals(_counting(frontend.translate(kernel)))
    return native_call(counted, emit_c.emit(Source(counted, function, "float64")), "c", extra=flags.QUICK)


def _counting(function: ir.Function) -> ir.Function:
    helpers: dict[str, Counts] = {}
    for helper in function.helpers:
        helpers[helper.name] = _static(helper.body, helpers)
    array = ir.Array(_ARRAY, "int64", (ir.Const(2, "int64"),), local=False)
    body = (*_body(function.body, helpers), *_stores())
    counters = dict.fromkeys(_COUNTERS, "int64")
    start = tuple(ir.Assign(name, ir.Const(0, "int64"), 1) for name in _COUNTERS)
    return replace(
        function,
        arg_order=(*function.arg_order, _ARRAY),
        arrays={**function.arrays, _ARRAY: array},
        locals={**function.locals, **counters},
        body=(*start, *body),
    )


_COUNTERS = ("counted_flops", "counted_integer")


def _stores() -> Iterator[ir.Stmt]:
    for index, name in enumerate(_COUNTERS):
        yield ir.Store(_ARRAY, (ir.Const(index, "int64"),), ir.Name(name, "int64"), 1)


def _body(stmts: Body, helpers: Mapping[str, Counts]) -> Body:
    """The statements with counting before each straight stretch of them."""
    result: list[ir.Stmt] = []
    stretch: list[ir.Stmt] = []
    for stmt in stmts:
        stretch.append(stmt)
        if isinstance(stmt, (ir.For, ir.While, ir.If, ir.Jump, ir.Return)):
            result += _counted(stretch, helpers)
            stretch = []
    return (*result, *_counted(stretch, helpers))


def _counted(stretch: Sequence[ir.Stmt], helpers: Mapping[str, Counts]) -> Iterator[ir.Stmt]:
    total = _plus(*(_own(stmt, helpers) for stmt in stretch if not isinstance(stmt, ir.While)))
    yield from _increments(total)
    for stmt in stretch:
        if isinstance(stmt, ir.Return):
            yield from _stores()
        inner = with_bodies(stmt, lambda body: _body(body, helpers))
        if isinstance(inner, ir.While):
            test = tuple(_increments(_own(stmt, helpers)))
            inner = replace(inner, body=(*test, *inner.body))
        yield inner


def _increments(counts: Counts) -> Iterator[ir.Stmt]:
    for name, amount in zip(_COUNTERS, counts, strict=True):
        if amount:
            more = ir.Binary("+", ir.Name(name, "int64"), ir.Const(amount, "int64"), "int64")
            yield ir.Assign(name, more, 1)


def _static(body: Body, helpers: Mapping[str, Counts]) -> Counts:
    """A helper's operations, loops once and the costlier branch of each condition."""
    total = (0, 0)
    for stmt in body:
        own = _own(stmt, helpers)
        if isinstance(stmt, ir.If):
            own = _plus(own, max(_static(stmt.body, helpers), _static(stmt.orelse, helpers)))
        else:
            own = _plus(own, _static(ir.nested(stmt), helpers))
        total = _plus(total, own)
    return total


def _own(stmt: ir.Stmt, helpers: Mapping[str, Counts]) -> Counts:
    return _plus(*(_cost(expr, helpers) for expr in ir.expressions(stmt)))


def _cost(expr: ir.Expr, helpers: Mapping[str, Counts]) -> Counts:
    if isinstance(expr, ir.Select):
        branches = max(_cost(expr.then, helpers), _cost(expr.orelse, helpers))
        return _plus(_cost(expr.test, helpers), branches)
    below = _plus(*(_cost(child, helpers) for child in ir.children(expr)))
    match expr:
        case ir.Binary() | ir.Unary() | ir.Call() if ir.is_complex(expr.dtype):
            op = getattr(expr, "op", "")
            return _plus(below, (2 if isinstance(expr, ir.Unary) else _COMPLEX.get(op, 8), 0))
        case ir.Binary() | ir.Unary() | ir.Call() if ir.is_float(expr.dtype):
            return _plus(below, (1, 0))
        case ir.Binary(wraps=True) | ir.Unary(wraps=True):
            return _plus(below, (0, 1))
        case ir.Invoke():
            return _plus(below, helpers[expr.helper])
        case _:
            return below


def _plus(*counts: Counts) -> Counts:
    return sum(first for first, _ in counts), sum(second for _, second in counts)
