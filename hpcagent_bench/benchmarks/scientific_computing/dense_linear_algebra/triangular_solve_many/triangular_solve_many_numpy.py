"""Forward substitution with many right-hand sides: L X = B, X over B, L unit lower triangular.

Only the entries of ``tri`` below the diagonal are read.
"""


def triangular_solve_many(tri, x, N, NRHS):
    for i in range(N):
        for k in range(i):
            x[i, :] = x[i, :] - tri[i, k] * x[k, :]
