"""References a denominator may name, built and run: what each computes, where, by which flags."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hpcagent_bench import config
from hpcagent_bench.corpus import fuzz, spec
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.native_call import Child, Draw, layout_for
from hpcagent_bench.harness.references import JudgeFault
from hpcagent_bench.harness.seeds import GradingSeeds
from hpcagent_bench.toolchain import flags

KERNEL = spec.load("tsvc_2_vtvtv")
SIZES = {"LEN_1D": 1000}
ALL_CORES = tuple(sorted(os.sched_getaffinity(0)))


@pytest.fixture
def context() -> Iterator[GradingContext]:
    made = GradingContext(config.Judge(), config.Sizes("tiny", 2**16), ALL_CORES, GradingSeeds(1, 2, 3))
    yield made
    made.close()


def answer(context: GradingContext, child: Child) -> np.ndarray:
    """The output of one call on a draw of seed 7."""
    layout = layout_for(context.binding(KERNEL), KERNEL.shapes(SIZES), KERNEL.dtypes())
    draw = Draw.allocate(layout, context.pool)
    fuzz.fill(KERNEL, draw.arrays, SIZES, value_seed=7, structural_seed=7, threads=1)
    draw.seal()
    outcome = child.call(draw, KERNEL.scalars(SIZES), timeout_s=60)
    draw.close()
    assert outcome.status == "ok", outcome.detail
    return child.outputs["a"].copy()


def expected() -> np.ndarray:
    arrays = fuzz.drawn(KERNEL, SIZES, value_seed=7, structural_seed=7)
    product: np.ndarray = arrays["a"] * arrays["b"] * arrays["c"]
    return product


def cores_of(child: Child) -> set[int]:
    return os.sched_getaffinity(child.pid)


@pytest.mark.parametrize(
    ("kind", "cores"),
    [("c", ALL_CORES[:1]), ("c-autopar", ALL_CORES), ("numba", ALL_CORES), ("numpy", ALL_CORES)],
)
def test_reference_computes_what_numpy_does_on_its_cores(
    context: GradingContext, kind: str, cores: tuple[int, ...]
) -> None:
    child = context.references.start(KERNEL, kind)
    np.testing.assert_allclose(answer(context, child), expected(), rtol=1e-12)
    assert cores_of(child) <= set(cores)
    context.references.discard(child)


def test_automatic_parallelisation_runs_on_every_granted_core(
    context: GradingContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    autopar = flags.autopar
    monkeypatch.setattr(flags, "autopar", lambda n: asked.append(autopar(n)) or autopar(n))
    context.references.start(KERNEL, "c-autopar").close()
    assert asked == [(f"-ftree-parallelize-loops={len(ALL_CORES)}",)]
    assert flags.autopar(8) == ("-ftree-parallelize-loops=8",)


def test_numba_is_kept_for_the_next_input_and_others_get_their_own(context: GradingContext) -> None:
    kept = context.references.start(KERNEL, "numba")
    own = context.references.start(KERNEL, "numba", own=True)
    assert own is not kept
    np.testing.assert_array_equal(answer(context, kept), answer(context, own))
    context.references.discard(own)
    context.references.discard(kept)
    assert context.references.start(KERNEL, "numba") is kept
    assert not own.alive
    context.references.close()
    assert not kept.alive


@pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed")
def test_c_reference_is_built_by_the_family_asked_for(context: GradingContext) -> None:
    for family in ("gcc", "llvm"):
        child = context.references.start(KERNEL, "c", family)
        np.testing.assert_allclose(answer(context, child), expected(), rtol=1e-12)
        child.close()
    gcc, llvm = (
        next(path for key, path in context.references._libraries.items() if key[1] == family)
        for family in ("gcc", "llvm")
    )
    assert b"clang" in llvm.read_bytes()
    assert b"clang" not in gcc.read_bytes()


def test_compiler_that_is_missing_is_the_judges_fault(
    context: GradingContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HPCAGENT_BENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(JudgeFault, match="c reference of tsvc_2_vtvtv cannot be made"):
        context.references.start(KERNEL, "c")


@pytest.fixture
def with_baseline(tmp_path: Path) -> Kernel:
    """The kernel with a baseline of its own, which doubles: no reference does that."""
    folder = tmp_path / "loop_level_reasoning" / KERNEL.name
    shutil.copytree(KERNEL.folder, folder)
    (folder / "own.c").write_text(
        f"#include <stdint.h>\nvoid {KERNEL.symbol}(double *a, const double *b, const double *c, "
        "int64_t n, uint8_t *w, int64_t s) { for (int64_t i = 0; i < n; i++) a[i] = 2 * a[i]; }\n"
    )
    manifest = folder / f"{KERNEL.name}.yaml"
    block = "baseline: {kind: vendored, source: own.c, language: c, mode: multi_core}\n"
    manifest.write_text(manifest.read_text() + block)
    return spec.load(KERNEL.name, tmp_path)


def test_kernel_with_a_baseline_of_its_own_is_measured_against_it(
    context: GradingContext, with_baseline: Kernel
) -> None:
    child = context.references.start(with_baseline, "vendored")
    arrays = fuzz.drawn(KERNEL, SIZES, value_seed=7, structural_seed=7)
    np.testing.assert_array_equal(answer(context, child), 2 * arrays["a"])
    child.close()


def test_kernel_without_one_has_no_vendored_reference(context: GradingContext) -> None:
    with pytest.raises(JudgeFault, match="ships no baseline of its own"):
        context.references.start(KERNEL, "vendored")
