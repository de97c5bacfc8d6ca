"""Fourier transform of unevenly sampled data at chosen frequencies: sum of samples exp(-2 pi i f t)."""

import numpy as np


def nonuniform_dft(frequency, samples, spectrum, times, NF, NT):
    phase = np.empty(NT, dtype=times.dtype)
    for k in range(NF):
        phase[:] = 2.0 * np.pi * frequency[k] * times
        spectrum[k] = np.sum(samples * np.cos(phase)) - 1j * np.sum(samples * np.sin(phase))
