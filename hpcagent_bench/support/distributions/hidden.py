"""The five distributions of the held-out cases (scoring.md 1.2 gate 3)."""

from __future__ import annotations

from hpcagent_bench.support.distributions import Variant

HELD_OUT: tuple[Variant, ...] = (
    Variant("h1", "uniform"),
    Variant("h2", "lognormal"),
    Variant("h3", "normal"),
    Variant("h4", "uniform", 3.0),
    Variant("h5", "lognormal", 0.1),
)
"""Mixed-sign uniform, lognormal, normal, uniform at three times the magnitude, lognormal at a tenth."""
