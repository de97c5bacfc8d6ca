"""Building the native helpers: any compiler setting gives the same draws, two builds at once, no compiler."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hpcagent_bench import paths
from hpcagent_bench.corpus import native_helpers
from hpcagent_bench.errors import UserError

SOURCE = paths.package_root() / "corpus" / "native" / "helpers.c"


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_draws_do_not_depend_on_the_build(tmp_path: Path, level: str) -> None:
    """A build for the oldest processor of the family, hardly optimised, against the one for this machine."""
    library = tmp_path / "plain.so"
    subprocess.run(["gcc", level, "-shared", "-fPIC", str(SOURCE), "-o", str(library), "-lm"], check=True)
    plain = ctypes.CDLL(str(library))
    for name, dtype in (("f64", np.float64), ("f32", np.float32)):
        mine, other = np.zeros(70_003, dtype), np.zeros(70_003, dtype)
        for fold, (lo, hi) in enumerate([(-1000.0, 1000.0), (-0.01, 0.01), (-1.0, 3.0), (0.0, 1e-300)]):
            tuned = getattr(native_helpers.library(), f"draw_uniform_{name}")
            getattr(plain, f"draw_uniform_{name}").argtypes = tuned.argtypes
            tuned(mine.ctypes.data, mine.size, 12345, lo, hi, fold, 2)
            getattr(plain, f"draw_uniform_{name}")(other.ctypes.data, other.size, 12345, lo, hi, fold, 1)
            assert mine.tobytes() == other.tobytes()
        for lognormal in (0, 1):
            tuned = getattr(native_helpers.library(), f"draw_normal_{name}")
            slow = getattr(plain, f"draw_normal_{name}")
            slow.argtypes = tuned.argtypes
            shape = (lognormal, 0.7, 1.5, -2.0, 2.5, 0)
            tuned(mine.ctypes.data, mine.size, 777, *shape, 2)
            slow(other.ctypes.data, other.size, 777, *shape, 1)
            assert mine.tobytes() == other.tobytes()
    for bits in (64, 32, 16, 8):
        tuned = getattr(native_helpers.library(), f"draw_integers_i{bits}")
        slow = getattr(plain, f"draw_integers_i{bits}")
        slow.argtypes = tuned.argtypes
        whole, same = np.zeros(70_003, f"i{bits // 8}"), np.zeros(70_003, f"i{bits // 8}")
        for span in (2, 100, 3 * 2**30, 3 * 2**40):
            tuned(whole.ctypes.data, whole.size, 99, -1, span, 2)
            slow(same.ctypes.data, same.size, 99, -1, span, 1)
            assert whole.tobytes() == same.tobytes()


def test_unaligned_memory_gets_the_same_values() -> None:
    draw = native_helpers.library().draw_uniform_f64
    raw = np.zeros(40_000)
    aligned = np.zeros(40_000 - 1)
    draw(raw[1:].ctypes.data, aligned.size, 7, -1.0, 1.0, 0, 1)
    draw(aligned.ctypes.data, aligned.size, 7, -1.0, 1.0, 0, 1)
    assert raw[1:].tobytes() == aligned.tobytes()
    assert raw[0] == 0.0


def test_two_processes_build_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCAGENT_BENCH_CACHE", str(tmp_path))
    load = "from hpcagent_bench.corpus import native_helpers as h; h.library()"
    both = [subprocess.Popen([sys.executable, "-c", load]) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    cache = tmp_path / "corpus-native"
    left = [path for path in cache.rglob("*") if path.parent != cache]
    assert [path.suffix for path in left] == [".so"]


def test_without_a_compiler_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCAGENT_BENCH_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="'gcc' is not on PATH"):
        native_helpers._built()
