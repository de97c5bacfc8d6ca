"""Draws: the seeds of a value pool, and filling a kernel's arrays from a seed.

A draw depends on nothing but its seeds: the k-th declared array (sorted by name) has a stream of its own, and
every block of it another, so thread count and machine do not matter. Floating-point arrays follow the value
seed; integer and boolean arrays (indices, masks, permutations) follow the structural seed, so they stay
byte-identical over a pool (scoring.md 1.3).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from hpcagent_bench.corpus import native_helpers
from hpcagent_bench.corpus.spec import ArrayDecl, Kernel
from hpcagent_bench.errors import UserError
from hpcagent_bench.support import distributions
from hpcagent_bench.support.distributions import Variant

SIZE_CLASSES = ("aligned", "odd", "odd8", "even")
"""Classes of the four inputs: multiples of 64, odd, 8 x odd, even and unaligned (scoring.md 1.2 gate 2)."""

Array = npt.NDArray[Any]
_BLOCK = 1 << 18  # elements a NumPy generator fills at a time
_FOLDS = {"nonneg": 1, "positive": 2, "nonpos": 3, "negative": 4}  # native/draws.c


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


def fill(
    kernel: Kernel,
    arrays: Mapping[str, Array],
    params: Mapping[str, int | float],
    *,
    value_seed: int,
    structural_seed: int,
    threads: int,
    variant: Variant | None = None,
    structural_from: Mapping[str, Array] | None = None,
) -> None:
    """Fill declared arrays in place: those that ``arrays`` holds, C-contiguous, in their declared shapes.

    Filling some of them now and the others elsewhere gives the same values as filling all at once.

    ``variant`` replaces the distribution of floating-point arrays without an interval (held-out cases).
    ``structural_from``, an earlier draw of the same sizes and structural seed, saves drawing integers again.
    """
    shapes = kernel.shapes(params)
    if not set(arrays) <= set(shapes):
        raise ValueError(f"{kernel.name}: arrays {sorted(arrays)} where {sorted(shapes)} are declared")
    for index, name in enumerate(sorted(shapes)):
        if name not in arrays:
            continue
        array, declared = arrays[name], kernel.arrays[name]
        if array.shape != shapes[name]:
            raise ValueError(f"{kernel.name}: {name} has shape {array.shape}, declared is {shapes[name]}")
        if not (array.flags.c_contiguous and array.flags.writeable and array.dtype.isnative):
            raise ValueError(f"{kernel.name}: {name} must be writable, C-contiguous and of native byte order")
        if array.dtype.kind in "iub" and structural_from is not None:
            np.copyto(array, structural_from[name], casting="no")
        elif array.dtype.kind in "iub":
            _fill_structural(name, array, declared, _digest("structural", structural_seed, index), threads)
        else:
            _fill_values(name, array, declared, _digest("values", value_seed, index), threads, variant)


def _fill_values(
    name: str, array: Array, declared: ArrayDecl, key: int, threads: int, variant: Variant | None
) -> None:
    """Floating-point and complex arrays; a complex one is filled as its real and imaginary parts."""
    if array.dtype.kind not in "fc":
        raise ValueError(f"{name}: cannot draw values of type {array.dtype}")
    parts = array.reshape(-1).view(array.real.dtype)
    dist = declared.dist or "uniform"
    scale = 1.0
    if variant is not None and not isinstance(declared.domain, tuple):
        dist, scale = variant.dist, variant.scale
    if dist not in distributions.NAMES:
        raise UserError(f"array '{name}': distribution '{dist}' cannot be drawn")
    if dist == "uniform":
        _fill_uniform(parts, declared.domain, scale, key, threads)
    else:
        _fill_by_block(parts, dist, declared.domain, scale, key, threads)


def _fill_uniform(parts: Array, domain: Any, scale: float, key: int, threads: int) -> None:
    limit = min(
        distributions.UNIFORM_LIMIT * scale, distributions.SAFE_MAGNITUDE.get(parts.dtype.name, np.inf)
    )
    lo, hi = domain if isinstance(domain, tuple) else (-limit, limit)
    fold = _FOLDS.get(domain, 0) if isinstance(domain, str) else 0
    helpers = native_helpers.library()
    if parts.dtype == np.float64:
        helpers.draw_uniform_f64(parts.ctypes.data, parts.size, key, lo, hi, fold, threads)
    elif parts.dtype == np.float32:
        helpers.draw_uniform_f32(parts.ctypes.data, parts.size, key, lo, hi, fold, threads)
    else:
        wide = np.empty(parts.size, np.float64)
        helpers.draw_uniform_f64(wide.ctypes.data, wide.size, key, lo, hi, fold, threads)
        parts[:] = wide


def _fill_by_block(parts: Array, dist: str, domain: Any, scale: float, key: int, threads: int) -> None:
    """Distributions NumPy draws: one generator a block, blocks spread over threads."""
    if isinstance(domain, tuple):
        raise UserError(f"distribution '{dist}' cannot take the interval {list(domain)}", "use uniform")

    def one(block: int) -> None:
        target = parts[block * _BLOCK : (block + 1) * _BLOCK]
        values = np.empty(target.size, np.float64)
        distributions.sample(dist, values, np.random.Generator(np.random.PCG64([key, block])))
        np.multiply(values, scale, out=values)
        limit = distributions.SAFE_MAGNITUDE.get(parts.dtype.name)
        if limit is not None:
            np.clip(values, -limit, limit, out=values)
        _fold(values, domain, float(np.finfo(parts.dtype).tiny))
        target[:] = values

    with ThreadPoolExecutor(max_workers=max(threads, 1)) as pool:
        list(pool.map(one, range(-(-parts.size // _BLOCK))))


def _fold(values: npt.NDArray[np.float64], domain: str | None, tiny: float) -> None:
    """Move values into a sign domain by their magnitude; a strict domain has no zero."""
    if domain in (None, "any"):
        return
    np.abs(values, out=values)
    if domain in ("positive", "negative"):
        np.maximum(values, tiny, out=values)
    if domain in ("negative", "nonpos"):
        np.negative(values, out=values)


def _fill_structural(name: str, array: Array, declared: ArrayDecl, key: int, threads: int) -> None:
    """Booleans: fair bits. Integers: declared interval, else a permutation (1-D) or [0, smallest extent)."""
    flat = array.reshape(-1)
    if flat.size == 0:
        return
    if array.dtype.kind == "b":
        _fill_integers(flat, 0, 2, key, threads)
    elif isinstance(declared.domain, tuple):
        lo, hi = (int(end) for end in declared.domain)
        _check_range(name, flat, lo, hi)
        _fill_integers(flat, lo, hi - lo + 1, key, threads)
    elif array.ndim == 1:
        _check_range(name, flat, 0, flat.size - 1)
        _fill_permutation(flat, key, threads)
    else:
        _check_range(name, flat, 0, min(array.shape) - 1)
        _fill_integers(flat, 0, min(array.shape), key, threads)


def _check_range(name: str, flat: Array, lo: int, hi: int) -> None:
    limits = np.iinfo(flat.dtype)
    if lo < limits.min or hi > limits.max:
        raise UserError(f"array '{name}': {flat.dtype} cannot hold {lo} to {hi}", "declare a wider dtype")


def _native_integers(flat: Array) -> tuple[Array, str]:
    """The array to draw into (itself, or one of 64-bit integers to convert from) and the helper's suffix."""
    if flat.dtype.itemsize == 8:
        return flat, "i64"
    if flat.dtype.itemsize == 4:
        return flat, "i32"
    return np.empty(flat.size, np.int64), "i64"


def _fill_integers(flat: Array, lo: int, span: int, key: int, threads: int) -> None:
    target, suffix = _native_integers(flat)
    draw = getattr(native_helpers.library(), f"draw_integers_{suffix}")
    draw(target.ctypes.data, target.size, key, lo, span, threads)
    if target is not flat:
        flat[:] = target


def _fill_permutation(flat: Array, key: int, threads: int) -> None:
    target, suffix = _native_integers(flat)
    draw = getattr(native_helpers.library(), f"draw_permutation_{suffix}")
    if draw(target.ctypes.data, target.size, key, threads) != 0:
        raise MemoryError(f"no memory to permute {flat.size} indices")
    if target is not flat:
        flat[:] = target
