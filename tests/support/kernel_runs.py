"""Draw a kernel's arguments as the judge does, and let the NumPy reference work on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from hpcagent_bench.corpus import fuzz
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.support.distributions import Variant
from hpcagent_bench.toolchain import in_process

Arrays = dict[str, npt.NDArray[Any]]


def drawn(
    kernel: Kernel, params: Mapping[str, int | float], seed: int = 31, variant: Variant | None = None
) -> Arrays:
    """Every array in double precision; sizes and knobs that ``params`` leaves out come from S."""
    params = {**kernel.presets["S"], **params}
    return fuzz.drawn(kernel, params, value_seed=seed, structural_seed=seed, variant=variant)


def computed(kernel: Kernel, arrays: Arrays, params: Mapping[str, int | float]) -> Arrays:
    """What the reference leaves in the outputs; ``arrays`` stay as they are."""
    values = {name: array.copy() for name, array in arrays.items()}
    call = in_process.of_function(kernel, kernel.load_numpy())
    call(values, {**kernel.presets["S"], **params})
    return {name: values[name] for name in kernel.outputs}
