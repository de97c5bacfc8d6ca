"""Forward FFT of every row of re + i im, in place: bit reversal, then radix-2 butterflies.

``LEN`` is a power of two.
"""

import numpy as np


def fft_batch(im, re, BATCH, LEN):
    cosine = np.empty(LEN, dtype=re.dtype)
    sine = np.empty(LEN, dtype=re.dtype)
    for t in range(LEN):
        cosine[t] = np.cos(2.0 * np.pi * t / LEN)
        sine[t] = -np.sin(2.0 * np.pi * t / LEN)
    for row in range(BATCH):
        mirror = 0
        for k in range(1, LEN):
            bit = LEN // 2
            while mirror >= bit:
                mirror -= bit
                bit = bit // 2
            mirror += bit
            if k < mirror:
                held = re[row, k]
                re[row, k] = re[row, mirror]
                re[row, mirror] = held
                held = im[row, k]
                im[row, k] = im[row, mirror]
                im[row, mirror] = held
        half = 1
        while half < LEN:
            for offset in range(half):
                c = cosine[offset * (LEN // (2 * half))]
                s = sine[offset * (LEN // (2 * half))]
                for top in range(offset, LEN, 2 * half):
                    twisted_re = c * re[row, top + half] - s * im[row, top + half]
                    twisted_im = c * im[row, top + half] + s * re[row, top + half]
                    re[row, top + half] = re[row, top] - twisted_re
                    im[row, top + half] = im[row, top] - twisted_im
                    re[row, top] = re[row, top] + twisted_re
                    im[row, top] = im[row, top] + twisted_im
            half = 2 * half
