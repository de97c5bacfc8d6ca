"""Grid, graph, dynamic-programming and Monte Carlo kernels against other ways of computing the same."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import ndimage, sparse
from scipy.sparse import csgraph

from hpcagent_bench.corpus import spec

Array = np.ndarray


def reference(name: str) -> Callable[..., None]:
    return spec.load(name).load_numpy()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)


def test_heat_is_two_weighted_averages_of_the_seven_point_neighbourhood(rng: np.random.Generator) -> None:
    a, b = rng.normal(size=(2, 7, 7, 7))
    weights = np.zeros((3, 3, 3))
    weights[1, 1, :] = weights[1, :, 1] = weights[:, 1, 1] = 0.125
    weights[1, 1, 1] = 0.25
    expected, inner = a.copy(), (slice(1, -1),) * 3
    for _ in range(2):
        expected[inner] = ndimage.convolve(expected, weights)[inner]
        # the second field keeps its own boundary, which the first half step reads
        expected_b = b.copy()
        expected_b[inner] = expected[inner]
        expected[inner] = ndimage.convolve(expected_b, weights)[inner]
    reference("heat_3d_jacobi")(a, b, 7, 2)
    np.testing.assert_allclose(a, expected, rtol=1e-12, atol=1e-12)


def test_water_at_rest_stays_at_rest() -> None:
    h, hu, hv = np.full((9, 8), 1.5), np.zeros((9, 8)), np.zeros((9, 8))
    reference("shallow_water_lax")(h, hu, hv, 0.02, 9, 8, 5)
    np.testing.assert_allclose(h, 1.5, rtol=1e-14)
    np.testing.assert_allclose([hu, hv], 0.0, atol=1e-14)


def test_a_wave_in_shallow_water_keeps_its_mass_and_its_symmetry() -> None:
    size = 31
    y, x = np.mgrid[:size, :size] - size // 2
    h = 1.0 + 0.5 * np.exp(-(x**2 + y**2) / 8.0)
    hu, hv = np.zeros_like(h), np.zeros_like(h)
    mass = h.sum()
    reference("shallow_water_lax")(h, hu, hv, 0.02, size, size, 6)  # nothing has reached the border yet
    assert h.sum() == pytest.approx(mass, rel=1e-7)
    np.testing.assert_allclose(h, h.T, rtol=1e-13)
    np.testing.assert_allclose(hu, hv.T, atol=1e-13)
    np.testing.assert_allclose(hu, -hu[:, ::-1], atol=1e-13)


def test_yee_step_by_element(rng: np.random.Generator) -> None:
    nx, ny = 5, 6
    ex, ey, hz = rng.normal(size=(3, nx, ny))
    wanted_ex, wanted_ey, wanted_hz = ex.copy(), ey.copy(), hz.copy()
    for i, j in itertools.product(range(nx), range(ny)):
        if i > 0:
            wanted_ey[i, j] -= (hz[i, j] - hz[i - 1, j]) / 2
        if j > 0:
            wanted_ex[i, j] -= (hz[i, j] - hz[i, j - 1]) / 2
    for i, j in itertools.product(range(nx - 1), range(ny - 1)):
        curl = wanted_ex[i, j + 1] - wanted_ex[i, j] + wanted_ey[i + 1, j] - wanted_ey[i, j]
        wanted_hz[i, j] -= 0.7 * curl
    reference("yee_fdtd_2d")(ex, ey, hz, nx, ny, 1)
    np.testing.assert_allclose([ex, ey, hz], [wanted_ex, wanted_ey, wanted_hz], rtol=1e-13)


def test_lattice_boltzmann_conserves_mass_and_momentum(rng: np.random.Generator) -> None:
    f = rng.uniform(0.8, 1.2, (9, 5, 6))
    velocity = np.array([[0, 1, 0, -1, 0, 1, -1, -1, 1], [0, 0, 1, 0, -1, 1, 1, -1, -1]])
    mass, momentum = f.sum(), velocity @ f.sum(axis=(1, 2))
    reference("lattice_boltzmann_d2q9")(f, 1.2, 5, 6, 3)
    assert f.sum() == pytest.approx(mass, rel=1e-13)
    np.testing.assert_allclose(velocity @ f.sum(axis=(1, 2)), momentum, atol=1e-11)


def test_a_lattice_boltzmann_equilibrium_only_streams(rng: np.random.Generator) -> None:
    weights = np.array([16, 4, 4, 4, 4, 1, 1, 1, 1]) / 36
    f = np.broadcast_to(weights[:, None, None], (9, 4, 4)).copy()
    reference("lattice_boltzmann_d2q9")(f, 1.2, 4, 4, 2)
    np.testing.assert_allclose(f, np.broadcast_to(weights[:, None, None], f.shape), rtol=1e-13)


def test_edge_fluxes_are_an_upwind_incidence_product(rng: np.random.Generator) -> None:
    cells, edges = 11, 33
    area, u, residual = rng.normal(size=edges), rng.normal(size=cells), rng.normal(size=cells)
    left, right = rng.integers(0, cells, (2, edges), dtype=np.int32)
    upwind = np.where(area > 0, u[left], u[right]) * area
    expected = residual - np.bincount(left, upwind, cells) + np.bincount(right, upwind, cells)
    reference("mesh_edge_flux")(area, left, residual, right, u, cells)
    np.testing.assert_allclose(residual, expected, rtol=1e-12, atol=1e-13)


def test_smoothing_is_a_sparse_average(rng: np.random.Generator) -> None:
    n = 9
    row_ptr = np.concatenate([[0], np.sort(rng.integers(0, 6 * n + 1, n - 1)), [6 * n]]).astype(np.int32)
    row_ptr[3] = row_ptr[2]  # a node without neighbours stays where it is
    neighbour = rng.integers(0, n, 6 * n, dtype=np.int32)
    x, y = rng.normal(size=(2, n))
    x_new, y_new = np.zeros((2, n))
    adjacency = sparse.csr_matrix((np.ones(6 * n), neighbour, row_ptr), shape=(n, n))
    degree = np.diff(row_ptr)
    mean = adjacency @ np.stack([x, y], axis=1) / np.maximum(degree, 1)[:, None]
    expected = np.where(degree[:, None] > 0, 0.75 * np.stack([x, y], 1) + 0.25 * mean, np.stack([x, y], 1))
    reference("graph_laplacian_smooth")(neighbour, row_ptr, x, x_new, y, y_new, 0.25, n)
    np.testing.assert_allclose(np.stack([x_new, y_new], 1), expected, rtol=1e-12)


def test_mass_matrix_equals_its_assembled_form(rng: np.random.Generator) -> None:
    n = 8
    px, py, u, v = rng.uniform(size=(4, n))
    triangle = rng.integers(0, n, (2 * n, 3), dtype=np.int32)
    matrix = np.zeros((n, n))
    for nodes in triangle:
        corners = np.stack([px[nodes], py[nodes], np.ones(3)])
        local = abs(np.linalg.det(corners)) / 2 / 12 * (np.ones((3, 3)) + np.eye(3))
        np.add.at(matrix, np.ix_(nodes, nodes), local)
    expected = v + matrix @ u
    reference("fem_mass_apply")(px, py, triangle, u, v, n)
    np.testing.assert_allclose(v, expected, rtol=1e-12)


def test_alignment_scores_from_the_definition(rng: np.random.Generator) -> None:
    m, n = 6, 7
    a, b = rng.integers(0, 20, m, dtype=np.int8), rng.integers(0, 20, n, dtype=np.int8)
    similarity = rng.uniform(-2.0, 6.0, (20, 20))
    expected = np.zeros((m + 1, n + 1))
    for i, j in itertools.product(range(1, m + 1), range(1, n + 1)):
        gaps = [expected[i - k, j] - 3.0 - k for k in range(1, i + 1)]
        gaps += [expected[i, j - k] - 3.0 - k for k in range(1, j + 1)]
        matched = expected[i - 1, j - 1] + similarity[a[i - 1], b[j - 1]]
        expected[i, j] = max(0.0, matched, *gaps)
    h, best = np.empty((m + 1, n + 1)), np.empty(1)
    reference("local_alignment_affine")(a, b, best, h, similarity, m, n)
    np.testing.assert_allclose(h, expected, rtol=1e-13)
    assert best[0] == h.max()


def test_all_pairs_shortest_paths(rng: np.random.Generator) -> None:
    d = rng.uniform(1.0, 100.0, (12, 12))
    expected = csgraph.floyd_warshall(d - np.diag(np.diag(d)))
    own = np.diag(d).copy()
    reference("floyd_warshall")(d, 12)
    off = ~np.eye(12, dtype=bool)
    np.testing.assert_allclose(d[off], expected[off], rtol=1e-13)
    assert np.all(np.diag(d) <= own)


def test_matrix_chain_by_recursion(rng: np.random.Generator) -> None:
    extent = rng.uniform(1.0, 10.0, 8)

    @functools.cache
    def cheapest(i: int, j: int) -> float:
        if i == j:
            return 0.0
        return min(
            cheapest(i, k) + cheapest(k + 1, j) + extent[i] * extent[k + 1] * extent[j + 1]
            for k in range(i, j)
        )

    cost = rng.normal(size=(7, 7))
    below = np.tril(cost, -1)
    reference("matrix_chain_cost")(cost, extent, 7)
    for i, j in itertools.combinations_with_replacement(range(7), 2):
        assert cost[i, j] == pytest.approx(cheapest(i, j), rel=1e-13)
    np.testing.assert_array_equal(np.tril(cost, -1), below)


def test_viterbi_against_all_paths(rng: np.random.Generator) -> None:
    states, steps = 3, 5
    emission, transition = rng.uniform(-8, 0, (states, 32)), rng.uniform(-8, 0, (states, states))
    start, observed = rng.uniform(-8, 0, states), rng.integers(0, 32, steps, dtype=np.int32)

    def weight(path: tuple[int, ...]) -> float:
        total = start[path[0]] + emission[path[0], observed[0]]
        for t in range(1, steps):
            total += transition[path[t], path[t - 1]] + emission[path[t], observed[t]]
        return float(total)

    likeliest = max(itertools.product(range(states), repeat=steps), key=weight)
    path, score = np.zeros(steps, np.int32), np.zeros(1)
    reference("viterbi_decode")(emission, observed, path, score, start, transition, states, steps)
    assert tuple(path) == likeliest
    assert score[0] == pytest.approx(weight(likeliest), rel=1e-13)


def test_breadth_first_levels_and_heaviest_shortest_paths(rng: np.random.Generator) -> None:
    n, degree = 40, 2
    adjacent = rng.integers(0, n, (n, degree), dtype=np.int32)
    potential = rng.uniform(1.0, 2.0, n)
    level, reached = np.zeros(n, np.int32), np.zeros(n)
    reference("bfs_potential_levels")(adjacent, level, potential, reached, n, degree)
    graph = sparse.csr_matrix((np.ones(n * degree), (np.repeat(np.arange(n), degree), adjacent.ravel())))
    graph.resize(n, n)
    hops = csgraph.dijkstra(graph, indices=0, unweighted=True)
    np.testing.assert_array_equal(level, np.where(np.isinf(hops), -1, hops))
    heaviest = {0: potential[0]}
    for depth in range(1, int(level.max()) + 1):
        for w in np.flatnonzero(level == depth):
            above = [v for v in range(n) if level[v] == depth - 1 and w in adjacent[v]]
            heaviest[w] = max(heaviest[v] for v in above) + potential[w]
    for v in range(n):
        assert reached[v] == pytest.approx(heaviest.get(v, 0.0), rel=1e-13)


def test_sweeps_find_shortest_paths_of_few_edges(rng: np.random.Generator) -> None:
    n, sweeps = 12, 3
    distance, length = rng.uniform(0.0, 100.0, n), rng.uniform(0.5, 10.0, 4 * n)
    source, target = rng.integers(0, n, (2, 4 * n), dtype=np.int32)
    expected = distance.copy()
    for _ in range(sweeps):
        candidates = expected[source] + length
        expected = expected.copy()
        np.minimum.at(expected, target, candidates)
    reference("bellman_ford_sweeps")(distance, length, source, target, n, sweeps)
    np.testing.assert_allclose(distance, expected, rtol=1e-13)


def test_pagerank_is_a_sparse_product(rng: np.random.Generator) -> None:
    n, links = 10, 4
    incoming = rng.integers(0, n, (n, links), dtype=np.int32)
    rank = rng.uniform(size=n)
    matrix = np.zeros((n, n))
    np.add.at(matrix, (np.repeat(np.arange(n), links), incoming.ravel()), 1.0 / links)
    expected = rank.copy()
    for _ in range(3):
        expected = 0.15 / n + 0.85 * matrix @ expected
    reference("pagerank_pull")(incoming, rank, 0.85, n, links, 3)
    np.testing.assert_allclose(rank, expected, rtol=1e-12)


def xorshift(state: Array) -> tuple[Array, Array]:
    """The next states and numbers in (0, 1), 53 bits each."""
    mask = (1 << 64) - 1
    fresh = []
    for s in map(int, state):
        s ^= s << 13 & mask
        s ^= s >> 7
        s ^= s << 17 & mask
        fresh.append(s)
    return np.array(fresh, np.uint64), np.array([((s >> 11) + 0.5) / 2**53 for s in fresh])


def test_average_options_path_by_path(rng: np.random.Generator) -> None:
    n, paths, steps = 5, 3, 4
    seed = rng.integers(1, 10**12, n, dtype=np.uint64)
    spot, strike = rng.uniform(80, 120, (2, n))
    state, payoff = seed.copy(), np.zeros(n)
    for _ in range(paths):
        walk = []
        value = spot.copy()
        for _ in range(steps):
            state, u = xorshift(state)
            state, v = xorshift(state)
            value = value * np.exp(0.01 + 0.2 * np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v))
            walk.append(value)
        payoff += np.maximum(np.mean(walk, axis=0) - strike, 0)
    price = np.zeros(n)
    reference("option_path_average")(price, seed, spot, strike, 0.01, 0.2, n, paths, steps)
    np.testing.assert_allclose(price, payoff / paths, rtol=1e-11)


@pytest.mark.parametrize("n", [1, 5, 8])
def test_ising_sweep_by_colours(n: int, rng: np.random.Generator) -> None:
    spin = rng.integers(0, 2, (n, n), dtype=np.int8)
    chance, magnet = rng.uniform(size=(n, n)), np.zeros(n, np.int64)
    sign = 2 * spin.astype(int) - 1
    row, column = np.indices((n, n))
    cross = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    for colour in range(2):
        cost = 2 * sign * ndimage.convolve(sign, cross, mode="constant")
        flips = ((row + column) % 2 == colour) & ((cost <= 0) | (chance < np.exp(-0.44 * cost)))
        sign = np.where(flips, -sign, sign)
    reference("ising_checkerboard")(chance, magnet, spin, 0.44, n)
    np.testing.assert_array_equal(2 * spin.astype(int) - 1, sign)
    np.testing.assert_array_equal(magnet, sign.sum(axis=1))


def test_transport_particle_by_particle(rng: np.random.Generator) -> None:
    n = 30
    seed = rng.integers(1, 10**12, n, dtype=np.uint64)
    position, direction = rng.uniform(0, 4, n), rng.uniform(-1, 1, n)
    track, leaked = np.zeros(n), np.zeros(2, np.int64)
    expected = np.zeros(n)
    ends: list[Any] = [0, 0]
    for i in range(n):
        state, x, mu = seed[i : i + 1], position[i], direction[i]
        while True:
            state, u = xorshift(state)
            x, expected[i] = x - mu * np.log(u[0]), expected[i] - np.log(u[0])
            if not 0 <= x <= 4:
                ends[int(x > 4)] += 1
                break
            state, u = xorshift(state)
            if u[0] < 0.2:
                break
            state, u = xorshift(state)
            mu = 2 * u[0] - 1
    reference("slab_transport")(direction, leaked, position, seed, track, 0.2, 4.0, n)
    np.testing.assert_allclose(track, expected, rtol=1e-12)
    assert leaked.tolist() == ends
