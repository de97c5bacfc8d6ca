"""From the typed form to a Fortran subroutine: the reference's indices in reversed order, from 0."""

from __future__ import annotations

import re
from dataclasses import replace

from hpcagent_bench.toolchain import abi, fortran_abi
from hpcagent_bench.toolchain.fortran_abi import respelled, wrapped
from hpcagent_bench.translators import ir
from hpcagent_bench.translators.analysis.dependence import Verdict
from hpcagent_bench.translators.backends.fortran_expressions import Expressions
from hpcagent_bench.translators.backends.fortran_helpers import HELPERS
from hpcagent_bench.translators.backends.fortran_library import FortranLibrary
from hpcagent_bench.translators.backends.fortran_lowering import lowered
from hpcagent_bench.translators.backends.fortran_types import value_type
from hpcagent_bench.translators.backends.naming import Names
from hpcagent_bench.translators.backends.signs import Signs
from hpcagent_bench.translators.backends.writing import INDENT, Source, as_function, elif_chain

_REDUCTION = {"and": ".and.", "or": ".or."}
_KIND = re.compile(r"(?<![A-Za-z])c_[a-z0-9_]+\b")


def emit(source: Source) -> str:
    """The Fortran text: a subroutine bound to the kernel's symbol, its helpers contained in it."""
    function, parallel = _safe(source.function, source.parallel)
    names = Names(respelled, str.lower)
    bound = abi.binding(source.kernel, source.datatype)
    names.add((*(arg.name for arg in bound.args), "workspace", "workspace_size"))
    names.add((bound.symbol, *function.arrays, *function.locals))
    names.add(helper.name for helper in function.helpers)
    indices = [stmt.var for stmt in ir.statements(function.body) if isinstance(stmt, ir.For)]
    names.add(indices)
    library = FortranLibrary(names)
    helpers = [_helper(helper, library) for helper in function.helpers]
    writer = FortranWriter(function, names, source.signs, library, parallel)
    body = writer.block(function.body)
    declared = _declared(function, names)
    contained = [*library.texts, *helpers]
    inside = [line for text in contained for line in ["", *text.rstrip().split("\n")]]
    arguments = fortran_abi.declarations(bound)
    interfaces = [f"{INDENT}{line}" for line in library.interfaces]
    everything = [*arguments, *declared, *interfaces, *body, *inside]
    lines = [
        f"! {source.title}",
        f"subroutine {bound.symbol}({', '.join(fortran_abi.argument_names(bound).values())}) "
        f'bind(C, name="{bound.symbol}")',
        f"{INDENT}use, intrinsic :: iso_c_binding, only: {', '.join(_kinds(everything))}",
        f"{INDENT}implicit none",
        *arguments,
        *_wide(everything),
        *declared,
        *interfaces,
        "",
        *_discarded(bound, body, arguments, names),
        *body,
        *(["", "contains", *(f"{INDENT}{line}" if line else "" for line in inside[1:])] if inside else []),
        f"end subroutine {bound.symbol}",
    ]
    return "\n".join(piece for line in lines for piece in wrapped(line)) + "\n"


def _safe(function: ir.Function, parallel: Verdict | None) -> tuple[ir.Function, Verdict | None]:
    """The function with no choice left that Fortran might evaluate too much of."""
    made = lowered(function.body, {*function.locals, *function.arrays, *function.scalars})
    function = replace(function, body=made.body, locals={**function.locals, **made.locals})
    if parallel is not None:
        parallel = replace(parallel, loop=made.loops[id(parallel.loop)])
    return function, parallel


def _kinds(lines: list[str]) -> list[str]:
    return sorted({word for line in lines for word in _KIND.findall(line)} & {*fortran_abi.KINDS.values()})


def _wide(lines: list[str]) -> list[str]:
    if not any(re.search(r"\bwide\b", line) for line in lines):
        return []
    return [f"{INDENT}integer, parameter :: wide = selected_int_kind(38)"]


def _declared(function: ir.Function, names: Names) -> list[str]:
    """Loop indices, local scalars and local arrays, one line a type."""
    indices = {stmt.var: "int64" for stmt in ir.statements(function.body) if isinstance(stmt, ir.For)}
    by_type: dict[str, list[str]] = {}
    for name, dtype in {**indices, **function.locals}.items():
        by_type.setdefault(value_type(dtype), []).append(names[name])
    lines = [f"{INDENT}{type_} :: {', '.join(spelled)}" for type_, spelled in by_type.items()]
    for array in function.arrays.values():
        if array.local:
            axes = ", ".join(":" for _ in array.shape)
            type_ = fortran_abi.type_of(array.dtype)
            lines.append(f"{INDENT}{type_}, allocatable :: {names[array.name]}({axes})")
    return lines


def _discarded(bound: abi.Binding, body: list[str], arguments: list[str], names: Names) -> list[str]:
    """Arguments the reference does not use are named, so that the compiler does not ask about them."""
    extents = [line.split("::")[1].split("(", 1)[1] for line in arguments if "(" in line.split("::")[-1]]
    text = "\n".join([*body, *extents]).lower()
    used = [names[name] for name in (*(arg.name for arg in bound.args), "workspace", "workspace_size")]
    unused = [name for name in used if not re.search(rf"\b{name.lower()}\b", text)]
    if not unused:
        return []
    pairs = ", ".join(f"{names.fresh('unused')} => {name}" for name in unused)
    return [f"{INDENT}associate ({pairs})", f"{INDENT}end associate"]


