"""The element types of arguments: how they are called, stored and read by NumPy.

NumPy has no bfloat16 and no eight-bit floating-point format; package ``ml_dtypes`` brings them.
``float8_e4m3`` is the format without infinities whose largest number is 448 (ml_dtypes' ``float8_e4m3fn``):
the name alone would give NumPy another one. ``int4`` is stored one number a byte, as int8 within -8 .. 7.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from hpcagent_bench.errors import UserError, did_you_mean

RUN_SPELLINGS = {
    "float64": "float64",
    "float32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8_e4m3": "float8_e4m3",
    "fp8_e5m2": "float8_e5m2",
}
"""What a command line calls a run's precision, and the name the program uses."""

DATATYPES = tuple(RUN_SPELLINGS.values())
"""Precisions a run may have, from most to fewest digits."""

PRECISIONS = dict(zip(("fp64", "fp32", *list(RUN_SPELLINGS)[2:]), DATATYPES, strict=True))
"""What a manifest calls them."""

ARRAY_DTYPES = (
    *DATATYPES,
    *("complex128", "complex64", "bool", "int64", "int32", "int16", "int8", "int4"),
    *("uint64", "uint32", "uint16", "uint8"),
)
"""Element types an argument may have."""

_NARROW: dict[str, Any] = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "int4": np.int8,
}
_INT4 = (-8, 7)


def parse(text: str) -> str:
    """The precision called ``text`` (``fp16``, ``float16``, ``fp64``); unknown is a UserError."""
    spellings = {**PRECISIONS, **RUN_SPELLINGS}
    if text in DATATYPES:
        return text
    if text not in spellings:
        raise UserError(f"datatype '{text}' is not supported", did_you_mean(text, [*spellings, *DATATYPES]))
    return spellings[text]


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy type that stores an element type."""
    dtype: np.dtype[Any] = np.dtype(_NARROW.get(name, name))
    return dtype


def dtype_name(dtype: np.dtype[Any]) -> str:
    """The element type a NumPy type stores; int8 is int8, since int4 has no type of its own."""
    return "float8_e4m3" if dtype == ml_dtypes.float8_e4m3fn else dtype.name


def is_float(name: str) -> bool:
    """Whether the element type is a real floating-point format."""
    return name in DATATYPES


def is_integer(name: str) -> bool:
    """Whether the element type is an integer format (bool is none)."""
    return numpy_dtype(name).kind in "iu" and not is_float(name)


@cache
def epsilon(name: str) -> float:
    """Distance from 1 to the next number of a real or complex format."""
    return float(_limits(name).eps)


@cache
def smallest_normal(name: str) -> float:
    """The least positive number a real or complex format holds with all its digits."""
    return float(_limits(name).smallest_normal)


def digits(name: str) -> int:
    """Significant binary digits of a format, the leading one included."""
    return 1 - round(math.log2(epsilon(name)))


def integer_range(name: str) -> tuple[int, int]:
    """The least and the largest number of an integer format."""
    if name == "int4":
        return _INT4
    limits = np.iinfo(numpy_dtype(name))
    return int(limits.min), int(limits.max)


def _limits(name: str) -> Any:
    dtype = numpy_dtype(name)
    real = np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype
    return ml_dtypes.finfo(real)  # type: ignore[no-untyped-call]
