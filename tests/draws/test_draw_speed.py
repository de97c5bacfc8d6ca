"""Drawing against memset and NumPy, comparing against memcmp and NumPy. Measures, asserts nothing about time.

Every figure is a ratio taken inside one run: bytes a second over those of the machine's own memset (memcmp)
with one thread, and over single-threaded NumPy doing the same.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hpcagent_bench.corpus import datatypes, fuzz, precision
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.support.distributions import Variant

COUNT = 1 << 23
THREADS = len(os.sched_getaffinity(0))
LIBC = ctypes.CDLL(None)
LIBC.memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
Array = npt.NDArray[Any]


def seconds(action: Callable[[], Any]) -> float:
    """The fastest of seven runs."""
    best = float("inf")
    for _ in range(7):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def page(dtype: str, count: int = COUNT) -> Array:
    """An array at the start of a page, as a draw's are, already touched."""
    kind = datatypes.numpy_dtype(dtype)
    raw = np.zeros(count * kind.itemsize + 4096, np.uint8)
    return raw[-raw.ctypes.data % 4096 :][: count * kind.itemsize].view(kind)


def report(title: str, size: int, plain: float, numpy: float | None, ours: dict[int, float]) -> None:
    """One line: our bytes a second with one and all threads, over the machine's and over NumPy's."""
    cells = [f"{title:24s}", f"machine {size / plain / 1e9:6.2f} GB/s"]
    for threads, taken in ours.items():
        beside = "" if numpy is None else f", {numpy / taken:5.1f} x NumPy"
        cells.append(
            f"{threads} threads {size / taken / 1e9:6.2f} GB/s ({plain / taken:4.2f} x machine{beside})"
        )
    print("  ".join(cells))


def cast(generator: np.random.Generator, x: Array) -> None:
    """What a narrow draw takes in NumPy and ml_dtypes."""
    x[:] = generator.random(x.size, np.float32)


DRAWS: list[tuple[str, str, str, Variant | None, Callable[[np.random.Generator, Array], Any] | None]] = [
    ("uniform float64", "(N,)", "float64", None, lambda g, x: g.random(out=x)),
    ("uniform float32", "(N,)", "float32", None, lambda g, x: g.random(dtype=np.float32, out=x)),
    ("uniform bfloat16", "(N,)", "bfloat16", None, cast),
    ("uniform float8_e4m3", "(N,)", "float8_e4m3", None, cast),
    ("normal float64", "(N,)", "float64", Variant("", "normal"), lambda g, x: g.standard_normal(out=x)),
    (
        "lognormal float64",
        "(N,)",
        "float64",
        Variant("", "lognormal"),
        lambda g, x: g.lognormal(0.0, 0.5, x.size),
    ),
    (
        "integers int32",
        "{shape: N, dtype: int32, domain: [0, 99]}",
        "int32",
        None,
        lambda g, x: g.integers(0, 100, x.size, np.int32),
    ),
    (
        "permutation int64",
        "{shape: N, dtype: int64}",
        "int64",
        None,
        lambda g, x: g.permutation(x.size),
    ),
    (
        "offsets int64",
        "{shape: N, dtype: int64, dist: offsets, domain: [0, 'M * N']}",
        "int64",
        None,
        lambda g, x: np.sort(g.integers(0, 24 * x.size, x.size)),
    ),
]


@pytest.mark.bench
@pytest.mark.parametrize(("title", "declared", "dtype", "variant", "numpy"), DRAWS, ids=[d[0] for d in DRAWS])
def test_draw_speed(
    make_kernel: Callable[..., Kernel],
    title: str,
    declared: str,
    dtype: str,
    variant: Variant | None,
    numpy: Callable[[np.random.Generator, Array], Any] | None,
) -> None:
    kernel, x = make_kernel(x=declared), page(dtype)
    draw = partial(
        fuzz.fill,
        kernel,
        {"x": x},
        {"N": COUNT, "M": 24},
        value_seed=1,
        structural_seed=1,
        variant=variant,
    )
    ours = {threads: seconds(partial(draw, threads=threads)) for threads in sorted({1, THREADS})}
    plain = seconds(lambda: ctypes.memset(x.ctypes.data, 1, x.nbytes))
    beside = None if numpy is None else seconds(partial(numpy, np.random.default_rng(0), x))
    report(title, x.nbytes, plain, beside, ours)


@pytest.mark.bench
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "bfloat16", "int64"])
@pytest.mark.parametrize("apart", [False, True], ids=["equal", "different"])
def test_compare_speed(dtype: str, apart: bool) -> None:
    x, y = page(dtype, COUNT // 2), page(dtype, COUNT // 2)
    x[:] = np.random.default_rng(0).uniform(1, 100, x.size)
    y[:] = x
    if apart and dtype != "int64":
        y[::7] = (y[::7].astype(np.complex128) * (1 + 1e-12)).astype(x.dtype)
    tol = precision.Tolerance(1e-9, 1e-11, 2.0**-52, 1, "contracted")
    compare = partial(precision.compare, y, x, tol, name="x")
    ours = {threads: seconds(partial(compare, threads=threads)) for threads in sorted({1, THREADS})}
    twin = x.copy()
    plain = seconds(lambda: LIBC.memcmp(twin.ctypes.data, x.ctypes.data, x.nbytes))
    wide = (y, x) if dtype != "bfloat16" else (y.astype(np.float32), x.astype(np.float32))
    beside = seconds(partial(np.allclose, *wide, 1e-9, 1e-11))
    report(f"compare {dtype}{', apart' if apart else ''}", 2 * x.nbytes, plain, beside, ours)
