"""The languages of submissions: file extension, compilers of each family, and language standard."""

from __future__ import annotations

from dataclasses import dataclass

from hpcagent_bench.errors import UserError, did_you_mean


@dataclass(frozen=True)
class Language:
    """One language. ``compilers`` maps a family to its driver, ``standards`` to its standard flag.

    One without compilers is run by the interpreter, as it was handed in.
    """

    name: str
    extension: str
    compilers: dict[str, str]
    standards: dict[str, str]

    @property
    def compiled(self) -> bool:
        """Whether a compiler makes a shared library of it."""
        return bool(self.compilers)

    def compiler(self, family: str) -> str:
        """The driver of ``family``; an unknown family is a UserError."""
        if not self.compiled:
            raise UserError(f"{self.name} is not compiled", "")
        if family not in self.compilers:
            raise UserError(
                f"compiler family '{family}' does not build {self.name}", did_you_mean(family, self.compilers)
            )
        return self.compilers[family]


# The GNU dialects of the standards: POSIX calls stay visible, and gcc keeps its default of contracting a
# multiplication and an addition into one FMA, which the strict C dialects switch off.
REGISTRY: dict[str, Language] = {
    "c": Language("c", ".c", {"gcc": "gcc", "llvm": "clang"}, {"gcc": "-std=gnu2x", "llvm": "-std=gnu2x"}),
    "cpp": Language(
        "cpp", ".cpp", {"gcc": "g++", "llvm": "clang++"}, {"gcc": "-std=gnu++23", "llvm": "-std=gnu++2b"}
    ),
    "fortran": Language("fortran", ".f90", {"gcc": "gfortran"}, {"gcc": "-std=f2018"}),
    "python": Language("python", ".py", {}, {}),
}

COMPILED: tuple[str, ...] = tuple(name for name, language in REGISTRY.items() if language.compiled)


def get(name: str) -> Language:
    """The language called ``name``; unknown is a UserError naming the nearest."""
    if name not in REGISTRY:
        raise UserError(f"language '{name}' is not supported", did_you_mean(name, REGISTRY))
    return REGISTRY[name]
