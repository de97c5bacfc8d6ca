"""A signal plus its own past, which passes through a ring buffer of DELAY places."""


def ring_buffer_echo(x, ring, out, gain, DELAY, LEN_1D):
    for i in range(LEN_1D):
        slot = i % DELAY
        echo = ring[slot]
        ring[slot] = x[i]
        out[i] = x[i] + gain * echo
