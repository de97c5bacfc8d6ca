"""From a kernel's NumPy reference to its typed form: AST in, IR out, with a clear refusal of the rest.

Covered: ``for`` over ``range`` with a literal step, ``if``, scalar locals, element loads and stores with one
integer index per axis, ``np.empty``/``np.zeros``/``np.empty_like`` temporaries, arithmetic, comparisons and
the functions of ``reading.FUNCTIONS``. Anything else raises Unsupported with file, line and text.
"""

from __future__ import annotations

import ast

from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.toolchain.abi import c_name
from hpcagent_bench.translators import bounds, ir
from hpcagent_bench.translators.reading import ExpressionReader, Unsupported, text

__all__ = ["Unsupported", "translate"]


def translate(kernel: Kernel, datatype: str = "float64") -> ir.Function:
    """The typed form of ``kernel``'s reference in that precision; Unsupported names what is not covered."""
    tree = ast.parse(kernel.numpy_source.read_text(encoding="utf-8"))
    reader = _StatementReader(kernel, datatype)
    function = reader.module(tree)
    while True:  # a local's dtype may widen once all its assignments are seen; each pass only widens
        before = dict(reader.locals)
        body = reader.block(function.body)
        if reader.locals == before:
            break
        reader.restart()
    translated = ir.Function(
        name=function.name,
        arg_order=kernel.arg_order,
        arrays=reader.arrays,
        scalars=reader.scalars,
        locals=reader.locals,
        body=body,
    )
    bounds.check(kernel, translated)
    return translated


