"""From the typed form to one plain C function: flat row-major indices, canonical loops, no macros."""

from __future__ import annotations

import re

from hpcagent_bench.toolchain import abi
from hpcagent_bench.translators import ir
from hpcagent_bench.translators.analysis.dependence import Verdict
from hpcagent_bench.translators.backends.c_expressions import Expressions
from hpcagent_bench.translators.backends.c_library import CLibrary
from hpcagent_bench.translators.backends.c_types import (
    MULTIPLY,
    RELATION,
    Dialect,
    has_own_type,
    pair,
    stripped,
    value_type,
)
from hpcagent_bench.translators.backends.c_types import C as C_DIALECT
from hpcagent_bench.translators.backends.naming import Names
from hpcagent_bench.translators.backends.scopes import scopes
from hpcagent_bench.translators.backends.signs import Signs
from hpcagent_bench.translators.backends.writing import (
    INDENT,
    Source,
    as_function,
    elif_chain,
    in_place,
    read_once,
    wrapped_code,
)

_REDUCTION = {"and": "&&", "or": "||"}


def emit(source: Source, dialect: Dialect = C_DIALECT) -> str:
    """The C (or C++) text: the kernel's symbol with the parameters of abi.c_declaration."""
    function = source.function
    names = Names(abi.c_name)
    bound = abi.binding(source.kernel, source.datatype)
    names.add(arg.name for arg in bound.args)
    names.add(("workspace", "workspace_size", bound.symbol))
    names.add((*function.arrays, *function.locals, *(helper.name for helper in function.helpers)))
    names.add(stmt.var for stmt in ir.statements(function.body) if isinstance(stmt, ir.For))
    library = CLibrary(names, dialect)
    helpers = [_helper(helper, library) for helper in function.helpers]
    writer = CWriter(function, names, source.signs, library, dialect, source.parallel)
    body = writer.whole()
    library.headers.add("stdint")
    if any(arg.dtype.startswith("complex") for arg in bound.args):
        library.headers.add("complex")
    text = "\n".join([*helpers, *body])
    if re.search(r"\b(bool|true|false)\b", text) and dialect.language == "c":
        library.headers.add("stdbool")
    order = [name for name in dialect.headers if name in library.headers]
    includes = [f"#include {dialect.headers[name]}" for name in order]
    unused = [name for name in _parameters(bound) if not re.search(rf"\b{name}\b", "\n".join(body))]
    discarded = [f"{INDENT}(void){name};" for name in unused]
    declaration = abi.c_declaration(bound, dialect.language)
    title = f"/* {source.title} */"
    lines = [declaration, "{", *discarded, *body, "}", ""]
    helping = [line for text_ in (*library.texts, *helpers) for line in text_.split("\n")]
    return "\n".join(
        [title, *includes, "", *(piece for line in (*helping, *lines) for piece in wrapped_code(line))]
    )


def _parameters(bound: abi.Binding) -> list[str]:
    return [*(abi.c_name(arg.name) for arg in bound.args), "workspace", "workspace_size"]


def _helper(helper: ir.Helper, library: CLibrary) -> str:
    """A helper function of the reference as a C function."""
    function = as_function(helper)
    names = Names(abi.c_name)
    names.add((*helper.params, *helper.locals))
    names.add(stmt.var for stmt in ir.statements(helper.body) if isinstance(stmt, ir.For))
    dialect = library.dialect
    writer = CWriter(function, _Both(names, library.names), Signs({}), library, dialect)
    params = [f"const {value_type(dtype, dialect)} {names[name]}" for name, dtype in helper.params.items()]
    head = (
        f"static inline {value_type(helper.dtype, dialect)} {library.names[helper.name]}({', '.join(params)})"
    )
    return "\n".join([head, "{", *writer.whole(), "}", ""])


class _Both(Names):
    """Names of a helper, and beyond them those of the file."""

    def __init__(self, own: Names, beyond: Names) -> None:
        super().__init__(str)
        self._own, self._beyond = own, beyond

    def fresh(self, wanted: str) -> str:
        return self._own.fresh(wanted)

    def __getitem__(self, name: str) -> str:
        return self._own[name] if name in self._own else self._beyond[name]


