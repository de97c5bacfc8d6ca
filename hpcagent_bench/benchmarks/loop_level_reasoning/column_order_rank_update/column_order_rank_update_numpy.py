"""Adds RANK outer products to a matrix, walking down its columns."""


def column_order_rank_update(u, v, c, LEN_2D, RANK):
    for j in range(LEN_2D):
        for r in range(RANK):
            for i in range(LEN_2D):
                c[i, j] = c[i, j] + u[i, r] * v[r, j]
