"""The reassociation floor: how many terms an element of an output gathers, found from shapes and a probe."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hpcagent_bench.corpus import datatypes, expressions, fuzz
from hpcagent_bench.corpus.bands import EXACT, Tolerance, Ungradeable, band
from hpcagent_bench.corpus.spec import Kernel

Array = npt.NDArray[Any]


def tolerance(
    kernel: Kernel,
    output: str,
    params: Mapping[str, int | float],
    datatype: str,
    written_extents: tuple[int, ...] | None,
) -> Tolerance:
    """The tolerance of ``output``; integers and booleans are exact.

    ``written_extents`` is what write_probe found; None takes the declared shape. Raises Ungradeable when the
    reassociation floor alone would reach the relative tolerance.
    """
    dtype = kernel.dtypes(datatype)[output]
    if _exact(dtype):
        return EXACT
    limits = band(dtype)
    rtol = max(limits.rtol, kernel.manifest.conditioning_rtol or 0.0)
    atol = max(limits.atol, kernel.manifest.conditioning_atol or 0.0)
    length, rule = contracted_extent(kernel, output, params, written_extents)
    if limits.acc_eps * math.sqrt(length) >= rtol:
        raise Ungradeable(
            f"{kernel.name}: output '{output}' gathers {length} terms ({rule}); in {dtype} their order alone "
            f"may move it by {limits.acc_eps * math.sqrt(length):.2g} of its size, rtol is {rtol:g}"
        )
    return Tolerance(rtol, atol, limits.acc_eps, length, rule)


def contracted_extent(
    kernel: Kernel, output: str, params: Mapping[str, int | float], written_extents: tuple[int, ...] | None
) -> tuple[int, str]:
    """How many terms an element of ``output`` gathers, and by which rule that was found.

    Per input array: the product of its shape symbols absent from the output's effective shape, where an axis
    of which one index is written counts as absent; the largest over the inputs. Shapes that cannot tell (no
    symbols, or a symbol used twice in an input and nothing absent) take the largest input's element count.
    """
    values = kernel.scalars(params)
    shapes = kernel.shapes(params)
    axes = {
        name: [expressions.symbols(a) for a in expressions.axes(d.shape)] for name, d in kernel.arrays.items()
    }
    inputs = [name for name in axes if name not in kernel.outputs] or list(axes)
    largest = max(math.prod(shapes[name]) for name in inputs)
    if not any(symbols for name in inputs for symbols in axes[name]):
        return max(largest, 1), "largest_input_no_shapes"
    extents = written_extents or shapes[output]
    kept = frozenset[str]().union(*(s for s, n in zip(axes[output], extents, strict=True) if n != 1))
    length = 1
    for name in inputs:
        absent = [symbol for symbols in axes[name] for symbol in symbols - kept]
        length = max(length, math.prod(int(values[symbol]) for symbol in absent))
    if length == 1 and any(_repeats(axes[name]) for name in inputs):
        return max(largest, 1), "largest_input_ambiguous"
    return length, "declared_shape" if written_extents is None else "contracted"


def _repeats(axes: list[frozenset[str]]) -> bool:
    """True when a symbol sizes two axes, so that its presence in the output proves nothing."""
    used = [symbol for symbols in axes for symbol in symbols]
    return len(used) != len(set(used))


def write_probe(
    kernel: Kernel,
    call: Callable[[dict[str, Array]], None],
    params: Mapping[str, int | float] | None = None,
    *,
    datatype: str = "float64",
    draws: int = 2,
    threads: int = 1,
) -> dict[str, tuple[int, ...]]:
    """How many indices of each axis of each output the reference really writes, at a small size.

    ``call`` runs the reference on the arrays in place (``params``, by default preset S with the first
    configuration). Outputs start from their drawn values, and what differs from them afterwards in any of the
    draws was written; so a canary is never an index out of range. An output that stays untouched, and one of
    integers or booleans, is given its declared shape.
    """
    chosen = {**kernel.configs[0], **kernel.presets["S"]} if params is None else dict(params)
    shapes, dtypes = kernel.shapes(chosen), kernel.dtypes(datatype)
    written = {name: np.zeros(shapes[name], np.bool_) for name in kernel.outputs}
    for seed in range(draws):
        arrays = fuzz.drawn(
            kernel, chosen, value_seed=seed, structural_seed=seed, threads=threads, datatype=datatype
        )
        before = {name: arrays[name].copy() for name in kernel.outputs}
        call(arrays)
        for name in kernel.outputs:
            written[name] |= arrays[name] != before[name]
    return {name: _touched(mask, dtypes[name]) for name, mask in written.items()}


def _exact(dtype: str) -> bool:
    return dtype == "bool" or datatypes.is_integer(dtype)


def _touched(mask: npt.NDArray[np.bool_], dtype: str) -> tuple[int, ...]:
    if _exact(dtype) or not mask.any():
        return mask.shape
    axes = range(mask.ndim)
    return tuple(int(mask.any(axis=tuple(a for a in axes if a != axis)).sum()) for axis in axes)
