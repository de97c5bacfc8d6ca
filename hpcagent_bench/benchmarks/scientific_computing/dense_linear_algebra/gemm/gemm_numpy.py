"""General matrix product: C becomes alpha A B + beta C."""


def gemm(alpha, beta, a, b, c, NI, NJ, NK):
    c[:, :] = alpha * (a @ b) + beta * c
