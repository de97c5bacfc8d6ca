"""LU factors without pivoting, in place: unit lower L below the diagonal, U on and above it."""


def lu_factorization(a, N):
    for k in range(N):
        for i in range(k + 1, N):
            a[i, k] = a[i, k] / a[k, k]
            a[i, k + 1 :] = a[i, k + 1 :] - a[i, k] * a[k, k + 1 :]
