"""The manifest of a kernel (``<kernel>.yaml``): a closed set of keys, refused one line at a time."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from hpcagent_bench.corpus import expressions
from hpcagent_bench.errors import UserError, did_you_mean

PRESETS = ("S", "M", "L", "XL")
DOMAINS = ("positive", "nonneg", "negative", "nonpos", "any")
ARRAY_DTYPES = (
    *("float64", "float32", "float16", "complex64", "complex128", "bool"),
    *("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"),
)
DISTRIBUTIONS = ("uniform", "normal", "lognormal")
SELECTS = ("branch", "tile", "iteration", "tolerance", "seed", "physical")
NOT_YET = (
    "baseline",
    "sparse_layouts",
    "configurations",
    "distributions",
    "variants",
    "mpi",
    "min_precision",
)
"""Keys of the format that would change what is measured and that this version does not act on: refused."""


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class ArrayDecl(_Closed):
    """One array argument. ``shape`` is a tuple of integer expressions over sizes, as text.

    ``dtype`` pins the element type outside the precision sweep; None follows the run's precision (int64 for
    an ``index_array``). ``domain`` is a sign class or an interval [lo, hi]; ``dist`` a value distribution.
    """

    shape: str
    dtype: str | None = None
    dist: str | None = None
    domain: str | tuple[float, float] | None = None
    index_array: bool = False

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"shape": value}
        if isinstance(value, dict) and isinstance(value.get("domain"), list):
            return {**value, "domain": tuple(value["domain"])}
        return value

    @field_validator("shape")
    @classmethod
    def _readable(cls, value: str) -> str:
        try:
            expressions.axes(value)
        except UserError as error:
            raise ValueError(str(error)) from None
        return value

    @field_validator("dtype", "dist")
    @classmethod
    def _one_of(cls, value: str | None, info: Any) -> str | None:
        allowed = ARRAY_DTYPES if info.field_name == "dtype" else DISTRIBUTIONS
        if value is not None and value not in allowed:
            raise ValueError(f"'{value}' is not known; {did_you_mean(value, allowed)}")
        return value

    @field_validator("domain", mode="before")
    @classmethod
    def _domain(cls, value: Any) -> Any:
        if isinstance(value, tuple):
            numbers = [float(v) for v in value if isinstance(v, (int, float)) and not isinstance(v, bool)]
            if len(numbers) != 2 or len(value) != 2 or not numbers[0] < numbers[1]:
                raise ValueError(f"{list(value)} is not an interval; write [lo, hi] with lo < hi")
            return (numbers[0], numbers[1])
        if value is not None and value not in DOMAINS:
            raise ValueError(f"'{value}' is not known; {did_you_mean(str(value), DOMAINS)}")
        return value


class Init(_Closed):
    """How the arguments start: declared arrays and scalars."""

    arrays: dict[str, ArrayDecl]
    scalars: dict[str, int | float] = Field(default_factory=dict)


class Knob(_Closed):
    """A configuration knob: its values and what they select."""

    domain: list[int | float] | None = None
    value: int | float | None = None
    selects: Literal["branch", "tile", "iteration", "tolerance", "seed", "physical"] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Knob:
        if (self.domain is None) == (self.value is None):
            raise ValueError("give either domain: [...] or value: v")
        if self.domain is not None and not self.domain:
            raise ValueError("domain is empty")
        return self

    @property
    def values(self) -> tuple[int | float, ...]:
        return tuple(self.domain) if self.domain is not None else (self.value or 0,)


class TrackNote(_Closed):
    """Provenance under the track's own key."""

    source: str


