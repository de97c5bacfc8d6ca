"""Which inputs a grade is measured on: shapes, size classes and configs (scoring.md 1.2, 1.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hpcagent_bench import config, protocols
from hpcagent_bench.corpus import fuzz, sizing
from hpcagent_bench.corpus.spec import Kernel

PUBLIC_SHAPE_OFFSET = 10_000
"""Shapes of /submit come from seeds.fuzz + 10000 + i: public, since values are secret."""

RETRIES = 64
"""Redraws before two equal shapes are accepted (a tiny rung may hold no others)."""


@dataclass(frozen=True)
class InputCell:
    """One timed input: sizes and configuration of a kernel, without values."""

    index: int
    label: str
    preset: str
    size_class: str
    sizes: dict[str, int]
    config: dict[str, int | float]

    @property
    def params(self) -> dict[str, int | float]:
        """Every size symbol and configuration knob of the input."""
        return {**self.sizes, **self.config}

    @property
    def key(self) -> str:
        """Names the input in memo keys and seeds."""
        return ",".join(f"{k}={v}" for k, v in sorted(self.params.items()))


def upper_half(settings: config.Fuzz) -> tuple[float, float]:
    """The interval sizes are drawn in, as multiples of the rung: the upper half, [0.75, 1] by default."""
    middle = (settings.xl_lo_mult + settings.xl_hi_mult) / 2
    return middle, settings.xl_hi_mult


def _deal(
    kernel: Kernel, sizes: config.Sizes, settings: config.Judge, count: int, seeds: list[int]
) -> tuple[InputCell, ...]:
    """``count`` inputs: input i takes size class i and config i mod |configs|; shapes are distinct.

    The configurations are the kernel's first ``fuzz.config_pool``: public and the same for every submission,
    as the sizes are, so that grades of different judges compare. Held-out cases rotate through them too.
    """
    rung = sizing.rung(kernel, sizes, settings.service.datatype)
    low, high = upper_half(settings.fuzz)
    configs = kernel.configs[: settings.fuzz.config_pool] or ({},)
    cells: list[InputCell] = []
    for i in range(count):
        size_class = fuzz.SIZE_CLASSES[i % len(fuzz.SIZE_CLASSES)]
        rng = np.random.default_rng(seeds[i])
        chosen = dict(configs[i % len(configs)])
        for _ in range(RETRIES):
            drawn = sizing.draw_sizes(kernel, rung, size_class, rng, low, high, chosen)
            if all(drawn != cell.sizes for cell in cells):
                break
        label = f"{i + 1} ({size_class} " + " ".join(f"{k}={v}" for k, v in sorted(drawn.items())) + ")"
        cells.append(InputCell(i, label, sizing.rung_name(sizes), size_class, drawn, chosen))
    return tuple(cells)


def timed_cells_for(
    kernel: Kernel, sizes: config.Sizes, settings: config.Judge, protocol: protocols.Protocol
) -> tuple[InputCell, ...]:
    """The inputs of a final grade: the same shapes for every submission of the kernel."""
    base = settings.seeds.fuzz + PUBLIC_SHAPE_OFFSET
    return _deal(kernel, sizes, settings, protocol.inputs, [base + i for i in range(protocol.inputs)])


def score_cells_for(
    kernel: Kernel, sizes: config.Sizes, settings: config.Judge, protocol: protocols.Protocol, seed: int
) -> tuple[InputCell, ...]:
    """The inputs of a preview, drawn from the first secret seed so that it never times a /submit size."""
    seeds = [
        fuzz.pool_seed(seed, kernel.name, sizing.rung_name(sizes), "shape", str(i), i)
        for i in range(protocol.inputs)
    ]
    final = timed_cells_for(
        kernel, sizes, settings, protocols.credited(settings.measurement.credited_protocol)
    )
    taken = [cell.sizes for cell in final]
    cells = _deal(kernel, sizes, settings, protocol.inputs, seeds)
    if any(cell.sizes in taken for cell in cells):
        shifted = [s ^ 0x9E3779B9 for s in seeds]
        cells = _deal(kernel, sizes, settings, protocol.inputs, shifted)
    return cells
