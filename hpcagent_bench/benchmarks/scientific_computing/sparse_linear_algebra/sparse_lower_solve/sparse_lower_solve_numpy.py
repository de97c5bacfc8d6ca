"""Sparse forward substitution, (D + L) x = b, x over b: L strictly lower in compressed sparse rows."""


def sparse_lower_solve(cols, diag, row_start, vals, x, N, NNZ):
    for i in range(N):
        total = x[i]
        for e in range(row_start[i], row_start[i + 1]):
            total -= vals[e] * x[cols[e]]
        x[i] = total / diag[i]