class CWriter(Expressions):
    """Writes the statements of a function or helper."""

    def __init__(
        self,
        function: ir.Function,
        names: Names,
        signs: Signs,
        library: CLibrary,
        dialect: Dialect,
        parallel: Verdict | None = None,
    ) -> None:
        super().__init__(function, names, signs, library, dialect)
        self.scopes = scopes(function.locals, function.body)
        self.parallel = parallel
        self.allocated: list[str] = []

    def whole(self) -> list[str]:
        """The body, and the release of the local arrays at its end."""
        return [*self.block(self.function.body), *(f"{INDENT}{line}" for line in self.releases())]

    def releases(self) -> list[str]:
        return [f"free({name});" for name in self.allocated]

    def statement(self, stmt: ir.Stmt) -> list[str]:
        return [*self.declarations(stmt), *super().statement(stmt)]

    def declarations(self, stmt: ir.Stmt) -> list[str]:
        """Locals whose first value depends on the path taken start as zero."""
        lines = []
        for name in self.scopes.before.get(id(stmt), ()):
            dtype = self.function.locals[name]
            zero = "false" if dtype == "bool" else "0"
            lines.append(f"{value_type(dtype, self.dialect)} {self.names[name]} = {zero};")
        return lines

    def assign(self, stmt: ir.Assign) -> list[str]:
        dtype = self.function.locals[stmt.name]
        added = in_place(stmt)
        if added is not None and self.is_compound(added):
            return [f"{self.names[stmt.name]} {added.op}= {self.text(pair(added.left, added.right)[1])};"]
        declared = f"{value_type(dtype, self.dialect)} " if id(stmt) in self.scopes.declaring else ""
        return [f"{declared}{self.names[stmt.name]} = {self.converted(stmt.value)};"]

    def store(self, stmt: ir.Store) -> list[str]:
        stored = self.function.arrays[stmt.array].dtype
        added = in_place(stmt)
        if added is not None and stored == added.dtype and self.is_compound(added):
            right = self.text(pair(added.left, added.right)[1])
            return [f"{self.element(stmt.array, stmt.index)} {added.op}= {right};"]
        value = self.converted(stmt.value)
        if stored in ("bfloat16", "float8_e4m3", "float8_e5m2"):
            name = f"to_{stored}"
            value = f"{self.library.helper(name, 'float32', name)}({value})"
        elif stored == "float16":
            value = f"(_Float16)({value})"
        return [f"{self.element(stmt.array, stmt.index)} = {value};"]

    def is_compound(self, expr: ir.Binary) -> bool:
        """Whether C's ``+=`` and the like do what the operation does."""
        if expr.wraps or not has_own_type(expr.left):
            return False
        return expr.dtype in ("int64", "float32", "float64") or (
            ir.is_complex(expr.dtype) and expr.op in "+-"
        )

    def loop(self, stmt: ir.For) -> list[str]:
        lines = []
        var = self.names[stmt.var]
        bounds = {"stop": stmt.stop, "step": stmt.step}
        spelled = {}
        for what, expr in bounds.items():
            spelled[what] = self.text(stripped(expr), RELATION + 1)
            if read_once(stmt, expr):
                spelled[what] = self.names.fresh(f"{var}_{what}")
                lines.append(f"const int64_t {spelled[what]} = {self.text(expr)};")
        compare = ">" if stmt.descending else "<"
        head = f"int64_t {var} = {self.text(stripped(stmt.start))}; {var} {compare} {spelled['stop']}"
        lines += self.pragma(stmt)
        return [
            *lines,
            f"for ({head}; {_advance(var, stmt.step, spelled['step'])}) {{",
            *self.inside(stmt),
            "}",
        ]

    def pragma(self, stmt: ir.For) -> list[str]:
        verdict = self.parallel
        if verdict is None or verdict.loop is not stmt:
            return []
        clauses = [
            f" reduction({_REDUCTION.get(reduction.op, reduction.op)}:{self.names[reduction.name]})"
            for reduction in verdict.reductions
        ]
        inside = self._declared_inside(stmt)
        outside = [self.names[name] for name in verdict.private if name not in inside]
        if outside:
            clauses.append(f" private({', '.join(outside)})")
        return [f"#pragma omp parallel for{''.join(clauses)}"]

    def _declared_inside(self, loop: ir.For) -> set[str]:
        """Scalars with a declaration in the body of a loop, the indices of loops included."""
        found: set[str] = set()
        for stmt in ir.statements(loop.body):
            found.update(self.scopes.before.get(id(stmt), ()))
            if isinstance(stmt, ir.For):
                found.add(stmt.var)
            if isinstance(stmt, ir.Assign) and id(stmt) in self.scopes.declaring:
                found.add(stmt.name)
        return found

    def repeat(self, stmt: ir.While) -> list[str]:
        return [f"while ({self.text(stmt.test)}) {{", *self.block(stmt.body), "}"]

    def branch(self, stmt: ir.If) -> list[str]:
        chain, rest = elif_chain(stmt)
        lines: list[str] = []
        for test, body in chain:
            opening = "} else if" if lines else "if"
            lines += [f"{opening} ({self.text(test)}) {{", *self.block(body)]
        if rest:
            lines += ["} else {", *self.block(rest)]
        return [*lines, "}"]

    def allocate(self, stmt: ir.Allocate) -> list[str]:
        array = self.function.arrays[stmt.array]
        element = abi.c_type(array.dtype, self.dialect.language)
        count = " * ".join(self.text(extent, MULTIPLY) for extent in array.shape)
        size = f"(size_t){count if count.isidentifier() else f'({count})'}"
        call = f"calloc({size}, sizeof({element}))" if stmt.zeroed else f"malloc({size} * sizeof({element}))"
        self.library.headers.add("stdlib")
        self.allocated.append(self.names[stmt.array])
        return [f"{element} *{self.dialect.restrict} {self.names[stmt.array]} = ({element} *){call};"]

    def jump(self, stmt: ir.Jump) -> list[str]:
        return [f"{stmt.kind};"]

    def leave(self, stmt: ir.Return) -> list[str]:
        if stmt.value is not None:
            return [f"return {self.converted(stmt.value)};"]
        return [*self.releases(), "return;"]


def _advance(var: str, step: ir.Expr, spelled: str) -> str:
    """How the index goes on: ``i++``, ``i--``, ``i += 2``, ``i -= 3``, ``i += step``."""
    if isinstance(step, ir.Const) and isinstance(step.value, int):
        if abs(step.value) == 1:
            return f"{var}++" if step.value > 0 else f"{var}--"
        return f"{var} {'+' if step.value > 0 else '-'}= {abs(step.value)}"
    return f"{var} += {spelled}"
