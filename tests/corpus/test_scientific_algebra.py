"""Dense and sparse linear algebra kernels against LAPACK, SciPy and the equations they solve."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy import linalg, sparse
from scipy.sparse import linalg as sparse_linalg
from scipy.spatial import distance

from hpcagent_bench.corpus import fuzz, spec
from hpcagent_bench.corpus.spec import Kernel

Arrays = dict[str, npt.NDArray[np.generic]]
EDGES = (1, 3, 5, 6, 7)


def run(name: str, **sizes: int) -> tuple[Arrays, Arrays]:
    """What a drawn input was and what the reference makes of it; sizes not named are those of preset S."""
    kernel = spec.load(name)
    params = {**kernel.configs[0], **kernel.presets["S"], **sizes}
    before = draw(kernel, params)
    after = {key: array.copy() for key, array in before.items()}
    arguments = {**kernel.scalars(params), **after}
    with np.errstate(all="raise", under="ignore"):
        kernel.load_numpy()(*(arguments[key] for key in kernel.arg_order))
    return before, after


def draw(kernel: Kernel, params: dict[str, int | float]) -> Arrays:
    return fuzz.drawn(kernel, params, value_seed=3, structural_seed=4)


def csr(arrays: Arrays, values: str, columns: str, starts: str, shape: tuple[int, int]) -> sparse.csr_array:
    return sparse.csr_array((arrays[values], arrays[columns], arrays[starts]), shape=shape)


@pytest.mark.parametrize("size", EDGES)
def test_gemm(size: int) -> None:
    before, after = run("gemm", NI=size, NK=2 * size)
    wanted = 1.5 * np.einsum("ik,kj->ij", before["a"], before["b"]) + 1.2 * before["c"]
    np.testing.assert_allclose(after["c"], wanted, rtol=1e-11)


@pytest.mark.parametrize("size", [*EDGES, 40])
def test_cholesky_is_lapacks(size: int) -> None:
    before, after = run("cholesky", N=size)
    lower = np.tril(before["a"])
    full = lower + np.tril(lower, -1).T + 2 * size * np.eye(size)
    np.testing.assert_allclose(np.tril(after["a"]), linalg.cholesky(full, lower=True), rtol=1e-12)
    np.testing.assert_array_equal(np.triu(after["a"], 1), np.triu(before["a"], 1))


@pytest.mark.parametrize("size", [*EDGES, 40])
def test_lu_factors_give_the_matrix_back(size: int) -> None:
    before, after = run("lu_factorization", N=size)
    lower, upper = np.tril(after["a"], -1) + np.eye(size), np.triu(after["a"])
    np.testing.assert_allclose(lower @ upper, before["a"], atol=1e-14)
    assert np.linalg.det(before["a"]) == pytest.approx(np.prod(np.diag(upper)))


@pytest.mark.parametrize("size", [*EDGES, 40])
def test_triangular_solve_is_lapacks(size: int) -> None:
    before, after = run("triangular_solve_many", N=size)
    wanted = linalg.solve_triangular(before["tri"], before["x"], lower=True, unit_diagonal=True)
    np.testing.assert_allclose(after["x"], wanted, rtol=1e-11)


@pytest.mark.parametrize("size", [*EDGES, 24])
def test_gram_schmidt_is_householders_qr_up_to_signs(size: int) -> None:
    before, after = run("gram_schmidt", N=size)
    q, r = np.linalg.qr(before["a"])
    signs = np.sign(np.diag(r))
    np.testing.assert_allclose(after["q"], q * signs, atol=1e-13)
    np.testing.assert_allclose(after["r"], r * signs[:, None], atol=1e-10)
    assert (np.diag(after["r"]) > 0.0).all()


@pytest.mark.parametrize("size", [*EDGES, 60])
def test_gaussian_process_solves_its_equation(size: int) -> None:
    before, after = run("gaussian_process", N=size)
    train, query = before["train"], before["query"]
    covariance = np.exp(-0.5 * distance.cdist(train, train, "sqeuclidean")) + np.eye(size)
    weights = linalg.solve(covariance, before["targets"], assume_a="pos")
    wanted = np.exp(-0.5 * distance.cdist(query, train, "sqeuclidean")) @ weights
    np.testing.assert_allclose(after["mean"], wanted, atol=1e-10)


@pytest.mark.parametrize("size", [*EDGES, 64])
def test_csr_spmv_is_scipys(size: int) -> None:
    before, after = run("csr_spmv", NR=size, NC=2 * size)
    matrix = csr(before, "vals", "cols", "row_start", (size, 2 * size))
    np.testing.assert_allclose(after["y"], matrix @ before["x"], rtol=1e-12, atol=1e-8)


@pytest.mark.parametrize("columns", [4, 16])
@pytest.mark.parametrize("size", [*EDGES, 40])
def test_csr_spmm_is_scipys(size: int, columns: int) -> None:
    before, after = run("csr_spmm", NR=size, NV=columns)
    matrix = csr(before, "vals", "cols", "row_start", (size, 30))
    np.testing.assert_allclose(after["y"], matrix @ before["x"], rtol=1e-12, atol=1e-8)


@pytest.mark.parametrize("size", [*EDGES, 64])
def test_sparse_lower_solve_is_scipys(size: int) -> None:
    before, after = run("sparse_lower_solve", N=size)
    strict = csr(before, "vals", "cols", "row_start", (size, size))
    assert sparse.triu(strict).nnz == 0
    assert strict.nnz == (512 if size > 1 else 0)
    matrix = sparse.csr_array(strict + sparse.diags_array(before["diag"]))
    wanted = sparse_linalg.spsolve_triangular(matrix, before["x"])
    np.testing.assert_allclose(after["x"], wanted, rtol=1e-12)


@pytest.mark.parametrize("size", [*EDGES, 64])
def test_l1_jacobi_sweeps(size: int) -> None:
    before, after = run("l1_jacobi", N=size, NNZ=3 * size)
    matrix = csr(before, "vals", "cols", "row_start", (size, size)).toarray()
    row_sums = np.zeros(size)
    np.add.at(row_sums, np.repeat(np.arange(size), np.diff(before["row_start"])), np.abs(before["vals"]))
    x = before["x"]
    for _ in range(6):
        step = np.divide(before["b"] - matrix @ x, row_sums, out=np.zeros(size), where=row_sums > 0.0)
        x = x + step
    np.testing.assert_allclose(after["x"], x, rtol=1e-10, atol=1e-8)


def test_l1_jacobi_converges_on_a_laplacian() -> None:
    size, grid = 9, sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(9, 9)).tocsr()
    x, b = np.zeros(size), np.arange(1.0, 10.0)
    spec.load("l1_jacobi").load_numpy()(b, grid.indices, grid.indptr, grid.data, x, size, grid.nnz, 2000)
    np.testing.assert_allclose(x, np.linalg.solve(grid.toarray(), b), rtol=1e-10)


@pytest.mark.parametrize("size", [*EDGES, 40])
def test_sirt_steps(size: int) -> None:
    before, after = run("tomography_sirt", NPIX=size, NRAY=2 * size)
    matrix = csr(before, "lengths", "pixels", "ray_start", (2 * size, size)).toarray()
    rows, columns = matrix.sum(axis=1), matrix.sum(axis=0)
    image = np.zeros(size)
    for _ in range(12):
        misfit = before["sinogram"] - matrix @ image
        weighted = np.divide(misfit, rows, out=np.zeros_like(misfit), where=rows > 0.0)
        image += np.divide(matrix.T @ weighted, columns, out=np.zeros(size), where=columns > 0.0)
    np.testing.assert_allclose(after["image"], image, rtol=1e-10, atol=1e-12)


def test_sirt_finds_a_phantom() -> None:
    rng = np.random.default_rng(5)
    phantom = rng.uniform(1.0, 2.0, 6)
    matrix = sparse.random_array((40, 6), density=0.5, rng=rng, data_sampler=rng.random, format="csr")
    image = np.empty(6)
    reference = spec.load("tomography_sirt").load_numpy()
    reference(image, matrix.data, matrix.indices, matrix.indptr, matrix @ phantom, matrix.nnz, 6, 40, 3000)
    np.testing.assert_allclose(image, phantom, rtol=1e-8)
