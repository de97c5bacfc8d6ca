"""The held-out cases (scoring.md 1.2 gate 3). A judge's secret seeds lie in this folder as well."""

from __future__ import annotations

from hpcagent_bench.corpus import fuzz
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.harness.checks.untimed import Case, params_at
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.support.distributions.hidden import HELD_OUT


def hidden_cases(context: GradingContext, kernel: Kernel, seed: int) -> tuple[Case, ...]:
    """Five cases: one distribution each, at ``fuzz.hidden_correctness_presets``, configurations in turn.

    ``seed`` is the grade's own (the salted second one). No case is larger than the timed rung.
    """
    presets = context.settings.fuzz.hidden_correctness_presets or ["XL"]
    datatype = context.settings.service.datatype
    cases = []
    for turn, variant in enumerate(HELD_OUT):
        name, params = params_at(context, kernel, presets[turn % len(presets)], turn)
        drawn = fuzz.pool_seed(seed, kernel.name, name, datatype, variant.label, turn)
        cases.append(Case(f"{variant.label} at preset {name}", params, drawn, drawn, variant))
    return tuple(cases)
