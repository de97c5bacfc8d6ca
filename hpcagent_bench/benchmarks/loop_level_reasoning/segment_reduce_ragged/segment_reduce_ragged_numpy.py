"""The dot product of val and w within each segment; segments hold 24 elements on average, some none."""


def segment_reduce_ragged(out, row_ptr, val, w, NSEG):
    for k in range(NSEG):
        s = 0.0
        for p in range(row_ptr[k], row_ptr[k + 1]):
            s = s + val[p] * w[p]
        out[k] = s
