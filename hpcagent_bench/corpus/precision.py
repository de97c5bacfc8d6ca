"""What an output may deviate and whether it does (scoring.md 1.2 gate 2).

``bands``: the band of each format. ``reassociation``: the tolerance of a kernel's output. ``comparison``: the
comparison itself. This module gathers their names.
"""

from __future__ import annotations

from hpcagent_bench.corpus.bands import EXACT, TOLERANCE_MATRIX, Band, Tolerance, Ungradeable, band
from hpcagent_bench.corpus.comparison import Comparison, compare
from hpcagent_bench.corpus.reassociation import contracted_extent, tolerance, write_probe

__all__ = [
    "EXACT",
    "TOLERANCE_MATRIX",
    "Band",
    "Comparison",
    "Tolerance",
    "Ungradeable",
    "band",
    "compare",
    "contracted_extent",
    "tolerance",
    "write_probe",
]
