"""The loop kernels by kind against whole-array NumPy and SciPy written from the formulas alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from kernel_runs import computed, drawn
from scipy import signal

from hpcagent_bench import study_tags
from hpcagent_bench.corpus import spec
from hpcagent_bench.support.distributions import hidden

Array = npt.NDArray[Any]
Formula = Callable[..., dict[str, Any]]
KERNELS = study_tags.load_tag("loop_patterns")
FORMULAS: dict[str, Formula] = {}
LARGEST = {"LEN_2D": 17, "LEN_3D": 8, "ROWS": 23, "COLS": 31}
"""The largest size of the tests where it is not 211: some formulas solve a dense system."""


def formula(function: Formula) -> Formula:
    """File a formula under its kernel's name; it returns what each output must be."""
    FORMULAS[function.__name__] = function
    return function


def replaced(array: Array, index: Any, values: Any) -> Array:
    """A copy of ``array`` with ``values`` at ``index``; of equal indices the last one counts."""
    copy = array.copy()
    copy[index] = values
    return copy


def swept(old: Array, inner: tuple[slice, ...], own: float, weights: dict[tuple[int, ...], float]) -> Array:
    """What an in-place sweep leaves: inside, ``new = own * old + sum of weights * new`` at the offsets.

    Solved as one linear system, in no order of the points.
    """
    system = np.eye(old.size)
    places = np.arange(old.size).reshape(old.shape)
    inside = np.stack(
        np.meshgrid(*(np.arange(n)[s] for n, s in zip(old.shape, inner, strict=True)), indexing="ij")
    )
    for offset, weight in weights.items():
        shifted = inside + np.reshape(offset, (-1,) + (1,) * old.ndim)
        system[places[tuple(inside)], places[tuple(shifted)]] -= weight
    right = old.copy()
    right[inner] *= own
    return np.linalg.solve(system, right.reshape(-1)).reshape(old.shape)


@formula
def gather_scale_scatter(y, put, take, w, x, **_):
    return {"y": replaced(y, put, w * x[take])}


@formula
def linked_chain_sum(x, next_node, start, STEPS, **_):
    visited = [start]
    for _step in range(STEPS - 1):
        visited.append(next_node[visited[-1]])
    return {"chain_sum": x[np.stack(visited)].sum(axis=0)}


@formula
def histogram_with_peaks(x, height, peak, BINS, **_):
    slots = np.minimum(np.floor(x * BINS).astype(int), BINS - 1)
    high = peak.copy()
    np.maximum.at(high, slots, height)
    return {"counts": np.bincount(slots, minlength=BINS), "peak": high}


@formula
def indirect_butterfly(x, w, pair, **_):
    half = x.size // 2
    first, second = pair[: 2 * half : 2], pair[1 : 2 * half : 2]
    out = replaced(x, first, x[first] + x[second])
    return {"x": replaced(out, second, w[:half] * (x[first] - x[second]))}


@formula
def ring_buffer_echo(x, ring, gain, DELAY, **_):
    n = x.size
    past = np.concatenate([ring, x])[:n]
    return {"out": x + gain * past, "ring": replaced(ring, np.arange(n) % DELAY, x)}


@formula
def polygon_area_terms(x, y, **_):
    return {"area": (x + np.roll(x, 1)) * (y - np.roll(y, 1))}


@formula
def circular_third_difference(x, **_):
    difference = x
    for _order in range(3):
        difference = difference - np.roll(difference, 1)
    return {"x": difference}


@formula
def crossing_mirror_update(a, b, c, **_):
    half = a.size // 2
    first = 0.5 * a[::-1] + b * c
    mirrored = np.concatenate([first[:half], a[half:]])[::-1]  # what the second half meets
    return {"a": np.concatenate([first[:half], (0.5 * mirrored + b * c)[half:]])}


@formula
def fold_across_midpoint(x, y, **_):
    half = x.size // 2
    folded = (x + x[::-1])[:half]
    upper = x[half : 2 * half] * folded
    last = x[-1:] * (upper[:1] if half else y)
    return {"y": np.concatenate([folded, upper, last])[: x.size]}


@formula
def rim_peeled_stencil(a, **_):
    out = a.copy()
    crosses = a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]
    out[1:-1, 1:-1] = crosses / 5
    return {"out": out}


@formula
def column_order_rank_update(u, v, c, **_):
    return {"c": c + u @ v}


@formula
def imperfect_nest_deflation(a, x, y, **_):
    return {"a": a - np.outer(a @ x, y)}


