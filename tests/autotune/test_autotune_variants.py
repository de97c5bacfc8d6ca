"""Every variant of every kernel computes what the reference computes; what it gains is printed, not asserted.

``kernels/`` holds sources as the translators write them. Arrays of two equal letters have two axes. The data
keep every kernel finite at the sizes used.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from hpcagent_agent.harnesses.autotune.parse import parse
from hpcagent_agent.harnesses.autotune.variants import Plan, build

from hpcagent_bench import translators
from hpcagent_bench.corpus import spec

FOLDER = Path(__file__).parent / "kernels"
KERNELS = sorted(path.stem for path in FOLDER.glob("*.c"))
SHOWCASE = ["argmax", "fuse_diamond", "s115", "s231", "s311", "vtvtv", "war_unit", "wf_triangular"]
FLAGS = "-march=native -fopenmp -fno-math-errno -fno-trapping-math -fno-signed-zeros -fPIC -shared -Wall"
PLANS = [
    Plan(),
    Plan(jam=4),
    Plan(jam=3, streams=8, past_cache=True, reorder=False, recompute=False),
    Plan(fuse=False, jam=2, streams=2, parallel=True, past_cache=True),
    Plan(jam=8, streams=1, simd=False),
]
SIZES_1D = [2, 3, 7, 64, 65, 200, 4097, 9001]
SIZES_2D = [0, 1, 2, 3, 7, 8, 9, 64, 65, 200]
Arrays = dict[str, np.ndarray]
Run = Callable[[Arrays, int], Arrays]


def source_of(name: str) -> str:
    return (FOLDER / f"{name}.c").read_text()


def shapes(source: str, symbol: str) -> dict[str, tuple[str, ...]]:
    size = "LEN_2D" if "LEN_2D" in source else "LEN_1D"
    names = [name for name in parse(source, symbol).pointers if name != "workspace"]
    return {n: (size, size) if len(n) == 2 and n[0] == n[1] else (size,) for n in names}


def variant(name: str, plan: Plan) -> str:
    source = source_of(name)
    return build(source, f"{name}_fp64", shapes(source, f"{name}_fp64"), plan)


def test_buffers_of_a_reference_as_it_is_emitted_become_scalars() -> None:
    source = translators.emit(spec.load("fuse_diamond"), "c")
    text = build(source, "fuse_diamond_fp64", shapes(source, "fuse_diamond_fp64"), Plan())
    assert source.count("malloc") == 3
    assert "malloc" not in text


def compiled(name: str, sources: Mapping[str, str], folder: Path, *flags: str) -> dict[str, Run]:
    """Compiles every source into one library; answers by key how to run each on copies of the arguments."""
    files = []
    for key, source in sources.items():
        path = folder / f"{key}.c"
        path.write_text(re.sub(rf"\b{name}_fp64\b", f"kernel_{key}", source))
        files.append(str(path))
    library = folder / "all.so"
    subprocess.run(["gcc", *flags, *FLAGS.split(), "-o", str(library), *files, "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))

    def runner(key: str) -> Run:
        function = getattr(loaded, f"kernel_{key}")
        function.restype = None

        def run(arrays: Arrays, size: int) -> Arrays:
            copies = {array: values.copy() for array, values in sorted(arrays.items())}
            pointers = [ctypes.c_void_p(values.ctypes.data) for values in copies.values()]
            started = time.perf_counter()
            function(*pointers, ctypes.c_int64(size), ctypes.c_void_p(None), ctypes.c_int64(0))
            copies["seconds"] = np.array(time.perf_counter() - started)
            return copies

        return run

    return {key: runner(key) for key in sources}


def draw(name: str, size: int, seed: int) -> Arrays:
    """Random arguments; spare elements behind each array show writes past its end."""
    rng = np.random.default_rng(seed)
    source = source_of(name)
    arrays: Arrays = {}
    for array, dims in shapes(source, f"{name}_fp64").items():
        count = size ** len(dims) + 8
        if re.search(rf"int64_t \*restrict {array}\b", source):
            arrays[array] = rng.integers(0, max(size, 1), count)
        else:
            arrays[array] = rng.uniform(-1.0, 1.0, count) / max(1.0, size if len(dims) > 1 else 1.0)
    return arrays


@pytest.mark.parametrize("name", KERNELS)
def test_every_variant_agrees_with_the_reference(name: str, tmp_path: Path) -> None:
    plans = PLANS if name in SHOWCASE else PLANS[1:4]
    texts = sorted({variant(name, plan) for plan in plans})
    sources = {"reference": source_of(name)} | {f"v{k}": text for k, text in enumerate(texts)}
    optimise = "-O3" if name in SHOWCASE else "-O1"
    runs = compiled(name, sources, tmp_path, optimise, "-Werror")
    for size in SIZES_2D if "LEN_2D" in sources["reference"] else SIZES_1D:
        arrays = draw(name, size, seed=size)
        expected = runs["reference"](arrays, size)
        for key, run in runs.items():
            actual = run(arrays, size)
            for array in arrays:
                note = f"{key} {array} {size}"
                np.testing.assert_allclose(actual[array], expected[array], 1e-9, 1e-12, err_msg=note)


@pytest.mark.parametrize("case", ["ties", "ascending", "nan", "all_equal"])
def test_the_first_of_equal_extremes_wins(case: str, tmp_path: Path) -> None:
    size = 20000
    values = np.random.default_rng(1).integers(0, 50, size).astype(float)
    values = {
        "ties": values,
        "ascending": np.arange(size) / 3.0,
        "nan": np.where(values > 30, np.nan, values),
        "all_equal": np.ones(size),
    }[case]
    values[0] = 0.0
    sources = {"reference": source_of("argmax"), "guarded": variant("argmax", Plan())}
    runs = compiled("argmax", sources, tmp_path, "-O3")
    actual = runs["guarded"]({"a": values, "out_index": np.zeros(1, int), "out_value": np.zeros(1)}, size)
    assert actual["out_index"][0] == np.nanargmax(values)
    assert actual["out_value"][0] == np.nanmax(values)


@pytest.mark.bench
@pytest.mark.parametrize("name", SHOWCASE)
def test_gains_at_64_mib(name: str, tmp_path: Path) -> None:
    plans = [Plan(), Plan(jam=4), Plan(jam=8), Plan(streams=8), Plan(past_cache=True)]
    texts = {variant(name, plan): plan.label() for plan in reversed(plans)}
    sources = {"reference": source_of(name)} | {f"v{k}": text for k, text in enumerate(texts)}
    axes = shapes(sources["reference"], f"{name}_fp64").values()
    rank = max(map(len, axes))
    size = int((2**23 / sum(len(dims) == rank for dims in axes)) ** (1 / rank))
    runs = compiled(name, sources, tmp_path, "-O3")
    arrays = draw(name, size, seed=1)
    best = {key: min(run(arrays, size)["seconds"] for _ in range(5)) for key, run in runs.items()}
    for key, label in zip(list(best)[1:], texts.values(), strict=True):
        print(f"{name} n={size}: {best['reference'] / best[key]:.2f}x {best[key] * 1e3:.2f} ms  {label}")
