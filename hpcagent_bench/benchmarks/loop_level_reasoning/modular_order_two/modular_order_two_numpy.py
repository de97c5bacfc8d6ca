"""Recurrence of order two modulo 2**31 - 1, driven by the whole parts of x."""


def modular_order_two(x, residue, LEN_1D):
    newer = 1
    older = 2
    for i in range(LEN_1D):
        value = (3 * newer + 5 * older + int(x[i])) % 2147483647
        residue[i] = value
        older = newer
        newer = value
