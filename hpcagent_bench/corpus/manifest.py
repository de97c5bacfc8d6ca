"""The manifest of a kernel (``<kernel>.yaml``): a closed set of keys, refused one line at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, ValidationError, field_validator, model_validator

from hpcagent_bench.corpus import datatypes, expressions, size_forms, yaml_reading
from hpcagent_bench.corpus.declarations import ArrayDecl, Baseline, Closed, Fuzz, Init, Knob, Mpi, TrackNote
from hpcagent_bench.corpus.size_forms import SizeForm
from hpcagent_bench.errors import UserError, did_you_mean
from hpcagent_bench.toolchain import languages

__all__ = ["PRESETS", "ArrayDecl", "Manifest", "read"]

PRESETS = ("S", "M", "L", "XL")
FUZZED = "fuzzed"
SPARSE = ("sparse_layouts", "configurations", "distributions", "variants")
"""Keys of the format for sparse handles: they would change the call, so they are refused."""


def _language(value: str) -> str:
    if value not in languages.COMPILED:
        raise ValueError(f"'{value}' is not known; {did_you_mean(value, languages.COMPILED)}")
    return value


def _precision(value: str) -> str:
    if value not in datatypes.PRECISIONS:
        raise ValueError(f"'{value}' is not known; {did_you_mean(str(value), datatypes.PRECISIONS)}")
    return value


Language = Annotated[str, PlainValidator(_language)]
Precision = Annotated[str, PlainValidator(_precision)]


class Manifest(Closed):
    """Everything a kernel's YAML may say; an unknown key is an error.

    The ``fuzzed`` preset of ``parameters`` or ``dimensions`` is held apart, in ``fuzzed``. ``precisions`` are
    the ones the kernel is checked in, ``min_precision`` the least one it may run in.
    """

    name: str
    short_name: str | None = Field(default=None, alias="short-name", max_length=14)
    level: Literal[1, 2, 3]
    parameters: dict[str, dict[str, int]] | None = None
    dimensions: dict[str, dict[str, int]] | None = None
    fuzzed: dict[str, Annotated[SizeForm, PlainValidator(size_forms.parse)]] = Field(default_factory=dict)
    config: dict[str, Knob] | list[dict[str, int | float]] = Field(default_factory=dict)
    constraints: list[str] = Field(default_factory=list)
    func_name: str | None = None
    init: Init
    input_args: list[str] | None = None
    array_args: list[str] | None = None
    output_args: list[str] = Field(min_length=1)
    languages: list[Language] | None = Field(default=None, min_length=1)
    precisions: list[Precision] = Field(default=["fp64", "fp32"], min_length=1)
    min_precision: Precision | None = None
    timeout_s: int | float | None = Field(default=None, gt=0)
    conditioning_rtol: float | None = Field(default=None, gt=0)
    conditioning_atol: float | None = Field(default=None, gt=0)
    fuzz: Fuzz = Field(default_factory=Fuzz)
    baseline: Baseline | None = None
    mpi: Mpi | None = None
    taxonomy: dict[str, Any] = Field(default_factory=dict)
    experiment_tags: list[str] = Field(default_factory=list)
    category: str | None = None
    optimization: str | None = None
    puzzle: str | None = None
    loop_level_reasoning: TrackNote | None = None
    scientific_computing: TrackNote | None = None
    machine_learning: TrackNote | None = None

    @model_validator(mode="before")
    @classmethod
    def _split_fuzzed(cls, raw: Any) -> Any:
        for key in ("parameters", "dimensions"):
            presets = raw.get(key)
            if isinstance(presets, dict) and FUZZED in presets:
                kept = {preset: values for preset, values in presets.items() if preset != FUZZED}
                return {**raw, key: kept, FUZZED: presets[FUZZED]}
        return raw

    @field_validator("name")
    @classmethod
    def _title(cls, value: str) -> str:
        if not value or len(value) > 30:
            raise ValueError(f"'{value}' must have 1 to 30 characters")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Manifest:
        if len(self.name) > 14 and self.short_name is None:
            raise ValueError(f"name '{self.name}' is longer than 14 characters; add short-name")
        if (self.parameters is None) == (self.dimensions is None):
            raise ValueError("give the sizes once, as parameters or as dimensions (with config)")
        self._check_sizes()
        self._check_fuzzed()
        for name in self.output_args:
            if name not in self.init.arrays:
                raise ValueError(f"output_args names '{name}', which init.arrays does not declare")
        return self

    def _check_sizes(self) -> None:
        if sorted(self.sizes) != sorted(PRESETS):
            raise ValueError(f"presets are {', '.join(self.sizes)}; exactly S, M, L and XL are needed")
        if len({tuple(sorted(values)) for values in self.sizes.values()}) != 1:
            raise ValueError("every preset must give the same symbols")
        for preset, values in self.sizes.items():
            for symbol, value in values.items():
                if value < 1:
                    raise ValueError(f"{preset}.{symbol} is {value}; sizes start at 1")
        clash = set(self.init.constants) & {*self.sizes["XL"], *self.init.scalars, *self.init.arrays}
        if clash:
            raise ValueError(f"init.constants: '{min(clash)}' is declared twice")

    def _check_fuzzed(self) -> None:
        if self.fuzzed and set(self.fuzzed) != set(self.sizes["XL"]):
            raise ValueError(
                f"preset fuzzed must give the same symbols as XL: {', '.join(sorted(self.sizes['XL']))}"
            )

    @model_validator(mode="after")
    def _precise_enough(self) -> Manifest:
        order = list(datatypes.PRECISIONS)
        if self.min_precision is None:
            return self
        coarse = [p for p in self.precisions if order.index(p) > order.index(self.min_precision)]
        if coarse and "precisions" in self.model_fields_set:
            raise ValueError(
                f"precisions lists {coarse[0]}, which is below min_precision {self.min_precision}"
            )
        return self

    @property
    def sizes(self) -> dict[str, dict[str, int]]:
        """Preset to symbol to value, under whichever key it was written."""
        return self.parameters or self.dimensions or {}


def _refuse_known_traps(raw: Mapping[str, Any], path: Path) -> None:
    for key in ("rtol", "atol"):
        if key in raw:
            raise UserError(
                f"{path}: key '{key}' is refused: tolerances follow from the precision alone",
                f"an ill-conditioned kernel sets conditioning_{key}",
            )
    for key in SPARSE:
        if key in raw:
            raise UserError(
                f"{path}: key '{key}' is refused: this version makes no sparse handles",
                "declare the members of the CSR form (offsets, indices, values) as arrays",
            )
    if FUZZED in raw:
        raise UserError(f"{path}: unknown key '{FUZZED}'", "it is a preset; write it under parameters")


def _with_constants(declared: Manifest) -> Manifest:
    """Compile-time constants replaced by their values wherever an expression reads them."""
    constants = declared.init.constants
    if not constants:
        return declared
    arrays = {name: array.with_constants(constants) for name, array in declared.init.arrays.items()}
    init = declared.init.model_copy(update={"arrays": arrays})
    constraints = [expressions.substitute(text, constants) for text in declared.constraints]
    return declared.model_copy(update={"init": init, "constraints": constraints})


def read(path: Path) -> Manifest:
    """Read and check one manifest; every mistake is a UserError that names the file and the key."""
    raw = yaml_reading.load(path)
    _refuse_known_traps(raw, path)
    try:
        return _with_constants(Manifest.model_validate(raw))
    except ValidationError as error:
        raise yaml_reading.explain(error, Manifest, path) from None