@formula
def smoothing_with_residual(x, smooth, ALPHA, **_):
    level, _end = signal.lfilter([ALPHA], [1, ALPHA - 1], x, zi=[(1 - ALPHA) * smooth[0]])
    return {"smooth": level, "residual": x - np.concatenate([smooth[:1], level[:-1]])}


@formula
def reorder_shifted_updates(a, b, c, d, **_):
    inner = slice(1, -1)
    new = replaced(b, inner, b[2:] - d[inner])
    return {"a": replaced(a, inner, new[:-2] * c[inner]), "b": new}


@formula
def antidependence_rotation(a, b, c, d, **_):
    front = slice(0, -1)
    return {
        "a": replaced(a, front, b[1:] * d[:-1]),
        "b": replaced(b, front, c[1:] + d[:-1]),
        "c": replaced(c, front, a[1:] - d[:-1]),
    }


@formula
def stable_partition(key, x, **_):
    low = key < 0.25
    return {"out": np.concatenate([x[low], x[~low]]), "split": [low.sum()]}


@formula
def unpack_by_mask(packed, flag, spread, **_):
    flagged = flag > 0.25
    return {"spread": replaced(0.5 * spread, flagged, packed[: flagged.sum()])}


@formula
def pack_local_maxima(x, place, height, **_):
    found, _properties = signal.find_peaks(x)
    head = slice(found.size)
    return {
        "count": [found.size],
        "place": replaced(place, head, found),
        "height": replaced(height, head, x[found]),
    }


