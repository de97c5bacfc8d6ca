"""The calling convention of every compiled delivery, ``c-abi-v2``, derived from a kernel.

``void <stem>_fp64(pointers sorted by name, scalars and sizes sorted by name, workspace, workspace_size)``:
one symbol for every language and precision, all memory the caller's, nothing returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from hpcagent_bench.corpus import expressions
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.errors import UserError, did_you_mean

ABI = "c-abi-v2"
C_TYPES: dict[str, str] = {
    "float64": "double",
    "float32": "float",
    "bool": "uint8_t",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""Types of scalars passed by value."""

CLanguage = Literal["c", "cpp"]
_ELEMENTS = {
    "c": {**C_TYPES, "complex64": "float _Complex", "complex128": "double _Complex"},
    "cpp": {**C_TYPES, "complex64": "std::complex<float>", "complex128": "std::complex<double>"},
}
for _types in _ELEMENTS.values():
    _types |= {"float16": "_Float16", "bfloat16": "uint16_t", "int4": "int8_t"}
    _types |= {"float8_e4m3": "uint8_t", "float8_e5m2": "uint8_t"}
_KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if inline int "
    "long register restrict return short signed sizeof static struct switch typedef union unsigned void "
    "volatile while bool true false nullptr alignas alignof constexpr thread_local typeof static_assert "
    "class new delete template this namespace using operator private public try catch throw and or not xor"
)
_LIBRARY = (
    "abs acos asin atan atan2 calloc ceil cos cosh div erf exp exp2 fabs floor fmax fmin fmod free "
    "log log10 log2 main malloc pow rand remainder round sin sinh sqrt tan tanh time"
)
_RESPELLED = frozenset([*_KEYWORDS.split(), *_LIBRARY.split()])


@dataclass(frozen=True)
class Arg:
    """One argument. ``shape`` holds an expression per axis for a pointer, None for a scalar."""

    name: str
    kind: Literal["ptr", "scalar"]
    dtype: str
    const: bool
    shape: tuple[str, ...] | None
    role: Literal["input", "output", "symbol", "scalar"]


@dataclass(frozen=True)
class Binding:
    """How a kernel is called; ``args`` are in call order, the workspace pair follows them and is implied."""

    kernel: str
    symbol: str
    abi: str
    args: tuple[Arg, ...]

    @property
    def pointers(self) -> tuple[Arg, ...]:
        """Array arguments in call order."""
        return tuple(arg for arg in self.args if arg.kind == "ptr")

    @property
    def scalars(self) -> tuple[Arg, ...]:
        """Scalar arguments and sizes in call order."""
        return tuple(arg for arg in self.args if arg.kind == "scalar")

    def to_json(self) -> dict[str, Any]:
        """The binding as plain data, for agents and tools that generate a call."""
        return {
            "kernel": self.kernel,
            "symbol": self.symbol,
            "abi": self.abi,
            "args": [_arg_json(arg) for arg in self.args],
            "packed": [],
            "workspace": {"pointer": "workspace", "size": "workspace_size", "alignment": 256},
            "symbols": [arg.name for arg in self.args if arg.role == "symbol"],
        }


def _arg_json(arg: Arg) -> dict[str, Any]:
    data: dict[str, Any] = {"name": arg.name, "kind": arg.kind, "dtype": arg.dtype, "const": arg.const}
    if arg.shape is not None:
        data["shape"] = list(arg.shape)
    if arg.role in ("output", "symbol"):
        data["role"] = arg.role
    return data


def binding(kernel: Kernel, datatype: str = "float64") -> Binding:
    """The call of ``kernel`` in a run of that precision; output pointers are in/out."""
    dtypes = kernel.dtypes(datatype)
    for name, dtype in dtypes.items():
        if dtype not in _ELEMENTS["c"]:
            raise UserError(
                f"kernel {kernel.name}: argument {name} has dtype '{dtype}', which the C call cannot carry",
                did_you_mean(dtype, _ELEMENTS["c"]),
            )
    pointers = [
        Arg(
            name=name,
            kind="ptr",
            dtype=dtypes[name],
            const=name not in kernel.outputs,
            shape=expressions.axes(declared.shape),
            role="output" if name in kernel.outputs else "input",
        )
        for name, declared in kernel.arrays.items()
    ]
    symbols = kernel.presets["XL"]
    scalars = [
        Arg(name, "scalar", _by_value(dtypes[name]), True, None, "symbol" if name in symbols else "scalar")
        for name in kernel.scalars({})
    ]
    return Binding(kernel.name, kernel.symbol, ABI, tuple(pointers + scalars))


def _by_value(dtype: str) -> str:
    """The dtype a scalar is passed in: formats that only store numbers are passed as what they compute in."""
    if dtype in C_TYPES or dtype.startswith("complex"):
        return dtype
    return "int64" if dtype == "int4" else "float32"


def c_type(dtype: str, language: CLanguage = "c") -> str:
    """The C or C++ type of an array element or a scalar.

    bfloat16 and the float8 formats are the bits of the number, a bool is 0 or 1, an int4 one number a byte.
    """
    return _ELEMENTS[language][dtype]


def c_name(name: str) -> str:
    """``name`` as C spells it: keywords and common library names get a trailing underscore."""
    return f"{name}_" if name in _RESPELLED else name


def c_parameters(bound: Binding, language: CLanguage = "c") -> list[str]:
    """One text per parameter, in call order, the workspace pair last."""
    restrict = "restrict" if language == "c" else "__restrict__"
    texts = []
    for arg in bound.args:
        const = "const " if arg.const else ""
        star = f" *{restrict} " if arg.kind == "ptr" else " "
        texts.append(f"{const}{c_type(arg.dtype, language)}{star}{c_name(arg.name)}")
    return [*texts, f"uint8_t *{restrict} workspace", "const int64_t workspace_size"]


def c_declaration(bound: Binding, language: CLanguage = "c") -> str:
    """The prototype in one line, without a semicolon (in C++ with its linkage); see c_headers."""
    prefix = 'extern "C" ' if language == "cpp" else ""
    return f"{prefix}void {bound.symbol}({', '.join(c_parameters(bound, language))})"


def c_headers(bound: Binding, language: CLanguage = "c") -> list[str]:
    """The includes the prototype needs."""
    names = {"c": ("<stdint.h>", "<complex.h>"), "cpp": ("<cstdint>", "<complex>")}[language]
    has_complex = any(arg.dtype.startswith("complex") for arg in bound.args)
    return [f"#include {name}" for name in names[: 1 + has_complex]]
