"""Sparse matrix times a block of a few vectors, Y = A X, A in compressed sparse rows."""


def csr_spmm(cols, row_start, vals, x, y, NC, NNZ, NR, NV):
    for i in range(NR):
        y[i, :] = 0.0
        for e in range(row_start[i], row_start[i + 1]):
            y[i, :] = y[i, :] + vals[e] * x[cols[e], :]
