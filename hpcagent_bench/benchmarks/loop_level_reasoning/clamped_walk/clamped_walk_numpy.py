"""A walk with the steps x that never leaves [-4, 4]: every position is clamped before the next step."""


def clamped_walk(x, position, LEN_1D):
    level = 0.0
    for i in range(LEN_1D):
        level = min(max(level + x[i], -4.0), 4.0)
        position[i] = level
