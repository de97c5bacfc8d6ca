"""Inputs dealt to a grade: size classes, the upper half of the rung, seeds apart."""

from hpcagent_bench import config, protocols
from hpcagent_bench.corpus import sizing, spec
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
