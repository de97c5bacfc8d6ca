"""Bytes a second of draws and comparison beside memset and numpy. Measures, asserts nothing about time."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from hpcagent_bench.corpus import fuzz, precision
from hpcagent_bench.corpus.spec import Kernel

COUNT = 1 << 23


def rate(action: Callable[[], Any], moved: int) -> float:
    """GB/s of the fastest of nine runs."""
    best = float("inf")
    for _ in range(9):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return moved / best / 1e9


@pytest.mark.bench
@pytest.mark.parametrize("datatype", ["float64", "float32"])
def test_draw_speed(make_kernel: Callable[..., Kernel], datatype: str) -> None:
    kernel = make_kernel(x="(N,)")
    size = COUNT * np.dtype(datatype).itemsize
    raw = np.zeros(size + 4096, np.uint8)
    x = raw[-raw.ctypes.data % 4096 :][:size].view(datatype)  # on a page, as a draw is
    other, tol = np.empty_like(x), precision.Tolerance(1e-9, 1e-11, 2.0**-52, 1, "contracted")
    generator = np.random.default_rng(0)
    rows = {"memset": rate(lambda: ctypes.memset(x.ctypes.data, 1, size), size)}
    rows["numpy random"] = rate(lambda: generator.random(dtype=np.dtype(datatype).type, out=x), size)
    for threads in (1, 2):
        draw = partial(fuzz.fill, kernel, {"x": x}, {"N": COUNT}, value_seed=1, structural_seed=1)
        rows[f"fill, {threads} threads"] = rate(partial(draw, threads=threads), size)
    other[:] = x
    rows["numpy allclose"] = rate(lambda: np.allclose(other, x, 1e-9, 1e-11), 2 * size)
    for threads in (1, 2):
        compare = partial(precision.compare, other, x, tol, threads=threads, name="x")
        rows[f"compare, {threads} threads"] = rate(compare, 2 * size)
    print(f"\n{datatype}, {size >> 20} MiB an array")
    for label, gigabytes in rows.items():
        print(f"{label:22s} {gigabytes:7.2f} GB/s")
