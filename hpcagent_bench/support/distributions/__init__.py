"""Value distributions of floating-point inputs.

``uniform`` is [-1000, 1000) unless an interval is declared, ``normal`` is N(0, 1) and ``lognormal`` is the
exponential of a normal with standard deviation 0.5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

UNIFORM_LIMIT = 1000.0
LOGNORMAL_SIGMA = 0.5
NAMES = ("uniform", "normal", "lognormal")

# Largest magnitude a draw may have in formats whose range is small.
SAFE_MAGNITUDE = {"float16": 6.5e4, "float8_e4m3": 400.0, "float8_e5m2": 5.0e4}


@dataclass(frozen=True)
class Variant:
    """Replaces the declared distribution of value arrays and scales what is drawn (held-out cases)."""

    label: str
    dist: str
    scale: float = 1.0


def sample(dist: str, out: npt.NDArray[np.float64], generator: np.random.Generator) -> None:
    """Fill ``out`` (one block) from ``normal`` or ``lognormal``; ``uniform`` has its own native path."""
    if dist not in ("normal", "lognormal"):
        raise ValueError(f"distribution '{dist}' has no block sampler")
    generator.standard_normal(out=out)
    if dist == "lognormal":
        np.multiply(out, LOGNORMAL_SIGMA, out=out)
        np.exp(out, out=out)