def _helper(helper: ir.Helper, library: FortranLibrary) -> str:
    """A helper function of the reference as a contained function."""
    function, _ = _safe(as_function(helper), None)
    names = _HelperNames(library.names)
    names.add((*helper.params, *function.locals))
    names.add(stmt.var for stmt in ir.statements(helper.body) if isinstance(stmt, ir.For))
    answer = names.fresh("answer")
    writer = FortranWriter(function, names, Signs({}), library, answer=answer)
    body = writer.block(function.body)
    if body and body[-1].strip() == "return":
        body.pop()
    params = [f"{INDENT}{value_type(dtype)}, intent(in) :: {names[n]}" for n, dtype in helper.params.items()]
    lines = [
        f"pure function {library.names[helper.name]}({', '.join(names[name] for name in helper.params)}) "
        f"result({answer})",
        *params,
        f"{INDENT}{value_type(helper.dtype)} :: {answer}",
        *_declared(function, names),
        *body,
        "end function",
    ]
    return "\n".join(lines)


class _HelperNames(Names):
    """Names of a helper; what it does not have itself is the subroutine's."""

    def __init__(self, beyond: Names) -> None:
        super().__init__(respelled, str.lower)
        self._taken.update(HELPERS)
        self._beyond = beyond

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name) if name in self else self._beyond[name]


class FortranWriter(Expressions):
    """Writes the statements of a function or helper."""

    def __init__(
        self,
        function: ir.Function,
        names: Names,
        signs: Signs,
        library: FortranLibrary,
        parallel: Verdict | None = None,
        answer: str = "",
    ) -> None:
        super().__init__(function, names, signs, library)
        self.parallel = parallel
        self.answer = answer

    def assign(self, stmt: ir.Assign) -> list[str]:
        return [f"{self.names[stmt.name]} = {self.bare(stmt.value)}"]

    def store(self, stmt: ir.Store) -> list[str]:
        value = self.stored(stmt.value, self.function.arrays[stmt.array].dtype)
        return [f"{self.element(stmt.array, stmt.index)} = {value}"]

    def loop(self, stmt: ir.For) -> list[str]:
        last = _moved(stmt.stop, 1 if stmt.descending else -1)
        bounds = [self.bare(stmt.start), self.bare(last)]
        if not stmt.unit:
            bounds.append(self.bare(stmt.step))
        head = f"do {self.names[stmt.var]} = {', '.join(bounds)}"
        return [*self.directive(stmt), head, *self.inside(stmt), "end do"]

    def directive(self, stmt: ir.For) -> list[str]:
        verdict = self.parallel
        if verdict is None or verdict.loop is not stmt:
            return []
        reduced = {reduction.name for reduction in verdict.reductions}
        own = sorted(ir.assigned(stmt.body) & {*self.function.locals} - reduced)
        clauses = [f"private({', '.join(self.names[name] for name in own)})"] if own else []
        for reduction in verdict.reductions:
            op = _REDUCTION.get(reduction.op, reduction.op)
            clauses.append(f"reduction({op}:{self.names[reduction.name]})")
        return [" ".join(["!$omp parallel do", *clauses])]

    def repeat(self, stmt: ir.While) -> list[str]:
        head = "do" if stmt.test == ir.Const(True, "bool") else f"do while ({self.text(stmt.test)})"
        return [head, *self.block(stmt.body), "end do"]

    def branch(self, stmt: ir.If) -> list[str]:
        chain, rest = elif_chain(stmt)
        lines: list[str] = []
        for test, body in chain:
            lines += [f"{'else if' if lines else 'if'} ({self.text(test)}) then", *self.block(body)]
        return [*lines, *(["else", *self.block(rest)] if rest else []), "end if"]

    def allocate(self, stmt: ir.Allocate) -> list[str]:
        array = self.function.arrays[stmt.array]
        axes = ", ".join(f"0:{self.bare(_moved(extent, -1))}" for extent in reversed(array.shape))
        name = self.names[stmt.array]
        return [f"allocate({name}({axes}))", *([f"{name} = 0"] if stmt.zeroed else [])]

    def jump(self, stmt: ir.Jump) -> list[str]:
        return ["exit" if stmt.kind == "break" else "cycle"]

    def leave(self, stmt: ir.Return) -> list[str]:
        return [*([] if stmt.value is None else [f"{self.answer} = {self.bare(stmt.value)}"]), "return"]


def _moved(bound: ir.Expr, by: int) -> ir.Expr:
    """``bound + by``, written as one number where it can be."""
    match bound:
        case ir.Const(value=int() as value):
            return ir.Const(value + by, "int64")
        case ir.Binary(op="+" | "-" as op, left=left, right=ir.Const(value=int() as value)) if (
            not bound.wraps
        ):
            shift = (value if op == "+" else -value) + by
            return left if shift == 0 else _shifted(left, shift)
    return _shifted(bound, by)


def _shifted(expr: ir.Expr, by: int) -> ir.Expr:
    return ir.Binary("+" if by > 0 else "-", expr, ir.Const(abs(by), "int64"), "int64")
