"""How far an element may deviate: the band of each format, and the tolerance of one output array.

An element agrees when ``|x - x_ref| <= atol_eff + rtol |x_ref|``, where ``rtol`` and ``atol`` are the
precision's band (raised by the manifest's conditioning floors) and ``atol_eff`` also covers another order of
summation: ``max(atol, eps sqrt(l) max|x_ref|)`` with ``l`` the number of terms an output element gathers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hpcagent_bench.corpus import datatypes


@dataclass(frozen=True)
class Band:
    """Relative and absolute tolerance of a format, and the epsilon of the format its sums accumulate in."""

    rtol: float
    atol: float
    acc_eps: float


_EPS64 = 2.0**-52
_EPS32 = 2.0**-23
TOLERANCE_MATRIX: dict[str, Band] = {
    "float64": Band(1e-9, 1e-11, _EPS64),
    "float32": Band(1e-3, 1e-5, _EPS32),
    "float16": Band(1e-2, 1e-3, _EPS32),
    "bfloat16": Band(3e-2, 1e-2, _EPS32),
    "float8_e4m3": Band(1e-1, 0.125, _EPS32),
    "float8_e5m2": Band(2e-1, 0.25, _EPS32),
}
_PARTS = {"complex128": "float64", "complex64": "float32"}


class Ungradeable(Exception):
    """The judge cannot tell right from wrong here: a fault of the judge's side, never of a submission."""


@dataclass(frozen=True)
class Tolerance:
    """What one output array may deviate. ``length`` is l, ``rule`` says how it was found.

    ``atol`` 0 switches the reassociation floor off.
    """

    rtol: float
    atol: float
    acc_eps: float
    length: int
    rule: str

    def effective_atol(self, norm: float) -> float:
        """``atol`` raised by the reassociation floor for a reference of largest magnitude ``norm``."""
        if self.atol == 0.0:
            return 0.0
        return max(self.atol, self.acc_eps * math.sqrt(self.length) * norm)


EXACT = Tolerance(rtol=0.0, atol=0.0, acc_eps=0.0, length=1, rule="exact")


def band(datatype: str) -> Band:
    """The band of a format; one without an entry follows from its epsilon."""
    name = _PARTS.get(datatype, datatype)
    if name in TOLERANCE_MATRIX:
        return TOLERANCE_MATRIX[name]
    eps = datatypes.epsilon(name)
    rtol = min(max(math.sqrt(eps), 1e-11), 0.25)
    return Band(rtol, max(rtol / 100.0, eps), eps)
