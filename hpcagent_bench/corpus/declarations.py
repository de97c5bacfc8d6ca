"""The blocks of a manifest: arrays, scalars, initialisation, knobs, baseline, distribution over ranks."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from hpcagent_bench.corpus import datatypes, expressions
from hpcagent_bench.errors import UserError, did_you_mean
from hpcagent_bench.support import distributions

DOMAINS = ("positive", "nonneg", "negative", "nonpos", "any")
INTEGER_DISTRIBUTIONS = ("permutation", "uniform", "offsets")
FLOAT_DISTRIBUTIONS = (*distributions.NAMES, *distributions.STRUCTURAL)
Number = int | float


class Closed(BaseModel):
    """A block that accepts its own keys and nothing else, with the types as written."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def readable(text: str) -> str:
    """``text`` if it is an expression of manifests, else a ValueError saying why."""
    try:
        expressions.axes(text)
    except UserError as error:
        raise ValueError(str(error)) from None
    return text


class ArrayDecl(Closed):
    """One array argument. ``shape`` is a tuple of integer expressions over sizes, as text.

    ``dtype`` pins the element type outside the precision sweep; None follows the run's precision (int64 for
    an ``index_array``). ``domain`` is a sign class, or an interval [lo, hi] whose ends are numbers or
    expressions over sizes; for integers both ends belong to it. ``dist`` says how values are drawn: reals
    ``uniform`` (the default), ``normal``, ``lognormal`` or, for square matrices, a structural distribution;
    integers ``permutation`` of 0 .. n-1 (the default of a vector without domain), ``uniform`` (the default
    otherwise) or ``offsets`` (row pointers: from lo to hi, never falling).
    """

    shape: str
    dtype: str | None = None
    dist: str | None = None
    domain: str | tuple[Number | str, Number | str] | None = None
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
        return readable(value)

    @field_validator("dtype", "dist")
    @classmethod
    def _one_of(cls, value: str | None, info: Any) -> str | None:
        known = [*FLOAT_DISTRIBUTIONS, *(d for d in INTEGER_DISTRIBUTIONS if d not in FLOAT_DISTRIBUTIONS)]
        allowed = datatypes.ARRAY_DTYPES if info.field_name == "dtype" else known
        if value is not None and value not in allowed:
            raise ValueError(f"'{value}' is not known; {did_you_mean(value, allowed)}")
        return value

    @field_validator("domain", mode="before")
    @classmethod
    def _domain(cls, value: Any) -> Any:
        if not isinstance(value, tuple):
            if value is not None and value not in DOMAINS:
                raise ValueError(f"'{value}' is not known; {did_you_mean(str(value), DOMAINS)}")
            return value
        wrong = ValueError(f"{list(value)} is not an interval; write [lo, hi] with lo < hi")
        if len(value) != 2 or any(isinstance(v, bool) or not isinstance(v, (int, float, str)) for v in value):
            raise wrong
        for end in value:
            if isinstance(end, str):
                readable(end)
        if all(not isinstance(end, str) for end in value) and not value[0] < value[1]:
            raise wrong
        return value

    @model_validator(mode="after")
    def _fits_its_type(self) -> ArrayDecl:
        dtype = self.dtype or ("int64" if self.index_array else "float64")
        if self.index_array and not datatypes.is_integer(dtype):
            raise ValueError(f"an index_array holds integers, not {dtype}")
        if dtype == "bool":
            self._check_bool()
        elif datatypes.is_integer(dtype):
            self._check_integer()
        else:
            self._check_real(dtype)
        return self

    def _check_bool(self) -> None:
        if self.dist is not None or self.domain is not None:
            raise ValueError("booleans are fair bits; remove dist and domain")

    def _check_integer(self) -> None:
        if isinstance(self.domain, str) and self.domain != "any":
            raise ValueError(f"domain '{self.domain}' is for reals; integers take [lo, hi]")
        if self.dist is not None and self.dist not in INTEGER_DISTRIBUTIONS:
            raise ValueError(
                f"dist '{self.dist}' is for reals; integers take {_listed(INTEGER_DISTRIBUTIONS)}"
            )
        vector = len(expressions.axes(self.shape)) == 1
        if self.dist in ("permutation", "offsets") and not vector:
            raise ValueError(f"dist '{self.dist}' is for vectors")
        if self.dist == "permutation" and isinstance(self.domain, tuple):
            raise ValueError("a permutation has the domain 0 .. n-1; remove domain")
        if self.dist == "offsets" and not isinstance(self.domain, tuple):
            raise ValueError("dist 'offsets' needs domain: [lo, hi], its first and last value")

    def _check_real(self, dtype: str) -> None:
        if self.dist is not None and self.dist not in FLOAT_DISTRIBUTIONS:
            raise ValueError(f"dist '{self.dist}' is for integers; reals take {_listed(FLOAT_DISTRIBUTIONS)}")
        if self.dist not in distributions.STRUCTURAL:
            return
        if self.domain is not None:
            raise ValueError(f"dist '{self.dist}' fixes the values itself; remove domain")
        if not datatypes.is_float(dtype):
            raise ValueError(f"dist '{self.dist}' is for reals, not {dtype}")
        axes = expressions.axes(self.shape)
        if len(axes) < 2 or axes[-1] != axes[-2]:
            raise ValueError(
                f"dist '{self.dist}' needs square matrices; the last two axes of {self.shape} differ"
            )

    @property
    def integral(self) -> bool:
        """Whether the elements are integers or booleans, whatever the run's precision."""
        return self.index_array or self.dtype == "bool" or datatypes.is_integer(self.dtype or "float64")

    def with_constants(self, constants: dict[str, int]) -> ArrayDecl:
        """The declaration with compile-time constants replaced by their values."""
        domain = self.domain
        if isinstance(domain, tuple):
            lo, hi = (expressions.substitute(e, constants) if isinstance(e, str) else e for e in domain)
            domain = (lo, hi)
        shape = expressions.substitute(self.shape, constants)
        return self.model_copy(update={"shape": shape, "domain": domain})


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names)


