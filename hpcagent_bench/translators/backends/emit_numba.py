"""From the typed form to a numba module: the reference's loops under ``njit``, one of them parallel."""

from __future__ import annotations

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.analysis.dependence import Verdict
from hpcagent_bench.translators.backends.naming import Names
from hpcagent_bench.translators.backends.numba_expressions import Expressions, NumbaLibrary
from hpcagent_bench.translators.backends.numba_types import VIEWS, beside, widened
from hpcagent_bench.translators.backends.signs import Signs
from hpcagent_bench.translators.backends.writing import (
    INDENT,
    Source,
    as_function,
    elif_chain,
    in_place,
)

_RESERVED = frozenset(["np", "njit", "prange", "abs", "min", "max", "range", "int"])


def emit(source: Source) -> str:
    """A module text with the reference's name and parameter order.

    At most one ``range`` becomes ``prange``. The text must stand in a file of its own, where numba keeps its
    compiled code. Arrays of formats that numba lacks are taken as the integers they are stored in.
    """
    function = source.function
    names = Names(_spelled)
    names.add((function.name, *function.arg_order, *function.arrays, *function.locals))
    names.add(helper.name for helper in function.helpers)
    names.add(stmt.var for stmt in ir.statements(function.body) if isinstance(stmt, ir.For))
    library = NumbaLibrary(names)
    helpers = [_helper(helper, library) for helper in function.helpers]
    writer = NumbaWriter(function, names, source.signs, library, source.parallel)
    body = writer.whole() or [f"{INDENT}pass"]
    viewed = [name for name in function.arg_order if name in function.arrays and _views(function, name)]
    name = names.fresh(f"{function.name}_jitted") if viewed else function.name
    arguments = ", ".join(names[argument] for argument in function.arg_order)
    parallel = source.parallel is not None  # numba warns when it is asked for parallelism it cannot find
    lines = [
        f"# {source.title}",
        "import numpy as np",
        f"from numba import {'njit, prange' if parallel else 'njit'}",
        "",
        *library.texts,
        *helpers,
        "",
        f'@njit(parallel={parallel}, cache=True, fastmath=False, error_model="numpy")',
        f"def {name}({arguments}):",
        *body,
        "",
    ]
    if viewed:
        lines += _entry(function, names, name)
    return "\n".join(lines)


def _spelled(name: str) -> str:
    return f"{name}_" if name in _RESERVED else name


def _views(function: ir.Function, name: str) -> bool:
    return function.arrays[name].dtype in VIEWS


def _entry(function: ir.Function, names: Names, jitted: str) -> list[str]:
    """The function of the reference's name, for arrays whose dtype numba does not know."""
    passed = []
    for argument in function.arg_order:
        name = names[argument]
        stored = function.arrays[argument].dtype if argument in function.arrays else ""
        passed.append(f"{name}.view(np.{VIEWS[stored]})" if stored in VIEWS else name)
    arguments = ", ".join(names[argument] for argument in function.arg_order)
    return ["", f"def {function.name}({arguments}):", f"{INDENT}{jitted}({', '.join(passed)})", ""]


def _helper(helper: ir.Helper, library: NumbaLibrary) -> str:
    """A helper function of the reference, jitted."""
    function = as_function(helper)
    names = Names(_spelled)
    names.add((*helper.params, *helper.locals, *library.spelled))
    names.add(stmt.var for stmt in ir.statements(helper.body) if isinstance(stmt, ir.For))
    writer = NumbaWriter(function, names, Signs({}), library)
    params = ", ".join(names[name] for name in helper.params)
    return "\n".join(["", "@njit", f"def {library.names[helper.name]}({params}):", *writer.whole(), ""])


class NumbaWriter(Expressions):
    """Writes the statements of a function or helper."""

    def __init__(
        self,
        function: ir.Function,
        names: Names,
        signs: Signs,
        library: NumbaLibrary,
        parallel: Verdict | None = None,
    ) -> None:
        super().__init__(function, names, signs, library)
        self.parallel = parallel

    def whole(self) -> list[str]:
        """The body; scalars that are not of Python's own types get theirs first."""
        typed = [
            f"{INDENT}{self.names[name]} = np.{ir.computes_in(dtype)}({self.names[name]})"
            for name, dtype in self.function.scalars.items()
            if name in self.function.arg_order and dtype not in ("int64", "float64", "bool")
        ]
        return [*typed, *self.block(self.function.body)]

    def body(self, lines: list[str]) -> list[str]:
        return lines or [f"{INDENT}pass"]

    def assign(self, stmt: ir.Assign) -> list[str]:
        added = in_place(stmt)
        if added is not None and not widened(added.dtype) and self.helper_for(added) is None:
            return [f"{self.names[stmt.name]} {added.op}= {self.text(beside(added.left, added.right)[1])}"]
        return [f"{self.names[stmt.name]} = {self.text(stmt.value)}"]

    def store(self, stmt: ir.Store) -> list[str]:
        stored = self.function.arrays[stmt.array].dtype
        added = in_place(stmt)
        if added is not None and stored == added.dtype and not widened(stored) and not self.helper_for(added):
            right = beside(added.left, added.right)[1]
            return [f"{self.element(stmt.array, stmt.index)} {added.op}= {self.text(right)}"]
        value = self.text(stmt.value)
        if stored in VIEWS:
            value = f"{self.library.helper(f'to_{stored}', 'float32', f'to_{stored}')}({value})"
        return [f"{self.element(stmt.array, stmt.index)} = {value}"]

    def loop(self, stmt: ir.For) -> list[str]:
        chosen = self.parallel is not None and self.parallel.loop is stmt
        bounds = [self.text(stmt.stop)]
        if stmt.start != ir.Const(0, "int64") or not stmt.unit:
            bounds.insert(0, self.text(stmt.start))
        if not stmt.unit:
            bounds.append(self.text(stmt.step))
        over = f"{'prange' if chosen else 'range'}({', '.join(bounds)})"
        return [f"for {self.names[stmt.var]} in {over}:", *self.body(self.inside(stmt))]

    def repeat(self, stmt: ir.While) -> list[str]:
        return [f"while {self.text(stmt.test)}:", *self.body(self.block(stmt.body))]

    def branch(self, stmt: ir.If) -> list[str]:
        chain, rest = elif_chain(stmt)
        lines: list[str] = []
        for test, body in chain:
            lines += [f"{'elif' if lines else 'if'} {self.text(test)}:", *self.body(self.block(body))]
        return [*lines, "else:", *self.block(rest)] if rest else lines

    def allocate(self, stmt: ir.Allocate) -> list[str]:
        array = self.function.arrays[stmt.array]
        extents = self.listed(array.shape)
        shape = extents if len(array.shape) == 1 else f"({extents})"
        dtype = {"bool": "bool_", "int4": "int8"}.get(array.dtype, VIEWS.get(array.dtype, array.dtype))
        return [f"{self.names[stmt.array]} = np.{'zeros' if stmt.zeroed else 'empty'}({shape}, np.{dtype})"]

    def jump(self, stmt: ir.Jump) -> list[str]:
        return [stmt.kind]

    def leave(self, stmt: ir.Return) -> list[str]:
        return ["return" if stmt.value is None else f"return {self.text(stmt.value)}"]
