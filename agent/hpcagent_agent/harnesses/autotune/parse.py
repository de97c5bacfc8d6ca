"""C text to the typed form, through pycparser. What is not understood becomes ``Raw`` or ``Unparsable``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pycparser import c_ast, c_generator, c_parser

from . import ir

_TYPES = "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t bool"
_PRELUDE = "".join(f"typedef int {name};\n" for name in _TYPES.split())
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


class Unparsable(Exception):
    """The text is not one function in the style autotune knows."""


def parse(text: str, symbol: str) -> ir.Function:
    """The function ``symbol`` of a C file, with its static helpers. ``Unparsable`` for anything else."""
    clean = _COMMENT.sub(" ", text)
    includes = tuple(line.strip() for line in clean.splitlines() if line.lstrip().startswith("#include"))
    lines = [line for line in clean.splitlines() if not line.lstrip().startswith("#include")]
    if any(line.lstrip().startswith("#") for line in lines):
        raise Unparsable("preprocessor directives other than #include are not read")
    try:
        unit = c_parser.CParser().parse(_PRELUDE + "\n".join(lines))
    except Exception as error:  # pycparser raises several kinds, ParseError and AssertionError among them
        raise Unparsable(f"not C99: {error}") from error
    own = [node for node in unit.ext if not isinstance(node, c_ast.Typedef)]
    if not all(isinstance(node, c_ast.FuncDef) for node in own):
        raise Unparsable("something beside functions")
    mine = [node for node in own if node.decl.name == symbol]
    helpers = [node for node in own if node.decl.name != symbol]
    if len(mine) != 1 or not all("static" in node.decl.storage for node in helpers):
        raise Unparsable(f"expected the one function {symbol}, and static helpers")
    return _function(mine[0], includes, tuple(_text(node) for node in helpers))


def _function(node: c_ast.FuncDef, includes: tuple[str, ...], helpers: tuple[str, ...]) -> ir.Function:
    signature = c_generator.CGenerator().visit(node.decl)
    pointers: dict[str, str] = {}
    scalars: dict[str, str] = {}
    for param in node.decl.type.args.params if node.decl.type.args else ():
        if isinstance(param.type, c_ast.PtrDecl):
            pointers[param.name] = _base_type(param.type.type)
        else:
            scalars[param.name] = _base_type(param.type)
    return ir.Function(signature, pointers, scalars, _body(node.body.block_items), includes, helpers)


def _base_type(node: c_ast.Node) -> str:
    if isinstance(node, c_ast.TypeDecl) and isinstance(node.type, c_ast.IdentifierType):
        return " ".join(node.type.names)
    raise Unparsable(f"type not read: {_text(node)}")


def _text(node: c_ast.Node) -> str:
    return str(c_generator.CGenerator().visit(node))


def _body(items: Sequence[c_ast.Node] | None) -> ir.Body:
    found: list[ir.Stmt] = []
    for item in items or ():
        found += _statement(item)
    return tuple(found)


def _block(node: c_ast.Node | None) -> ir.Body:
    if node is None:
        return ()
    return _body(node.block_items) if isinstance(node, c_ast.Compound) else _body([node])


def _statement(node: c_ast.Node) -> list[ir.Stmt]:
    try:
        return _known(node)
    except Unparsable:
        text = _text(node)
        return [ir.Raw(text if text.endswith(("}", ";")) else text + ";")]


def _known(node: c_ast.Node) -> list[ir.Stmt]:
    match node:
        case c_ast.Compound():
            inner = _body(node.block_items)
            if any(isinstance(stmt, ir.Decl) for stmt in inner):
                raise Unparsable("a bare block with its own scope")
            return list(inner)
        case c_ast.Decl():
            return [_declaration(node)]
        case c_ast.DeclList():
            return [_declaration(decl) for decl in node.decls]
        case c_ast.Assignment() | c_ast.UnaryOp(op="++" | "--" | "p++" | "p--"):
            return [_assignment(node)]
        case c_ast.For():
            return [_loop(node)]
        case c_ast.If():
            return [ir.If(expression(node.cond), _block(node.iftrue), _block(node.iffalse))]
        case c_ast.FuncCall():
            return [ir.Do(expression(node))]
        case c_ast.EmptyStatement():
            return []
        case c_ast.Cast(expr=c_ast.ID()) if _base_type(node.to_type.type) == "void":
            return []  # "(void)workspace;" says that a parameter is not used, and does nothing
        case _:
            raise Unparsable(type(node).__name__)


def _declaration(node: c_ast.Decl) -> ir.Decl:
    init = None if node.init is None else expression(node.init)
    if isinstance(node.type, c_ast.PtrDecl):
        quals = " ".join(node.type.quals)
        kind = " ".join([*node.type.type.quals, _base_type(node.type.type)])
        return ir.Decl(f"{kind} *{quals}".strip(), node.name, init)
    return ir.Decl(_base_type(node.type), node.name, init)


def _assignment(node: c_ast.Node) -> ir.Assign:
    if isinstance(node, c_ast.UnaryOp):
        target = expression(node.expr)
        return ir.Assign(_target(target), ir.Bin(node.op[-1], target, ir.Num("1")))
    target, value = expression(node.lvalue), expression(node.rvalue)
    if node.op == "=":
        return ir.Assign(_target(target), value)
    return ir.Assign(_target(target), ir.Bin(node.op[:-1], target, value))


def _target(expr: ir.Expr) -> ir.Name | ir.Sub:
    if isinstance(expr, ir.Name | ir.Sub):
        return expr
    raise Unparsable("assignment through a pointer")


def _loop(node: c_ast.For) -> ir.Loop:
    init = node.init
    if not isinstance(init, c_ast.DeclList) or len(init.decls) != 1 or init.decls[0].init is None:
        raise Unparsable("for without its own counter")
    var = init.decls[0].name
    lo = expression(init.decls[0].init)
    step = _step(node.next, var)
    cond = expression(node.cond) if node.cond is not None else None
    if not isinstance(cond, ir.Bin) or cond.left != ir.Name(var):
        raise Unparsable("for without a bound")
    hi = cond.right
    if cond.op == ("<=" if step > 0 else ">="):
        hi = ir.Bin("+" if step > 0 else "-", hi, ir.Num("1"))
    elif cond.op != ("<" if step > 0 else ">"):
        raise Unparsable("for with another comparison")
    body = _block(node.stmt)
    changed = ir.writes(body) | set(ir.declared(body))
    if changed & {var, *_names(hi)}:
        raise Unparsable("for whose counter or bound changes inside")
    return ir.Loop(var, lo, hi, step, body)


def _names(expr: ir.Expr) -> set[str]:
    found = {e.id for e in ir.walk(expr) if isinstance(e, ir.Name)}
    return found | {e.array for e in ir.walk(expr) if isinstance(e, ir.Sub)}


def _step(node: c_ast.Node | None, var: str) -> int:
    if isinstance(node, c_ast.UnaryOp) and _text(node.expr) == var and node.op in ("p++", "++", "p--", "--"):
        return 1 if "+" in node.op else -1
    if isinstance(node, c_ast.Assignment) and _text(node.lvalue) == var and node.op in ("+=", "-="):
        by = node.rvalue
        if isinstance(by, c_ast.Constant) and by.value.isdigit() and int(by.value) > 0:
            return int(by.value) if node.op == "+=" else -int(by.value)
    raise Unparsable("for with another step")


def expression(node: c_ast.Node) -> ir.Expr:
    """One expression. Raises ``Unparsable`` for side effects, pointers and structures."""
    match node:
        case c_ast.Constant():
            return ir.Num(node.value)
        case c_ast.ID():
            return ir.Name(node.name)
        case c_ast.ArrayRef(name=c_ast.ID()):
            return ir.Sub(node.name.name, expression(node.subscript))
        case c_ast.BinaryOp():
            return ir.Bin(node.op, expression(node.left), expression(node.right))
        case c_ast.UnaryOp(op="-" | "+" | "!" | "~"):
            return ir.Un(node.op, expression(node.expr))
        case c_ast.UnaryOp(op="sizeof"):
            return ir.Name(f"sizeof({_text(node.expr)})")
        case c_ast.TernaryOp():
            return ir.Sel(expression(node.cond), expression(node.iftrue), expression(node.iffalse))
        case c_ast.Cast():
            return ir.Cast(_text(node.to_type), expression(node.expr))
        case c_ast.FuncCall(name=c_ast.ID()):
            args = node.args.exprs if node.args else ()
            return ir.Call(node.name.name, tuple(expression(arg) for arg in args))
        case _:
            raise Unparsable(type(node).__name__)


def parse_expression(text: str) -> ir.Expr:
    """One C expression, such as an extent of a shape."""
    try:
        unit = c_parser.CParser().parse(f"long x = {text};")
    except Exception as error:
        raise Unparsable(f"not an expression: {text}") from error
    return expression(unit.ext[0].init)
