"""Value distributions of floating-point inputs.

``uniform`` is [-1000, 1000) unless an interval is declared, ``normal`` is N(0, 1) and ``lognormal`` is the
exponential of a normal with standard deviation 0.5. In an interval a draw is mapped affinely: normal from
[-4, 4], lognormal from [0, 8], what lies outside onto the nearer end.

Structural distributions fill square matrices of order N. With u uniform in [-1, 1), an element off the
diagonal is ``off * u / N`` and one on it ``sign(u) * centre + spread * u``. The elements of a row off the
diagonal sum to less than ``off`` in magnitude, so by Gershgorin's theorem every eigenvalue has a modulus
within ``off`` of [centre, centre + spread]:

- ``well_conditioned``: off 1, centre 1.5, spread 1: strictly dominated by its diagonal, condition number (in
  the infinity norm) below (2.5 + 1) / (1.5 - 1) = 7; no elimination needs pivoting.
- ``near_singular``: the same, then its last row becomes the first one plus d times itself, d the power of two
  next to the square root of the format's epsilon. x A = d * (last row) for x = e_last - e_first, so the
  condition number is about 1 / d: half of the digits of a solution are lost.
- ``stable``: off 0.125, centre 0.65, spread 0.2: every eigenvalue has a modulus between 0.525 and 0.975, so
  powers of the matrix vanish.
- ``unstable``: off 0.125, centre 1.15, spread 0.2: moduli between 1.025 and 1.475, powers grow.
"""

from __future__ import annotations

from dataclasses import dataclass

UNIFORM_LIMIT = 1000.0
LOGNORMAL_SIGMA = 0.5
NAMES = ("uniform", "normal", "lognormal")
NORMAL_RANGE = (-4.0, 4.0)
LOGNORMAL_RANGE = (0.0, 8.0)

# Largest magnitude a draw may have in formats whose range is small.
SAFE_MAGNITUDE = {"float16": 6.5e4, "float8_e4m3": 400.0, "float8_e5m2": 5.0e4}


@dataclass(frozen=True)
class Structure:
    """Elements of a structural matrix: ``off * u / N``, on the diagonal ``sign(u) * centre + spread * u``."""

    off: float
    centre: float
    spread: float
    near_singular: bool = False


STRUCTURAL: dict[str, Structure] = {
    "well_conditioned": Structure(1.0, 1.5, 1.0),
    "near_singular": Structure(1.0, 1.5, 1.0, near_singular=True),
    "stable": Structure(0.125, 0.65, 0.2),
    "unstable": Structure(0.125, 1.15, 0.2),
}


@dataclass(frozen=True)
class Variant:
    """Replaces the declared distribution of value arrays and scales what is drawn (held-out cases)."""

    label: str
    dist: str
    scale: float = 1.0
