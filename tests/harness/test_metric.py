"""Inputs dealt to a grade: size classes, the upper half of the rung, seeds apart."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcagent_bench import config, protocols
from hpcagent_bench.corpus import fuzz, sizing, spec
from hpcagent_bench.harness import metric, rep_variation

LAPTOP = config.Sizes("laptop", 64 * 2**20)
SETTINGS = config.Judge()


def test_final_inputs_take_the_four_size_classes_in_the_upper_half() -> None:
    kernel = spec.load("tsvc_2_s311")
    cells = metric.timed_cells_for(kernel, LAPTOP, SETTINGS, protocols.FINAL)
    n = [cell.sizes["LEN_1D"] for cell in cells]
    assert [n[0] % 64, n[1] % 2, n[2] % 16, n[3] % 2] == [0, 1, 8, 0]
    assert n[3] % 8 != 0
    rung = sizing.rung(kernel, LAPTOP)["LEN_1D"]
    assert all(0.74 * rung <= size <= rung for size in n)
    assert len(set(n)) == 4


def test_final_shapes_are_the_same_for_every_submission() -> None:
    kernel = spec.load("wf_triangular")
    first = metric.timed_cells_for(kernel, LAPTOP, SETTINGS, protocols.FINAL)
    assert first == metric.timed_cells_for(kernel, LAPTOP, SETTINGS, protocols.FINAL)


def test_preview_shapes_follow_the_first_seed_and_are_no_final_shapes() -> None:
    kernel = spec.load("tsvc_2_vtvtv")
    final = [c.sizes for c in metric.timed_cells_for(kernel, LAPTOP, SETTINGS, protocols.FINAL)]
    one = metric.score_cells_for(kernel, LAPTOP, SETTINGS, protocols.PREVIEW, seed=1)
    two = metric.score_cells_for(kernel, LAPTOP, SETTINGS, protocols.PREVIEW, seed=2)
    assert one != two
    assert all(cell.sizes not in final for cell in (*one, *two))


def test_calls_of_a_measurement_never_repeat_a_draw() -> None:
    pool = rep_variation.pool_seeds(7, "k", "XL", "float64", "N=3")
    calls = protocols.FINAL.calls
    for offset in range(rep_variation.POOL_SIZE):
        seeds = rep_variation.timed_seeds(pool, calls, offset)
        assert len(set(seeds)) == calls == 6
        assert set(seeds) == set(pool)
    assert rep_variation.canonical_seed(7, "k", "XL", "float64", "N=3") not in pool


def test_salt_gives_every_submit_its_own_inputs() -> None:
    seeds = {rep_variation.salted(5, rep_variation.fresh_nonce()) for _ in range(100)}
    assert len(seeds) == 100


KERNELS = sorted(spec.discover())
SEEDS_63 = st.integers(0, 2**63 - 1)
MEMBER = {
    "aligned": lambda n: n % 64 == 0,
    "odd": lambda n: n % 2 == 1,
    "odd8": lambda n: n % 16 == 8,
    "even": lambda n: n % 2 == 0 and n % 8 != 0,
}


@pytest.mark.parametrize("name", KERNELS)
def test_inputs_of_every_kernel_take_the_classes_and_configurations_in_turn(name: str) -> None:
    kernel = spec.load(name)
    cells = metric.timed_cells_for(kernel, LAPTOP, SETTINGS, protocols.FINAL)
    assert (
        [cell.size_class for cell in cells] == list(fuzz.SIZE_CLASSES) == ["aligned", "odd", "odd8", "even"]
    )
    dealt = kernel.configs[:5] or ({},)
    assert [cell.config for cell in cells] == [dealt[i % len(dealt)] for i in range(4)]
    assert all(kernel.broken_constraint(cell.params) is None for cell in cells)


@settings(max_examples=40, deadline=None)
@given(st.integers(2**18, 2**28), SEEDS_63)
def test_sizes_lie_in_the_upper_half_of_the_rung_and_in_their_class(nbytes: int, seed: int) -> None:
    kernel = spec.load("tsvc_2_vtvtv")
    sizes = config.Sizes("some", nbytes)
    rung = sizing.rung(kernel, sizes)["LEN_1D"]
    final = metric.timed_cells_for(kernel, sizes, SETTINGS, protocols.FINAL)
    preview = metric.score_cells_for(kernel, sizes, SETTINGS, protocols.PREVIEW, seed)
    for cell in (*final, *preview):
        n = cell.sizes["LEN_1D"]
        assert 0.75 * rung - 1 <= n <= rung
        assert MEMBER[cell.size_class](n)
    assert len({cell.sizes["LEN_1D"] for cell in final}) == 4
    assert not {c.sizes["LEN_1D"] for c in preview} & {c.sizes["LEN_1D"] for c in final}


def test_more_configurations_than_are_dealt_leave_the_rest_out() -> None:
    kernel = dataclasses.replace(spec.load("tsvc_2_vtvtv"), configs=tuple({"knob": i} for i in range(7)))
    narrow = config.Judge(fuzz=config.Fuzz(config_pool=3))
    cells = metric._deal(kernel, LAPTOP, narrow, 4, [1, 2, 3, 4])
    assert [cell.config for cell in cells] == [{"knob": 0}, {"knob": 1}, {"knob": 2}, {"knob": 0}]


def test_corpus_has_no_kernel_with_more_configurations_than_are_dealt() -> None:
    assert all(len(spec.load(name).configs) <= config.Fuzz().config_pool for name in KERNELS)


@given(SEEDS_63, st.integers(0, 5), st.text(min_size=1, max_size=8))
def test_both_sides_see_the_pool_from_the_offset_on(seed: int, offset: int, cell: str) -> None:
    pool = rep_variation.pool_seeds(seed, "k", "XL", "float64", cell)
    assert len(pool) == len(set(pool)) == rep_variation.POOL_SIZE == 6
    assert rep_variation.timed_seeds(pool, 6, offset) == (*pool[offset:], *pool[:offset])
    other = rep_variation.pool_seeds(seed + 1, "k", "XL", "float64", cell)
    assert not set(pool) & set(other)


@given(SEEDS_63, SEEDS_63, SEEDS_63)
def test_salt_is_a_function_of_seed_and_nonce_and_tells_neither(seed: int, one: int, two: int) -> None:
    assert rep_variation.salted(seed, one) == rep_variation.salted(seed, one)
    assert (rep_variation.salted(seed, one) == rep_variation.salted(seed, two)) == (one == two)
    assert rep_variation.salted(seed, one) not in (seed, one)


@pytest.mark.parametrize("stamp", sorted(protocols.REGISTRY))
def test_no_protocol_makes_more_calls_than_the_pool_has_draws(stamp: str) -> None:
    assert protocols.get(stamp).calls <= rep_variation.POOL_SIZE
