"""The judge's own references pass every held-out case, within the bands a submission is compared by.

A few kernels spread over the corpus; ``hpcagent-bench kernels check`` looks at all of them on small sizes.
"""

from __future__ import annotations

import zlib

import pytest

from hpcagent_bench.corpus import spec
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.harness.checks.reverify import public_case
from hpcagent_bench.harness.checks.untimed import Untimed, params_at
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.hidden_tests import hidden_cases
from tests.support.gate_rig import grading_of

PRESETS = ("S", "M", "L", "XL")


def sample(count: int) -> list[str]:
    """Kernels spread over the corpus."""
    return sorted(spec.discover(), key=lambda name: zlib.crc32(name.encode()))[:count]


def test_every_kernel_has_a_configuration_for_every_preset(context: GradingContext) -> None:
    for name in spec.discover():
        kernel = spec.load(name)
        for turn, preset in enumerate((*PRESETS, "S")):
            _, params = params_at(context, kernel, preset, turn)
            assert kernel.broken_constraint(params) is None, (name, preset)


@pytest.mark.parametrize("name", sample(6))
def test_c_and_numba_agree_on_the_held_out_cases(context: GradingContext, name: str) -> None:
    kernel: Kernel = spec.load(name)
    grading = grading_of(context, kernel)
    bench = Untimed(grading)
    numba = context.references.start(kernel, "numba")
    try:
        cases = [*hidden_cases(context, kernel, 77), public_case(context, grading)]
        failures = {case.label: bench.run(case, numba) for case in cases}
        assert bench.answered_by == "c"
    finally:
        context.references.discard(numba)
        bench.close()
    assert not any(failures.values()), failures