class ScalarDecl(Closed):
    """A scalar argument whose type does not follow from its value."""

    value: Number
    dtype: Literal["int64", "float64", "float32"]


class Workspace(Closed):
    """Scratch memory a kernel always gets: bytes, or an expression over sizes."""

    bytes: int | str

    @field_validator("bytes")
    @classmethod
    def _usable(cls, value: int | str) -> int | str:
        if isinstance(value, int) and value < 0:
            raise ValueError(f"{value} is negative")
        return readable(value) if isinstance(value, str) else value


class Init(Closed):
    """How the arguments start.

    ``func_name`` names the function of ``<kernel>.py`` that makes the arrays of ``output_args`` (default:
    all, in the order written) from ``input_args``. ``constants`` are sizes known when compiling: expressions
    may use them, no call passes them. ``workspace.bytes`` is the least scratch memory a call gets.
    """

    arrays: dict[str, ArrayDecl]
    declared_scalars: dict[str, int | float | ScalarDecl] = Field(default_factory=dict, alias="scalars")
    func_name: str | None = None
    input_args: list[str] = Field(default_factory=list)
    output_args: list[str] | None = None
    constants: dict[str, int] = Field(default_factory=dict)
    workspace: Workspace | None = None

    @model_validator(mode="after")
    def _custom_is_whole(self) -> Init:
        if self.func_name is None and (self.input_args or self.output_args is not None):
            raise ValueError("input_args and output_args belong to func_name, which is missing")
        for name in self.output_args or ():
            if name not in self.arrays:
                raise ValueError(f"output_args names '{name}'; {did_you_mean(name, self.arrays)}")
        return self

    @property
    def scalars(self) -> dict[str, Number]:
        """Scalar argument to value."""
        return {n: s.value if isinstance(s, ScalarDecl) else s for n, s in self.declared_scalars.items()}

    @property
    def scalar_dtypes(self) -> dict[str, str]:
        """Scalar argument to type, where it is declared."""
        return {n: s.dtype for n, s in self.declared_scalars.items() if isinstance(s, ScalarDecl)}

    @property
    def made_by_function(self) -> tuple[str, ...]:
        """Arrays the custom function returns, in its order."""
        if self.func_name is None:
            return ()
        return tuple(self.arrays if self.output_args is None else self.output_args)


class Knob(Closed):
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


class Fuzz(Closed):
    """Which value distributions the kernel can take."""

    data_distributions: list[Literal["uniform", "normal", "lognormal"]] = Field(
        default=["uniform", "normal", "lognormal"], min_length=1
    )


class Baseline(Closed):
    """A denominator of the kernel's own: source text beside the manifest."""

    kind: Literal["vendored"]
    source: str
    language: Literal["c", "cpp", "fortran"]
    mode: Literal["multi_core", "single_core"]
    compilers: list[str] | None = None


class Decomposition(Closed):
    """Which sizes are split over ranks, how far neighbours are read, and the degree of the work in them."""

    axis: list[str] = Field(min_length=1)
    halo: int | None = Field(default=None, ge=0)
    work_exponent: int | None = Field(default=None, ge=1)


class Mpi(Closed):
    """How the kernel may be distributed over ranks; without it the kernel runs on one node only."""

    decomposition: Decomposition
    arrays: dict[str, list[str]] = Field(default_factory=dict)
    allowed_schemes: list[str] = Field(default_factory=list)
    distributable_axes: list[str] = Field(default_factory=list)
    symbol_axes: dict[str, tuple[str, int]] = Field(default_factory=dict)
    location: dict[str, Literal["host", "device"]] = Field(default_factory=dict)

    @field_validator("symbol_axes", mode="before")
    @classmethod
    def _pairs(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: tuple(item) if isinstance(item, list) else item for key, item in value.items()}
        return value


class TrackNote(Closed):
    """Provenance under the track's own key."""

    source: str
