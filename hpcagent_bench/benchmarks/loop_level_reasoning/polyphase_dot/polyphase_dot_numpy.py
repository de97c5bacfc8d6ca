"""Dot product of every phase of two signals: elements PHASES apart belong together."""


def polyphase_dot(x, w, phase_sum, LEN_1D, PHASES):
    for p in range(PHASES):
        s = 0.0
        for i in range(p, LEN_1D, PHASES):
            s = s + w[i] * x[i]
        phase_sum[p] = s