class _StatementReader(ExpressionReader):
    """Reads the statements of the reference function."""

    def module(self, tree: ast.Module) -> ast.FunctionDef:
        """The reference function; a module may hold imports of numpy and docstrings besides."""
        function = None
        for node in tree.body:
            match node:
                case ast.FunctionDef(name=name) if name == self.kernel.function:
                    function = node
                case ast.Import(names=[ast.alias(name="numpy", asname="np")]):
                    continue
                case ast.Expr(value=ast.Constant()):
                    continue
                case _:
                    hint = "only `import numpy as np` may stand there"
                    raise self.refusal(node, f"'{text(node)}' beside the function", hint)
        assert function is not None  # the corpus loader found it
        if function.decorator_list:
            raise self.refusal(function.decorator_list[0], "a decorator")
        return function

    def block(self, nodes: list[ast.stmt]) -> tuple[ir.Stmt, ...]:
        return tuple(stmt for node in nodes for stmt in self.statement(node))

    def statement(self, node: ast.stmt) -> list[ir.Stmt]:
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return []
            case ast.For():
                return [self.loop(node)]
            case ast.If():
                test = self.condition(node.test)
                self.depth += 1
                body, orelse = self.block(node.body), self.block(node.orelse)
                self.depth -= 1
                return [ir.If(test, body, orelse, node.lineno)]
            case ast.Assign(targets=[target]):
                return [self.assignment(target, node.value, node)]
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                return [self.assignment(target, value, node)]
            case ast.AugAssign():
                value = ast.BinOp(_as_load(node.target), node.op, node.value)
                ast.copy_location(value, node)
                return [self.assignment(node.target, value, node)]
            case ast.Break() | ast.Continue():
                return [ir.Jump(type(node).__name__.lower(), node.lineno)]
            case _:
                raise self.refusal(node, f"'{text(node)}'")

    def loop(self, node: ast.For) -> ir.For:
        if node.orelse:
            raise self.refusal(node, "'for ... else'")
        if not isinstance(node.target, ast.Name):
            raise self.refusal(node, f"loop target '{text(node.target)}'")
        var = node.target.id
        if var in self.loops or var in self.scalars or var in self.arrays or var in self.locals:
            raise self.refusal(
                node, f"loop index '{var}', which is in use", "give the index a name of its own"
            )
        self.usable(var, node, again=True)
        start, stop, step = self.bounds(node.iter)
        self.loops.append(var)
        self.finished.discard(var)
        self.depth += 1
        body = self.block(node.body)
        self.depth -= 1
        self.loops.pop()
        self.finished.add(var)
        return ir.For(var, start, stop, step, body, node.lineno)

    def bounds(self, node: ast.expr) -> tuple[ir.Expr, ir.Expr, int]:
        match node:
            case ast.Call(func=ast.Name(id="range"), args=args, keywords=[]) if 1 <= len(args) <= 3:
                pass
            case _:
                raise self.refusal(node, f"a loop over '{text(node)}'", "loop over range(...)")
        texts = [self.integer(arg) for arg in args]
        start = texts[0] if len(texts) > 1 else ir.Const(0, "int64")
        stop = texts[1] if len(texts) > 1 else texts[0]
        step = texts[2] if len(texts) > 2 else ir.Const(1, "int64")
        if not isinstance(step, ir.Const) or not isinstance(step.value, int) or step.value == 0:
            raise self.refusal(node, f"step '{text(args[2])}'", "a step is a nonzero number")
        return start, stop, step.value

    def assignment(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> ir.Stmt:
        if isinstance(target, ast.Subscript):
            array, index = self.element(target)
            if not self.arrays[array].local and array not in self.kernel.outputs:
                raise self.refusal(node, f"a store into '{array}', which is no output,")
            return ir.Store(array, index, self.expr(value), node.lineno)
        if not isinstance(target, ast.Name):
            raise self.refusal(node, f"assignment to '{text(target)}'")
        name = target.id
        if name in self.scalars or name in self.loops or name in self.arrays:
            raise self.refusal(node, f"assignment to '{name}', an argument, an index or an array,")
        if _is_allocation(value):
            return self.allocation(name, value, node)
        self.usable(name, node)
        result = self.expr(value)
        known = self.locals.get(name, result.dtype)
        self.locals[name] = ir.promote(known, result.dtype)
        self.assigned.add(name)
        return ir.Assign(name, result, node.lineno)

    def usable(self, name: str, node: ast.AST, again: bool = False) -> None:
        """Refuse names C reserves and, unless ``again``, the index of a loop that has ended."""
        if c_name(name) != name or name in ("workspace", "workspace_size", "np"):
            raise self.refusal(node, f"the name '{name}', which is reserved,", "rename it")
        if name in self.finished and not again:
            raise self.refusal(node, f"'{name}', an index of an earlier loop,", "give it a name of its own")

    def allocation(self, name: str, value: ast.expr, node: ast.stmt) -> ir.Stmt:
        assert isinstance(value, ast.Call)
        assert isinstance(value.func, ast.Attribute)
        if self.depth:
            raise self.refusal(
                node, f"'{text(value)}' inside a loop or branch", "make temporaries at the top"
            )
        self.usable(name, node)
        if name in self.locals:
            raise self.refusal(node, f"'{name}' as a scalar and an array", "rename one")
        like = value.func.attr.endswith("_like")
        options = {word.arg: word.value for word in value.keywords}
        if len(value.args) != 1 or not set(options) <= {"dtype"}:
            raise self.refusal(node, f"'{text(value)}'", "write np.empty(shape, dtype=a.dtype)")
        first = value.args[0]
        if like:
            if not isinstance(first, ast.Name) or first.id not in self.arrays:
                raise self.refusal(node, f"'{text(value)}'")
            shape, dtype = self.arrays[first.id].shape, self.arrays[first.id].dtype
        else:
            axes = first.elts if isinstance(first, ast.Tuple) else [first]
            shape, dtype = tuple(self.integer(axis) for axis in axes), "float64"
        if "dtype" in options:
            dtype = self.element_type(options["dtype"])
        changed = frozenset(self.assigned)
        if any(ir.reads(axis) & changed for axis in shape):
            raise self.refusal(node, f"a shape of '{name}' that is computed", "use sizes of the manifest")
        self.arrays[name] = ir.Array(name, dtype, shape, local=True)
        return ir.Allocate(name, value.func.attr.startswith("zeros"), node.lineno)

    def element_type(self, node: ast.expr) -> str:
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr="dtype") if name in self.arrays:
                return self.arrays[name].dtype
            case ast.Attribute(
                value=ast.Name(id="np"), attr=("float64" | "float32" | "int64" | "int32") as dtype
            ):
                return dtype
            case _:
                raise self.refusal(node, f"dtype '{text(node)}'", "write dtype=a.dtype or np.float64")


def _as_load(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name():
            return ast.copy_location(ast.Name(target.id, ast.Load()), target)
        case ast.Subscript():
            return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
        case _:
            return target


def _is_allocation(node: ast.expr) -> bool:
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="np"), attr="empty" | "zeros" | "empty_like" | "zeros_like")
        ):
            return True
        case _:
            return False
