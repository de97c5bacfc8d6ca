"""The calling convention as Fortran declares it: reversed extents, bounds from 0, scalars by value.

``aa[i, j]`` of the reference is ``aa(j, i)`` here: the same memory and the same numbers.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable

from hpcagent_bench.toolchain.abi import Arg, Binding

KINDS = {
    **{f"{sign}int{bits}": f"c_int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{"float64": "c_double", "float32": "c_float", "complex128": "c_double_complex"},
    **{"complex64": "c_float_complex", "bool": "c_int8_t", "int4": "c_int8_t"},
    **{"float16": "c_int16_t", "bfloat16": "c_int16_t"},
    **{"float8_e4m3": "c_int8_t", "float8_e5m2": "c_int8_t"},
}
"""Kinds of ``iso_c_binding``; unsigned integers and small floats, which Fortran lacks, travel as bits."""

WIDTH = 110
_LENGTH = 63
_INTRINSICS = (
    "abs acos acosh aimag aint anint asin asinh atan atan2 atanh bge bgt ble blt btest cmplx conjg cos cosh "
    "epsilon exp hypot iand ieor int ior log log10 max merge min mod modulo nint not real selected_int_kind "
    "shifta shiftl shiftr sign sin sinh sqrt tan tanh transfer wide"
)
_RESPELLED = frozenset([*_INTRINSICS.split(), *KINDS.values()])
_INT32 = 2**31


def respelled(name: str) -> str:
    """``name`` as Fortran can spell it: a letter first, 63 characters at most, no intrinsic in use here."""
    if name.lower() in _RESPELLED:
        return f"{name}_"
    if not name[0].isalpha():
        name = f"u{name}"
    if len(name) <= _LENGTH:
        return name
    return f"{name[: _LENGTH - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def spellings(names: Iterable[str]) -> dict[str, str]:
    """Every name with its spelling; of two that differ only in case the later one gets a number."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        wanted = spelled = respelled(name)
        count = 1
        while spelled.lower() in taken:
            count += 1
            spelled = f"{wanted}{count}"
        taken.add(spelled.lower())
        found[name] = spelled
    return found


def argument_names(bound: Binding) -> dict[str, str]:
    """The spelling of every argument, the workspace pair included."""
    return spellings([*(arg.name for arg in bound.args), "workspace", "workspace_size"])


def type_of(dtype: str) -> str:
    """The type of an element or a scalar argument: ``real(c_double)``."""
    kind = KINDS[dtype]
    family = {"c_double": "real", "c_float": "real"}.get(kind, "complex" if "complex" in kind else "integer")
    return f"{family}({kind})"


def head(bound: Binding) -> list[str]:
    """The first lines of the subroutine, down to the declaration of its last argument."""
    names = argument_names(bound)
    arguments = ", ".join(names.values())
    return [
        *wrapped(f'subroutine {bound.symbol}({arguments}) bind(C, name="{bound.symbol}")'),
        *wrapped(f"    use, intrinsic :: iso_c_binding, only: {', '.join(_kinds(bound))}"),
        "    implicit none",
        *declarations(bound),
    ]


def declarations(bound: Binding) -> list[str]:
    """One line per argument: scalars first, since the extents of the arrays are made of them."""
    names = argument_names(bound)
    lines = [
        f"    {type_of(arg.dtype)}, value, intent(in) :: {names[arg.name]}"
        for arg in sorted(bound.scalars, key=lambda arg: arg.role != "symbol")
    ]
    lines.append(f"    integer(c_int64_t), value, intent(in) :: {names['workspace_size']}")
    for arg in bound.pointers:
        intent = "in" if arg.const else "inout"
        lines.append(
            f"    {type_of(arg.dtype)}, intent({intent}) :: {names[arg.name]}({_extents(arg, names)})"
        )
    workspace, size = names["workspace"], names["workspace_size"]
    lines.append(f"    integer(c_int8_t), intent(inout) :: {workspace}(0:{size} - 1)")
    return [piece for line in lines for piece in wrapped(line)]


def fortran_interface(bound: Binding) -> str:
    """The interface block of a kernel, for callers and for whoever writes the subroutine."""
    names = argument_names(bound)
    lines = [
        "interface",
        *wrapped(
            f'    subroutine {bound.symbol}({", ".join(names.values())}) bind(C, name="{bound.symbol}")'
        ),
        *wrapped(f"        use, intrinsic :: iso_c_binding, only: {', '.join(_kinds(bound))}"),
        *(f"    {line}" for line in declarations(bound)),
        f"    end subroutine {bound.symbol}",
        "end interface",
    ]
    return "\n".join(lines) + "\n"


def _kinds(bound: Binding) -> list[str]:
    return sorted({"c_int8_t", "c_int64_t", *(KINDS[arg.dtype] for arg in bound.args)})


def _extents(arg: Arg, names: dict[str, str]) -> str:
    assert arg.shape is not None
    return ", ".join(f"0:{last(axis, names)}" for axis in reversed(arg.shape)) or "0:0"


def last(extent: str, names: dict[str, str]) -> str:
    """The highest index of an axis with that extent: ``N - 1``, ``N`` for ``N + 1``."""
    node = ast.parse(extent, mode="eval").body
    match node:
        case ast.Constant(value=int() as value):
            return str(value - 1)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=ast.Constant(value=int() as value)):
            shift = value - 1 if isinstance(op, ast.Add) else -value - 1
            sign = "" if shift == 0 else f" {'+' if shift > 0 else '-'} {abs(shift)}"
            return f"{_text(left, names, 1)}{sign}"
    return f"{_text(node, names, 1)} - 1"


def _text(node: ast.expr, names: dict[str, str], least: int = 0) -> str:
    """A size expression in Fortran; extents are not negative, so that ``/`` rounds as ``//`` does."""
    match node:
        case ast.Name():
            return names[node.id]
        case ast.Constant(value=int() as value):
            return str(value) if abs(value) < _INT32 else f"{value}_c_int64_t"
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"(-{_text(operand, names, 2)})"
        case ast.BinOp(op=ast.Mod(), left=left, right=right):
            pair = [f"{_text(part, names)}" for part in (left, right)]
            return f"modulo({', '.join(f'int({part}, c_int64_t)' for part in pair)})"
        case ast.BinOp(left=left, right=right):
            sign, level = {
                ast.Add: ("+", 1),
                ast.Sub: ("-", 1),
                ast.Mult: ("*", 2),
                ast.FloorDiv: ("/", 2),
            }[type(node.op)]
            text = f"{_text(left, names, level)} {sign} {_text(right, names, level + 1)}"
            return text if level >= least else f"({text})"
    raise ValueError(f"not a size: {ast.unparse(node)}")


def wrapped(line: str, width: int = WIDTH) -> list[str]:
    """The line in pieces that end before column 132, continued as Fortran wants it."""
    sentinel = "!$omp& " if line.lstrip().startswith("!$omp") else ""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    pieces = []
    while len(line) > width:
        cut = line.rfind(" ", len(indent) + len(sentinel) + 1, width)
        if cut < 0:
            break
        pieces.append(f"{line[:cut]} &")
        line = f"{indent}{sentinel}{line[cut + 1 :]}"
    return [*pieces, line]
