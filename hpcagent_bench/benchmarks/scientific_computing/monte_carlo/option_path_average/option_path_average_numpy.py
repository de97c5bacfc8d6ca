"""Prices of arithmetic-average options by simulated paths, each option with a generator of its own."""

import numpy as np


def option_path_average(price, seed, spot, strike, drift, volatility, N, PATHS, STEPS):
    for i in range(N):
        state = seed[i]
        payoff = 0.0
        for p in range(PATHS):
            value = spot[i]
            average = 0.0
            for t in range(STEPS):
                state = state ^ (state << 13)
                state = state ^ (state >> 7)
                state = state ^ (state << 17)
                u = ((state >> 11) + 0.5) * 1.1102230246251565e-16
                state = state ^ (state << 13)
                state = state ^ (state >> 7)
                state = state ^ (state << 17)
                v = ((state >> 11) + 0.5) * 1.1102230246251565e-16
                normal = np.sqrt(-2.0 * np.log(u)) * np.cos(6.283185307179586 * v)
                value = value * np.exp(drift + volatility * normal)
                average += value
            payoff += max(average / STEPS - strike[i], 0.0)
        price[i] = payoff / PATHS
