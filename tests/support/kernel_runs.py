"""Draw a kernel's arguments as the judge does, and let the NumPy reference work on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hpcagent_bench.corpus import fuzz
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.support.distributions import Variant

Arrays = dict[str, npt.NDArray[Any]]


def drawn(
    kernel: Kernel, params: Mapping[str, int | float], seed: int = 31, variant: Variant | None = None
) -> Arrays:
    """Every array in double precision; sizes and knobs that ``params`` leaves out come from S."""
    params = {**kernel.presets["S"], **params}
    dtypes = kernel.dtypes()
    arrays = {name: np.empty(shape, dtypes[name]) for name, shape in kernel.shapes(params).items()}
    fuzz.fill(kernel, arrays, params, value_seed=seed, structural_seed=seed, threads=1, variant=variant)
    return arrays


def computed(kernel: Kernel, arrays: Arrays, params: Mapping[str, int | float]) -> Arrays:
    """What the reference leaves in the outputs; ``arrays`` stay as they are."""
    scalars = kernel.scalars({**kernel.presets["S"], **params})
    values = {**scalars, **{name: array.copy() for name, array in arrays.items()}}
    kernel.load_numpy()(*(values[name] for name in kernel.arg_order))
    return {name: values[name] for name in kernel.outputs}