@formula
def prefix_quota_search(x, TENTHS, **_):
    sums = np.concatenate([[0], np.floor(x).astype(int).cumsum()])
    first = np.searchsorted(sums, sums[-1] * TENTHS // 10)
    return {"needed": [first], "taken": [sums[first]]}


@formula
def row_first_steep_drop(a, **_):
    steep = -np.diff(a, axis=1) > 15 / 16
    place = np.where(steep.any(axis=1), steep.argmax(axis=1), -1)
    drop = [row[k] - row[k + 1] if k >= 0 else 0 for row, k in zip(a, place, strict=True)]
    return {"place": place, "drop": drop}


@formula
def first_mismatch(a, b, **_):
    differ = np.flatnonzero(a != b)
    return {"place": differ[:1], "gap": (a - b)[differ[:1]]}


@formula
def cumulative_table_bisection(u, width, TABLE, **_):
    edges = width.cumsum()[: TABLE - 1]
    return {"cell": np.searchsorted(edges, np.floor(u), side="right")}


@formula
def order_two_recurrence(x, y, LAG_ONE, LAG_TWO, **_):
    if y.size < 3:
        return {"y": y}
    poles = [1, -LAG_ONE, -LAG_TWO]
    tail, _end = signal.lfilter([1], poles, x[2:], zi=signal.lfiltic([1], poles, y[1::-1]))
    return {"y": np.concatenate([y[:2], tail])}


@formula
def holt_level_trend(x, level, trend, **_):
    """State (level, trend) as one block-bidiagonal system."""
    n = x.size
    step = np.array([[0.6, 0.6], [-0.12, 0.88]])
    system = np.eye(2 * n) - np.kron(np.eye(n, k=-1), step)
    right = np.outer(x, [0.4, 0.12])
    right[0] = level[0], trend[0]
    state = np.linalg.solve(system, right.reshape(-1)).reshape(n, 2)
    return {"level": state[:, 0], "trend": state[:, 1]}


@formula
def modular_order_two(x, **_):
    """In whole numbers of any length, reduced at the end only."""
    values = [2, 1]
    for driven in np.floor(x).astype(int).tolist():
        values.append(3 * values[-1] + 5 * values[-2] + driven)
    return {"residue": [value % (2**31 - 1) for value in values[2:]]}


@formula
def skew_two_wavefront(a, **_):
    inner = (slice(1, None), slice(1, -1))
    return {"a": swept(a, inner, 0.25, {(0, -1): 0.3, (-1, 1): 0.35, (-1, -1): 0.1})}


@formula
def anisotropic_cube_wavefront(a, **_):
    inner = (slice(1, None),) * 3
    return {"a": swept(a, inner, 0.25, {(-1, 0, 0): 0.35, (0, -1, 0): 0.25, (0, 0, -1): 0.15})}


@formula
def minimax_path_wavefront(height, **_):
    out = height.copy()
    n = out.shape[0]
    for front in range(2, 2 * n - 1):
        i = np.arange(max(1, front - n + 1), min(front, n))
        j = front - i
        out[i, j] = np.maximum(out[i, j], np.minimum(out[i - 1, j], out[i, j - 1]))
    return {"height": out}


@formula
def sum_of_row_maxima(a, **_):
    return {"row_max": a.max(axis=1), "total": [a.max(axis=1).sum()]}


@formula
def least_column_sum(a, **_):
    return {"column_sum": a.sum(axis=0), "least": [a.sum(axis=0).min()]}


@formula
def row_variance_two_pass(a, **_):
    return {"mean": a.mean(axis=1), "variance": a.var(axis=1)}


@formula
def block_prefix_maxima_sum(x, BLOCK, **_):
    blocks = np.split(x, range(BLOCK, x.size, BLOCK))
    return {"total": [sum(np.maximum.accumulate(block).sum() for block in blocks)]}


@formula
def interleaved_complex_product(z, w, **_):
    return {"product": (z.view(complex) * w.view(complex)).view(float)}


@formula
def aos_particle_energy(particle, **_):
    mass, *velocity = particle.reshape(-1, 4).T
    return {"energy": mass * np.square(velocity).sum(axis=0) / 2, "momentum": mass * velocity[0]}


@formula
def polyphase_dot(x, w, PHASES, **_):
    return {"phase_sum": np.bincount(np.arange(x.size) % PHASES, x * w, minlength=PHASES)}


@formula
def packed_triangle_expand(packed, scale, LEN_2D, **_):
    lower = np.zeros((LEN_2D, LEN_2D))
    lower[np.tril_indices(LEN_2D)] = packed
    return {"full": np.outer(scale, scale) * (lower + np.tril(lower, -1).T)}


@formula
def suffix_minimum_excess(x, **_):
    return {"excess": x - np.minimum.accumulate(x[::-1])[::-1]}


@formula
def clamped_walk(x, **_):
    walk = itertools.accumulate(x, lambda level, step: np.clip(level + step, -4, 4), initial=0.0)
    return {"position": list(walk)[1:]}


@formula
def popcount_parity_sign(key, x, **_):
    bits = np.bitwise_count(key).astype(int)
    return {"ones": [bits.sum()], "out": x * (-1.0) ** bits}


@formula
def xorshift_bucket_sum(key, x, bucket, **_):
    """In whole numbers of any length, cut to 64 bits by hand."""
    out = bucket.copy()
    for h, value in zip(key.tolist(), x, strict=True):
        for shift in (13, -7, 17):
            h ^= (h << shift if shift > 0 else h >> -shift) % 2**64
        out[h // 2**52] += value
    return {"bucket": out}


@formula
def saturating_blend_int16(a, b, pick, **_):
    wide = np.where(pick > 0, 1, -1) * b.astype(int) + a
    return {"out": np.clip(wide, -(2**15), 2**15 - 1)}


@formula
def opcode_dispatch(opcode, a, b, **_):
    return {"out": np.choose(opcode, [a + b, a - b, a * b, np.minimum(a, b), a])}


@formula
def nested_quadrant_update(x, y, z, **_):
    right, upper = x > 0, y > 0
    cases = [right & upper, right & (x > -y), right, upper]
    return {"z": np.select(cases, [z + x * y, z - y, z * x, x - y], z / 2)}


@formula
def conditional_moments(x, gate, least, **_):
    taken = x[gate > 0]
    return {
        "count": [taken.size],
        "total": [taken.sum()],
        "squares": [taken @ taken],
        "least": [np.append(taken, least).min()],
    }


def test_every_kernel_has_a_formula():
    assert sorted(FORMULAS) == sorted(KERNELS)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("variant", hidden.HELD_OUT[:2], ids=lambda variant: variant.label)
def test_reference_is_its_formula(name, variant):
    """Every configuration, from one element on, the largest sizes of a kernel apart from each other."""
    kernel = spec.load(name)
    largest = {symbol: LARGEST.get(symbol, 211) for symbol in kernel.size_symbols}
    small = [dict.fromkeys(kernel.size_symbols, n) for n in (1, 2, 3, 5, 6, 7)]
    for config, sizes in itertools.product(kernel.configs, [*small, largest]):
        params = {**config, **sizes}
        arrays = drawn(kernel, params, variant=variant)
        actual = computed(kernel, arrays, params)
        expected = FORMULAS[name](**arrays, **kernel.scalars(params))
        assert set(expected) == set(kernel.outputs)
        for output, wanted in expected.items():
            scale = max(float(np.abs(values).max()) for values in (arrays[output], actual[output]))
            np.testing.assert_allclose(
                actual[output], wanted, rtol=1e-12, atol=1e-13 * scale, err_msg=f"{output} at {params}"
            )
