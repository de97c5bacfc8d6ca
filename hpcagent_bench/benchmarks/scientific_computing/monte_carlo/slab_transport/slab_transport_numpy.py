"""Particles through a slab: flight, absorption and scattering of each, until it leaves or is absorbed."""

import numpy as np


def slab_transport(direction, leaked, position, seed, track, absorption, thickness, N):
    left = 0
    right = 0
    for i in range(N):
        state = seed[i]
        x = position[i]
        mu = direction[i]
        length = 0.0
        alive = 1
        while alive == 1:
            state = state ^ (state << 13)
            state = state ^ (state >> 7)
            state = state ^ (state << 17)
            flight = -np.log(((state >> 11) + 0.5) * 1.1102230246251565e-16)
            x += mu * flight
            length += flight
            if x < 0.0:
                left += 1
                alive = 0
            elif x > thickness:
                right += 1
                alive = 0
            else:
                state = state ^ (state << 13)
                state = state ^ (state >> 7)
                state = state ^ (state << 17)
                if ((state >> 11) + 0.5) * 1.1102230246251565e-16 < absorption:
                    alive = 0
                else:
                    state = state ^ (state << 13)
                    state = state ^ (state >> 7)
                    state = state ^ (state << 17)
                    mu = ((state >> 11) + 0.5) * 2.220446049250313e-16 - 1.0
        track[i] = length
    leaked[0] = left
    leaked[1] = right
