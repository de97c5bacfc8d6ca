"""Spectral and n-body kernels against SciPy's transforms and physics written another way."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from scipy import fft, linalg

from hpcagent_bench.corpus import fuzz, spec

EDGES = (1, 3, 5, 6, 7)
Array = npt.NDArray[np.float64]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(6)


@pytest.mark.parametrize("length", [1, 2, 8, 256])
def test_fft_is_scipys(rng: np.random.Generator, length: int) -> None:
    im, re = rng.uniform(-1000.0, 1000.0, (2, 3, length))
    wanted = fft.fft(re + 1j * im)
    spec.load("fft_batch").load_numpy()(im, re, 3, length)
    np.testing.assert_allclose(re + 1j * im, wanted, atol=1e-10)


@pytest.mark.parametrize("length", [1, 2, 16, 128])
def test_walsh_hadamard_is_the_hadamard_matrix(rng: np.random.Generator, length: int) -> None:
    a = rng.normal(size=(length, 5))
    wanted = linalg.hadamard(length) @ a
    spec.load("walsh_hadamard").load_numpy()(a, 5, length)
    np.testing.assert_allclose(a, wanted, atol=1e-12)


def test_nonuniform_dft_on_an_even_grid_is_the_dft(rng: np.random.Generator) -> None:
    samples, spectrum = rng.normal(size=20), np.empty(20, dtype=np.complex128)
    times, frequency = np.arange(20) / 20.0, np.arange(20.0)
    spec.load("nonuniform_dft").load_numpy()(frequency, samples, spectrum, times, 20, 20)
    np.testing.assert_allclose(spectrum, fft.fft(samples), atol=1e-12)


@pytest.mark.parametrize("size", EDGES)
def test_nonuniform_dft_sums_phases(rng: np.random.Generator, size: int) -> None:
    samples, times, frequency = rng.normal(size=size), rng.random(size), rng.uniform(0.0, 100.0, 4)
    spectrum = np.empty(4, dtype=np.complex128)
    spec.load("nonuniform_dft").load_numpy()(frequency, samples, spectrum, times, 4, size)
    wanted = np.exp(-2j * np.pi * np.outer(frequency, times)) @ samples
    np.testing.assert_allclose(spectrum, wanted, atol=1e-11)


@pytest.mark.parametrize("shape", [*((n, n) for n in EDGES), (28, 36)])
def test_dct_is_scipys(rng: np.random.Generator, shape: tuple[int, int]) -> None:
    image, spectrum = rng.normal(size=shape), np.empty(shape)
    spec.load("dct_2d").load_numpy()(image, spectrum, *shape)
    np.testing.assert_allclose(spectrum, fft.dctn(image, norm="ortho"), atol=1e-13)


def test_poisson_of_a_plane_wave() -> None:
    kx, ky, length = 3, 5, 16
    x, y = np.meshgrid(*[2.0 * np.pi * np.arange(length) / length] * 2, indexing="ij")
    wave = np.cos(kx * x + ky * y) + np.sin(kx * x - ky * y)
    charge, potential = np.stack([wave, 2.0 * wave + 7.0]), np.empty((2, length, length))
    spec.load("poisson_fft").load_numpy()(charge, potential, 2, length)
    for field, factor in zip(potential, (1.0, 2.0), strict=True):
        np.testing.assert_allclose(field, factor * wave / (kx**2 + ky**2), atol=1e-14)


def test_poisson_solution_satisfies_the_equation(rng: np.random.Generator) -> None:
    length = 64
    charge, potential = rng.normal(size=(1, length, length)), np.empty((1, length, length))
    spec.load("poisson_fft").load_numpy()(charge, potential, 1, length)
    wave = fft.fftfreq(length, 1.0 / length)
    laplace = fft.ifft2(-(wave[:, None] ** 2 + wave**2) * fft.fft2(potential[0])).real
    np.testing.assert_allclose(-laplace, charge[0] - charge[0].mean(), atol=1e-12)
    assert abs(potential.mean()) < 1e-15


@pytest.mark.parametrize("size", EDGES)
def test_gravity_pair_by_pair(rng: np.random.Generator, size: int) -> None:
    position, mass = rng.normal(size=(3, size)), rng.random(size) + 0.1
    acceleration = np.empty((3, size))
    spec.load("direct_gravity").load_numpy()(*acceleration, mass, *position, 0.5, size)
    wanted = np.zeros((3, size))
    for i, j in itertools.permutations(range(size), 2):
        apart = position[:, j] - position[:, i]
        wanted[:, i] += mass[j] * apart / (apart @ apart + 0.25) ** 1.5
    np.testing.assert_allclose(acceleration, wanted, atol=1e-13)
    np.testing.assert_allclose(acceleration @ mass, 0.0, atol=1e-12)  # momentum stays


def cubic_spline(apart: Array, width: float) -> Array:
    """M4 spline of Monaghan and Lattanzio in two dimensions, as a third difference of cubes."""
    q = apart / width
    cubes = np.clip(2.0 - q, 0.0, None) ** 3 - 4.0 * np.clip(1.0 - q, 0.0, None) ** 3
    return 10.0 / (28.0 * np.pi * width**2) * cubes


@pytest.mark.parametrize("cells", [1, 3, 4, 7])
def test_sph_density_without_a_cell_list(rng: np.random.Generator, cells: int) -> None:
    count = 6 * cells * cells
    x, y, mass = rng.random(count), rng.random(count), rng.random(count) + 0.1
    density = np.empty(count)
    spec.load("sph_density").load_numpy()(density, mass, x, y, cells, 6)
    wanted = cubic_spline(np.hypot(x[:, None] - x, y[:, None] - y), 0.5 / cells) @ mass
    np.testing.assert_allclose(density, wanted, rtol=1e-12)


def test_the_spline_of_sph_integrates_to_one() -> None:
    r, step = np.linspace(0.0, 1.0, 20001, retstep=True)
    assert np.sum(2.0 * np.pi * r * cubic_spline(r, 0.3)) * step == pytest.approx(1.0, rel=1e-6)


def molecules(count: int, dt: float, steps: int, seed: int = 7) -> tuple[Array, Array, Array]:
    """Box, velocities and positions ``steps`` steps after ``start``."""
    box, velocity, position = start(count, seed)
    spec.load("molecular_dynamics").load_numpy()(box, *velocity, *position, 2.5, dt, count, steps)
    return box, velocity, position


def start(count: int, seed: int) -> tuple[Array, Array, Array]:
    """A cubic lattice of spacing 1.2, shaken."""
    rng = np.random.default_rng(seed)
    side = int(np.ceil(count ** (1.0 / 3.0)))
    corners = np.array(list(itertools.product(range(side), repeat=3)), dtype=float)[:count].T
    position = 1.2 * corners + rng.uniform(-0.1, 0.1, (3, count))
    return np.full(3, 1.2 * side), rng.normal(size=(3, count)), position


def energy_and_forces(box: Array, position: Array) -> tuple[float, Array]:
    """Lennard-Jones energy 4 (r^-12 - r^-6) below 2.5 and its slope, pair by pair."""
    energy, force = 0.0, np.zeros_like(position)
    for i, j in itertools.combinations(range(position.shape[1]), 2):
        apart = position[:, i] - position[:, j]
        apart -= box * np.round(apart / box)
        r = float(np.linalg.norm(apart))
        if r < 2.5:
            energy += 4.0 * (r**-12 - r**-6)
            push = 4.0 * (12.0 * r**-13 - 6.0 * r**-7) * apart / r
            force[:, i] += push
            force[:, j] -= push
    return energy, force


@pytest.mark.parametrize("count", [1, 3, 6, 20])
def test_one_step_of_molecular_dynamics(count: int) -> None:
    dt = 0.002
    box, velocity, position = start(count, 7)
    half = velocity + 0.5 * dt * energy_and_forces(box, position)[1]
    wanted_position = position + dt * half
    wanted_velocity = half + 0.5 * dt * energy_and_forces(box, wanted_position)[1]
    _, got_velocity, got_position = molecules(count, dt, 1)
    np.testing.assert_allclose(got_position, wanted_position, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(got_velocity, wanted_velocity, rtol=1e-12, atol=1e-14)


def test_molecular_dynamics_keeps_momentum_and_energy() -> None:
    box, velocity, position = start(27, 8)
    _, late_velocity, late_position = molecules(27, 0.0005, 20, seed=8)
    np.testing.assert_allclose(late_velocity.sum(axis=1), velocity.sum(axis=1), atol=1e-12)
    energies = [
        0.5 * np.sum(v**2) + energy_and_forces(box, p)[0]
        for v, p in ((velocity, position), (late_velocity, late_position))
    ]
    assert np.abs(late_position - position).max() > 0.01
    assert energies[1] == pytest.approx(energies[0], rel=2e-3)


@pytest.mark.parametrize("count", [1, 2, 8, 9, 60])
def test_drawn_molecules_fill_their_box_without_overlap(count: int) -> None:
    kernel = spec.load("molecular_dynamics")
    arrays = {name: np.empty(shape) for name, shape in kernel.shapes({"N": count}).items()}
    fuzz.fill(kernel, arrays, {"N": count}, value_seed=1, structural_seed=2, threads=1)
    sides = {1: 1, 2: 2, 8: 2, 9: 3, 60: 4}
    np.testing.assert_allclose(arrays["box"], 1.2 * sides[count])
    position = np.stack([arrays[axis] for axis in "xyz"])
    apart = position[:, :, None] - position[:, None, :]
    apart -= arrays["box"][:, None, None] * np.round(apart / arrays["box"][:, None, None])
    gap = np.linalg.norm(apart, axis=0) + 10.0 * np.eye(count)
    assert gap.min() >= 1.0
