"""PageRank by pulling: every page takes a share of the rank of the pages that link to it."""

import numpy as np


def pagerank_pull(incoming, rank, damping, N, LINKS, STEPS):
    fresh = np.empty(N, dtype=rank.dtype)
    for t in range(STEPS):
        for i in range(N):
            total = 0.0
            for k in range(LINKS):
                total += rank[incoming[i, k]]
            fresh[i] = (1.0 - damping) / N + damping * total / LINKS
        rank[:] = fresh
