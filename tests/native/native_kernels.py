"""A small kernel, y = y + s·x, in as many honest and dishonest versions as the tests need."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import numpy as np

from hpcagent_bench import paths
from hpcagent_bench.harness import sandbox
from hpcagent_bench.harness.native_call import Child, Draw, layout_for
from hpcagent_bench.toolchain.abi import Arg, Binding

BINDING = Binding(
    "axpy",
    "axpy_fp64",
    "c-abi-v2",
    (
        Arg("x", "ptr", "float64", True, ("N",), "input"),
        Arg("y", "ptr", "float64", False, ("N",), "output"),
        Arg("N", "scalar", "int64", True, None, "symbol"),
        Arg("s", "scalar", "float64", True, None, "scalar"),
    ),
)
HEAD = """#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <unistd.h>
#include <errno.h>
#include <pthread.h>
"""
SIGNATURE = (
    "void axpy_fp64(const double *restrict x, double *restrict y, const int64_t N, const double s,\n"
    "               uint8_t *restrict workspace, const int64_t workspace_size)"
)
HONEST = "for (int64_t i = 0; i < N; i++) y[i] += s * x[i];"
N = 1003


def source(body: str, before: str = "") -> str:
    """C source of a version with this function body."""
    return f"{HEAD}{before}\n{SIGNATURE}\n{{\n{body}\n}}\n"


@functools.cache
def library(text: str, language: str = "c") -> Path:
    """The built library of a source, kept for the session."""
    folder = paths.cache_root() / "kernels" / hashlib.sha256(text.encode()).hexdigest()[:16]
    built = sandbox.build(text, language, "axpy_fp64", folder, timeout_s=60)
    assert built.library is not None, built.log
    return built.library


def child(body: str, before: str = "", *, sealed: bool = True, cores: tuple[int, ...] = (0,)) -> Child:
    """A child for a version with this function body."""
    return native(library(source(body, before)), sealed=sealed, cores=cores)


def native(path: Path, *, sealed: bool = True, cores: tuple[int, ...] = (0,)) -> Child:
    """A child for a library, 1 GiB of memory and 64 MiB of stack."""
    return Child.native(path, BINDING, cores=cores, memory_bytes=1 << 30, stack_mb=64, sealed=sealed)


def draw(n: int = N, seed: int = 0) -> Draw:
    """A draw with x from ``seed`` and y = 1, 2, 3, ..."""
    made = Draw.allocate(layout_for(BINDING, {"x": (n,), "y": (n,)}, {"x": "float64", "y": "float64"}))
    made.arrays["x"][:] = np.random.default_rng(seed).uniform(-1, 1, n)
    made.arrays["y"][:] = np.arange(1, n + 1)
    return made


def scalars(n: int = N) -> dict[str, int | float]:
    return {"N": n, "s": 2.0}
