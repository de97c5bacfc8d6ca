"""The inputs a kernel is checked on and NumPy's answers: each drawn and computed once for all languages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import yaml

from hpcagent_bench import paths
from hpcagent_bench.config import Sizes
from hpcagent_bench.corpus import fuzz, precision, sizing
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.corpus_check.calls import copies, identical, numpy_call
from hpcagent_bench.errors import UserError
from hpcagent_bench.support.distributions import Variant
from hpcagent_bench.support.distributions.hidden import HELD_OUT
from hpcagent_bench.toolchain.in_process import Arrays, Call

SEEDS = (11, 12, 13)
CONFIG_POOL = 5
"""As many configurations as the judge deals."""


Params = tuple[tuple[str, int | float], ...]
"""Sizes and knobs by name, sorted."""


@dataclass(frozen=True)
class Case:
    """One input: every size and knob, the distribution of its values, the seed of values and structure."""

    params: Params
    variant: Variant | None
    seed: int
    place: str

    @property
    def values(self) -> dict[str, int | float]:
        return dict(self.params)

    def __str__(self) -> str:
        return f"{self.place}, {self.variant.label if self.variant else 'declared'}, seed {self.seed}"


@dataclass(frozen=True)
class Answered:
    """A case with its drawn arrays, and the output arrays as NumPy left them."""

    case: Case
    drawn: Arrays
    expected: Arrays


def draw(kernel: Kernel, case: Case, datatype: str = "float64", threads: int = 1) -> Arrays:
    """The arrays of a case."""
    return fuzz.drawn(
        kernel,
        case.values,
        value_seed=case.seed,
        structural_seed=case.seed,
        threads=threads,
        datatype=datatype,
        variant=case.variant,
    )


def configurations(kernel: Kernel) -> tuple[dict[str, int | float], ...]:
    return kernel.configs[:CONFIG_POOL]


def cases(kernel: Kernel) -> Iterator[Case]:
    """Every configuration x preset S and the edge shapes x the five hidden distributions x three seeds.

    An edge shape sets every free size to one small number, and one more sets them to different ones; shapes
    that break a constraint of the manifest are left out, since the judge cannot draw them either. Seeds
    differ between distributions: a kernel that draws its arrays by a function of its own has but one.
    """
    for config in configurations(kernel):
        for place, sizes in _shapes(kernel):
            params = {**sizes, **config}
            if kernel.broken_constraint(params) is not None:
                continue
            label = f"{place} {config}" if config else place
            for index, variant in enumerate(HELD_OUT):
                for seed in SEEDS:
                    yield Case(tuple(sorted(params.items())), variant, seed + 100 * index, label)


def _shapes(kernel: Kernel) -> Iterator[tuple[str, dict[str, int]]]:
    small = kernel.presets["S"]
    yield "S", small
    for edge in sizing.EDGES:
        yield f"sizes {edge}", sizing.edge_sizes(kernel, edge)
    if len(kernel.size_symbols) > 1:
        mixed = {symbol: sizing.EDGES[1:][i % 4] for i, symbol in enumerate(kernel.size_symbols)}
        yield "sizes " + "/".join(map(str, mixed.values())), {**small, **mixed}


def laptop(kernel: Kernel, part: int = 1) -> dict[str, int]:
    """The sizes of the laptop rung, or of one with a ``part``-th of its bytes."""
    text = (paths.conf_root() / "sizes" / "laptop.yaml").read_text(encoding="utf-8")
    rung = Sizes(**yaml.safe_load(text))
    if part > 1:
        taken = kernel.input_bytes(sizing.rung(kernel, rung))
        rung = Sizes(rung.name, max(taken // part, kernel.input_bytes(kernel.presets["S"])))
    return sizing.rung(kernel, rung)


def laptop_cases(kernel: Kernel, part: int = 1) -> list[Case]:
    """One input a configuration at the laptop rung; the declared distribution and the widest take turns."""
    sizes = laptop(kernel, part)
    variants = (None, HELD_OUT[3])
    return [
        Case(tuple(sorted({**sizes, **config}.items())), variants[i % 2], SEEDS[0], f"laptop {config or ''}")
        for i, config in enumerate(configurations(kernel))
    ]


@dataclass
class Oracle:
    """A kernel's NumPy reference and the bands of its outputs."""

    kernel: Kernel
    _bands: dict[tuple[str, Params], precision.Tolerance] = field(default_factory=dict, repr=False)

    @cached_property
    def call(self) -> Call:
        return numpy_call(self.kernel)

    def answer(self, case: Case) -> Answered:
        """Draw a case and let NumPy compute it."""
        drawn = draw(self.kernel, case)
        work = copies(drawn)
        self.call(work, case.values)
        for name, before in drawn.items():
            if name not in self.kernel.outputs and not identical(before, work[name]):
                raise UserError(f"the reference changes {name}, which is no output")
        return Answered(case, drawn, {name: work[name] for name in self.kernel.outputs})

    @cached_property
    def _written(self) -> dict[str, tuple[int, ...]]:
        """The judge's own write probe, at preset S."""
        params = {**self.kernel.configs[0], **self.kernel.presets["S"]}
        return precision.write_probe(self.kernel, lambda arrays: self.call(arrays, params))

    def tolerance(self, output: str, case: Case) -> precision.Tolerance:
        """The judge's band of an output at the sizes of a case."""
        key = (output, case.params)
        if key not in self._bands:
            written = self._written.get(output)
            self._bands[key] = precision.tolerance(self.kernel, output, case.values, "float64", written)
        return self._bands[key]