class Manifest(_Closed):
    """Everything a kernel's YAML may say; an unknown key is an error."""

    name: str
    short_name: str | None = Field(default=None, alias="short-name", max_length=14)
    level: Literal[1, 2, 3]
    parameters: dict[str, dict[str, int]] | None = None
    dimensions: dict[str, dict[str, int]] | None = None
    config: dict[str, Knob] | list[dict[str, int | float]] = Field(default_factory=dict)
    constraints: list[str] = Field(default_factory=list)
    func_name: str | None = None
    init: Init
    input_args: list[str] | None = None
    array_args: list[str] | None = None
    output_args: list[str] = Field(min_length=1)
    languages: list[str] | None = None
    precisions: list[Literal["fp64", "fp32"]] = ["fp64", "fp32"]
    timeout_s: int | float | None = Field(default=None, gt=0)
    conditioning_rtol: float | None = Field(default=None, gt=0)
    conditioning_atol: float | None = Field(default=None, gt=0)
    fuzz: dict[str, list[str]] = Field(default_factory=dict)
    taxonomy: dict[str, Any] = Field(default_factory=dict)
    experiment_tags: list[str] = Field(default_factory=list)
    category: str | None = None
    optimization: str | None = None
    puzzle: str | None = None
    loop_level_reasoning: TrackNote | None = None
    scientific_computing: TrackNote | None = None
    machine_learning: TrackNote | None = None

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
        sizes = self.sizes
        if sorted(sizes) != sorted(PRESETS):
            raise ValueError(f"presets are {', '.join(sizes)}; exactly S, M, L and XL are needed")
        symbols = {tuple(sorted(values)) for values in sizes.values()}
        if len(symbols) != 1:
            raise ValueError("every preset must give the same symbols")
        for preset, values in sizes.items():
            for symbol, value in values.items():
                if value < 1:
                    raise ValueError(f"{preset}.{symbol} is {value}; sizes start at 1")
        unknown = [name for name in self.output_args if name not in self.init.arrays]
        if unknown:
            raise ValueError(f"output_args names '{unknown[0]}', which init.arrays does not declare")
        return self

    @property
    def sizes(self) -> dict[str, dict[str, int]]:
        """Preset to symbol to value, under whichever key it was written."""
        return self.parameters or self.dimensions or {}


def _refuse_known_traps(raw: dict[str, Any], path: Path) -> None:
    for key in ("rtol", "atol"):
        if key in raw:
            raise UserError(
                f"{path}: key '{key}' is refused: tolerances follow from the precision alone",
                f"an ill-conditioned kernel sets conditioning_{key}",
            )
    for key in NOT_YET:
        if key in raw:
            raise UserError(f"{path}: key '{key}' is not supported by this version", "remove it")
    parameters = raw.get("parameters")
    if isinstance(parameters, dict) and "fuzzed" in parameters:
        raise UserError(
            f"{path}: preset 'fuzzed' is not supported by this version", "sizes are drawn from XL"
        )
    init = raw.get("init")
    for key in ("func_name", "input_args", "output_args", "constants", "workspace"):
        if isinstance(init, dict) and key in init:
            raise UserError(f"{path}: key 'init.{key}' is not supported by this version", "remove it")


_FIELDS_BY_PLACE: dict[str, type[BaseModel]] = {"init": Init, "arrays": ArrayDecl, "config": Knob}


def _explain(error: ValidationError, path: Path) -> UserError:
    """The first problem as one line: file, key, value, and what is allowed."""
    first = error.errors()[0]
    place = [
        str(part) for part in first["loc"] if not re.search(r"[\[\]()]|^(str|int|float|Knob)$", str(part))
    ]
    key = ".".join(place) or "manifest"
    if first["type"] == "extra_forbidden":
        parents = [part for part in place[:-1] if part in _FIELDS_BY_PLACE]
        model = _FIELDS_BY_PLACE[parents[-1]] if parents else Manifest
        known = [field.alias or name for name, field in model.model_fields.items()]
        return UserError(f"{path}: unknown key '{key}'", did_you_mean(place[-1], known))
    if first["type"] == "missing":
        return UserError(f"{path}: key '{key}' is missing")
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error" or isinstance(first["input"], (dict, list)):
        return UserError(f"{path}: {key}: {message}")
    return UserError(f"{path}: {key} = {first['input']!r}: {message}")


def read(path: Path) -> Manifest:
    """Read and check one manifest; every mistake is a UserError that names the file and the key."""
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read", error.strerror or str(error)) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise UserError(f"{path}{line}: not valid YAML", str(getattr(error, "problem", error))) from None
    if not isinstance(raw, dict):
        raise UserError(f"{path}: a manifest is a mapping of keys", "see any kernel's .yaml")
    _refuse_known_traps(raw, path)
    try:
        return Manifest.model_validate(raw)
    except ValidationError as error:
        raise _explain(error, path) from None
