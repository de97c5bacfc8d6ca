"""The functions and interfaces one emitted subroutine contains."""

from __future__ import annotations

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.backends.fortran_helpers import format_values, interface, written
from hpcagent_bench.translators.backends.fortran_types import STORAGE, kind
from hpcagent_bench.translators.backends.naming import Library, Names, bits, widest


class FortranLibrary(Library):
    """Contained functions, and interfaces to the C library."""

    def __init__(self, names: Names) -> None:
        super().__init__(names)
        self.interfaces: list[str] = []

    def _written(self, base: str, dtype: str, spelled: str) -> str:
        return written(base, {**_values(dtype), "name": spelled})

    def libm(self, function: str, dtype: str, count: int) -> str:
        """The name of a function of the C library."""

        def make(spelled: str) -> None:
            self.interfaces += interface(function, spelled, kind(dtype), count)

        return self._once(widest(function, dtype), dtype, make)


def _values(dtype: str) -> dict[str, str]:
    if dtype in STORAGE:
        return format_values(dtype)
    if ir.is_integer(dtype):
        signed = not dtype.startswith("u")
        own = kind(dtype)
        fill = f"merge(-1_{own}, 0_{own}, a < 0)" if signed else "0"
        return {"I": own, "bits": str(bits(dtype)), "fill": fill, "shift": "shifta" if signed else "shiftr"}
    return {"Z" if ir.is_complex(dtype) else "R": kind(dtype)}
