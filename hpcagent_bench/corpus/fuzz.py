"""Draws: the seeds of a value pool, and filling a kernel's arrays from a seed.

A draw depends on nothing but its seeds: the k-th declared array (sorted by name) has a stream of its own, and
every block of it another, so thread count and machine do not matter. Floating-point arrays follow the value
seed; integer and boolean arrays (indices, masks, permutations) follow the structural seed, so they stay
byte-identical over a pool (scoring.md 1.3).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hpcagent_bench.corpus import datatypes, draw_integers, draw_values, initializers
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.support.distributions import Variant

SIZE_CLASSES = ("aligned", "odd", "odd8", "even")
"""Classes of the four inputs: multiples of 64, odd, 8 x odd, even and unaligned (scoring.md 1.2 gate 2)."""

Array = npt.NDArray[Any]


def pool_seed(base: int, kernel: str, preset: str, datatype: str, cell: str, index: int) -> int:
    """Value seed ``index`` of a cell's pool: 63 bits that tell neither ``base`` nor any other seed."""
    return _digest("pool", base, kernel, preset, datatype, cell, index) >> 1


def _digest(*parts: str | int) -> int:
    """64 bits of BLAKE2b over the parts, each with its length so that no two lists read alike."""
    hasher = hashlib.blake2b(digest_size=8, person=b"hpcagent-draws")
    for part in parts:
        raw = str(part).encode()
        hasher.update(len(raw).to_bytes(4, "little") + raw)
    return int.from_bytes(hasher.digest(), "little")


def drawn(
    kernel: Kernel,
    params: Mapping[str, int | float],
    *,
    value_seed: int,
    structural_seed: int,
    threads: int = 1,
    datatype: str = "float64",
    variant: Variant | None = None,
) -> dict[str, Array]:
    """Every declared array in a run of that precision, made and filled (see fill)."""
    dtypes = kernel.dtypes(datatype)
    arrays: dict[str, Array] = {
        name: np.empty(shape, datatypes.numpy_dtype(dtypes[name]))
        for name, shape in kernel.shapes(params).items()
    }
    fill(
        kernel,
        arrays,
        params,
        value_seed=value_seed,
        structural_seed=structural_seed,
        threads=threads,
        datatype=datatype,
        variant=variant,
    )
    return arrays


def fill(
    kernel: Kernel,
    arrays: Mapping[str, Array],
    params: Mapping[str, int | float],
    *,
    value_seed: int,
    structural_seed: int,
    threads: int,
    datatype: str | None = None,
    variant: Variant | None = None,
    structural_from: Mapping[str, Array] | None = None,
) -> None:
    """Fill declared arrays in place: those that ``arrays`` holds, C-contiguous, in their declared shapes.

    Filling some of them now and the others elsewhere gives the same values as filling all at once.

    ``datatype`` is the run's precision; None reads it off the arrays. ``variant`` is a held-out case, which
    changes what reals are drawn from (draw_values.law); a kernel with an initializer of its own knows none.
    ``structural_from``, an earlier draw of the same sizes and structural seed, saves drawing integers again.
    """
    shapes = kernel.shapes(params)
    if not set(arrays) <= set(shapes):
        raise ValueError(f"{kernel.name}: arrays {sorted(arrays)} where {sorted(shapes)} are declared")
    for name, array in arrays.items():
        _check_target(kernel.name, name, array, shapes[name])
    precision = datatypes.parse(datatype) if datatype else run_precision(kernel, arrays)
    if kernel.initializer is not None:
        variant = None
    made: Mapping[str, Array] | None = None
    for index, name in enumerate(sorted(shapes)):
        if name not in arrays:
            continue
        array = arrays[name]
        keys = _digest("values", value_seed, index), _digest("structural", structural_seed, index)
        if array.dtype.kind in "iub" and structural_from is not None:
            np.copyto(array, structural_from[name], casting="no")
        elif name in kernel.manifest.init.made_by_function:
            names = [n for n in kernel.manifest.init.made_by_function if n in arrays]
            made = made or _made(kernel, params, precision, (value_seed, structural_seed), names)
            np.copyto(array, made[name], casting="no")
        else:
            _fill_declared(kernel, name, array, params, keys, threads, variant)


def _check_target(kernel: str, name: str, array: Array, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ValueError(f"{kernel}: {name} has shape {array.shape}, declared is {shape}")
    if not (array.flags.c_contiguous and array.flags.writeable and array.dtype.isnative):
        raise ValueError(f"{kernel}: {name} must be writable, C-contiguous and of native byte order")


def run_precision(kernel: Kernel, arrays: Mapping[str, Array]) -> str:
    """The precision of the run that arrays belong to: that of one which follows it, else double."""
    for name, array in arrays.items():
        declared = kernel.arrays[name]
        if declared.dtype is None and not declared.index_array:
            return datatypes.dtype_name(array.dtype)
    return "float64"


def _made(
    kernel: Kernel,
    params: Mapping[str, int | float],
    precision: str,
    seeds: tuple[int, int],
    names: list[str],
) -> dict[str, Array]:
    keys = _digest("values", seeds[0], "initialize"), _digest("structural", seeds[1], "initialize")
    return initializers.wanted(kernel, params, precision, keys, names)


def _fill_declared(
    kernel: Kernel,
    name: str,
    array: Array,
    params: Mapping[str, int | float],
    keys: tuple[int, int],
    threads: int,
    variant: Variant | None,
) -> None:
    """One array from its declaration: reals by the first key, integers and booleans by the second."""
    declared = kernel.arrays[name]
    ends = kernel.interval(name, params)
    if declared.integral:
        interval = None if ends is None else (int(ends[0]), int(ends[1]))
        dtype = kernel.dtypes()[name]
        draw_integers.fill(name, array, dtype, declared.dist, interval, keys[1], threads)
        return
    sign = declared.domain if isinstance(declared.domain, str) else None
    span = None if ends is None else (float(ends[0]), float(ends[1]))
    allowed: list[str] = list(kernel.manifest.fuzz.data_distributions)
    rule = draw_values.law(declared.dist, sign, span, variant, allowed)
    draw_values.fill(array, rule, keys[0], threads)
