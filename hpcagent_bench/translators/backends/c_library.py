"""The helpers and headers of one C or C++ file."""

from __future__ import annotations

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.backends.c_helpers import HELPERS, written
from hpcagent_bench.translators.backends.c_types import Dialect, real_of, unsigned, value_type, wrapping
from hpcagent_bench.translators.backends.naming import Library, Names


class CLibrary(Library):
    """Helpers and headers a translation unit needs."""

    def __init__(self, names: Names, dialect: Dialect) -> None:
        super().__init__(names)
        self.dialect = dialect
        self.headers: set[str] = set()

    def _written(self, base: str, dtype: str, spelled: str) -> str:
        self.headers.update(HELPERS[base].headers)
        values = {**self._values(dtype), "name": spelled}
        if base == "complex_power":
            values["multiply"] = self.helper("complex_multiply", dtype)
        return written(base, values)

    def _values(self, dtype: str) -> dict[str, str]:
        values = {"T": value_type(dtype, self.dialect), "f": "f" if dtype in ("float32", "complex64") else ""}
        if ir.is_integer(dtype):
            values |= {"U": unsigned(dtype), "W": wrapping(dtype)}
            values["beyond"] = "0" if dtype.startswith("u") else "(a < 0 ? -1 : 0)"
        elif ir.is_complex(dtype):
            self.headers.add("complex")
            suffix = self.dialect.suffix[dtype]
            values |= {"R": value_type(real_of(dtype), self.dialect), "make": self.dialect.make[dtype]}
            values |= {"re": self.dialect.real + suffix, "im": self.dialect.imag + suffix}
            values["pow"] = f"{self.dialect.prefix}pow{suffix}"
        values["half"] = "0.5f" if dtype == "float32" else "0.5"
        return values
