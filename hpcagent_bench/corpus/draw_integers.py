"""Draws of integer and boolean arrays: indices, permutations, row pointers, masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hpcagent_bench.corpus import datatypes, native_helpers
from hpcagent_bench.errors import UserError

Array = npt.NDArray[Any]
_WIDEST_SPAN = 2**64 - 1


def fill(
    name: str,
    array: Array,
    dtype: str,
    dist: str | None,
    interval: tuple[int, int] | None,
    key: int,
    threads: int,
) -> None:
    """Fill a C-contiguous array of element type ``dtype``.

    Booleans are fair bits. Integers are uniform within ``interval`` (both ends belong to it) or row pointers
    from one end to the other; without an interval a vector is a permutation of 0 .. n-1, what has more
    axes uniform in [0, smallest extent), and ``int4`` uniform over all its numbers.
    """
    flat = array.reshape(-1)
    if flat.size == 0:
        return
    if dtype == "bool":
        _integers(flat.view(np.uint8), 0, 1, key, threads)
        return
    lo, hi = interval or _default_interval(array, dtype)
    least, most = datatypes.integer_range(dtype)
    if lo < least or hi > most:
        raise UserError(f"array '{name}': {dtype} cannot hold {lo} to {hi}", "declare a wider dtype")
    if dist == "offsets":
        _by_width(flat, "offsets", (key, lo, hi, threads))
    elif dist == "permutation" or (dist is None and interval is None and array.ndim == 1 and dtype != "int4"):
        _by_width(flat, "permutation", (key, threads))
    else:
        _integers(flat, lo, hi, key, threads)


def _default_interval(array: Array, dtype: str) -> tuple[int, int]:
    return datatypes.integer_range(dtype) if dtype == "int4" else (0, min(array.shape) - 1)


def _integers(flat: Array, lo: int, hi: int, key: int, threads: int) -> None:
    """Uniform in [lo, hi]; the helper wraps modulo 2^64, so unsigned numbers pass through its signed ones."""
    span = hi - lo + 1
    if span > _WIDEST_SPAN:
        raise UserError(f"the interval [{lo}, {hi}] holds 2^64 numbers", "leave out one of its ends")
    draw = getattr(native_helpers.library(), f"draw_integers_i{8 * flat.dtype.itemsize}")
    draw(flat.ctypes.data, flat.size, key, lo - 2**64 if lo >= 2**63 else lo, span, threads)


def _by_width(flat: Array, what: str, arguments: tuple[int, ...]) -> None:
    """A draw whose helper exists for 32 and 64 bits; narrower types are converted from 32."""
    wide = flat if flat.dtype.itemsize >= 4 else np.empty(flat.size, np.int32)
    key, *rest = arguments
    draw = getattr(native_helpers.library(), f"draw_{what}_i{8 * wide.dtype.itemsize}")
    if draw(wide.ctypes.data, wide.size, key, *rest) != 0:
        raise MemoryError(f"no memory to draw {flat.size} indices")
    if wide is not flat:
        flat[:] = wide
