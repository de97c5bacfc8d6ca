"""Sparse matrix times vector, y = A x, A in compressed sparse rows of irregular length."""


def csr_spmv(cols, row_start, vals, x, y, NC, NNZ, NR):
    for i in range(NR):
        total = 0.0
        for e in range(row_start[i], row_start[i + 1]):
            total += vals[e] * x[cols[e]]
        y[i] = total
