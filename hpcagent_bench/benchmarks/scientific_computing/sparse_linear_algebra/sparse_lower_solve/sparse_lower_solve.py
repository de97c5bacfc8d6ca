"""Inputs of sparse_lower_solve: a random strictly lower pattern, which no declared distribution gives."""

import numpy as np


def initialize(N, NNZ, datatype, rng, structure_rng):
    """Rows of random length whose columns are uniform below the diagonal; row 0 is empty.

    A diagonal of 4 to 8 against entries up to 1 keeps x of the size of b. With one row nothing is below the
    diagonal: all entries lie behind the last row.
    """
    row_start = np.zeros(N + 1, dtype=np.int64)
    if N > 1:
        row_start[2:N] = np.sort(structure_rng.integers(0, NNZ, N - 2, endpoint=True))
        row_start[N] = NNZ
    owner = np.repeat(np.arange(N), np.diff(row_start))
    cols = np.zeros(NNZ, dtype=np.int32)
    cols[: owner.size] = structure_rng.random(owner.size) * owner
    diag = rng.uniform(4.0, 8.0, N).astype(datatype)
    vals = rng.uniform(-1.0, 1.0, NNZ).astype(datatype)
    x = rng.uniform(-1000.0, 1000.0, N).astype(datatype)
    return cols, diag, row_start, vals, x
