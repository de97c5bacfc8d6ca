"""The flag matrix: every compiler flag of the project is named here and nowhere else.

Submissions and references get the same flags, so that neither is built better than the other. Fast-math is
never on: value-changing optimisation is the submission's to write and the tolerance's to judge.
"""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from hpcagent_bench.toolchain import languages

Purpose = Literal["submission", "reference", "runner", "sanitized"]

_OPTIMISE = ("-O3", "-march=native")
_SEMANTICS = ("-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fstrict-aliasing")
_OPENMP = ("-fopenmp",)
_WARN = ("-Wall", "-Wextra")
_SHARED = ("-fPIC", "-shared")
_COMPLETE = ("-Wl,-z,defs",)  # a function that nothing defines fails the build, not the first call
_SANITIZED = (
    *("-O1", "-g1", "-march=native", "-fno-omit-frame-pointer"),
    *("-fsanitize=address,undefined", "-fsanitize-recover=undefined", "-fno-sanitize=vptr"),
)
_NULL_ARGUMENTS = ("-fno-sanitize=null",)  # Fortran knows none; a call without workspace hands one
_RUNNER = ("-ffp-contract=off",)  # what the judge computes itself is the same on every machine
_LIBRARIES = ("-lm",)

REBUILDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "gcc -O1": ("gcc", ("-O1",)),
    "gcc -Os": ("gcc", ("-Os",)),
    "gcc uncontracted": ("gcc", ("-ffp-contract=off",)),
    "gcc reassociated": ("gcc", ("-fassociative-math",)),
    "clang": ("llvm", ("-fno-openmp",)),
}
"""Other honest builds of a sequential reference, by compiler family and extra flags: what the corpus gate
expects every tolerance to allow. -fassociative-math sums by vector lanes, as a blocked reduction does; clang
gets no OpenMP, whose library it may lack and which sequential code does not use."""

QUICK = ("-O1",)
"""Added where a build's speed matters more than its result's."""

LINKABLE = frozenset(
    {"m", "mvec", "pthread", "rt", "dl", "atomic", "gomp", "stdc++", "gfortran", "quadmath"}
    | {"blas", "lapack", "openblas", "tbb", "mimalloc"}
)
"""Libraries a submission may name with -l."""

ALWAYS_REFUSED = re.compile(r"-ffast-math|-Ofast|-std=.*", re.DOTALL)
"""What a request must not even ask for: it would change what every build means."""

OPT_REPORT: dict[str, tuple[str, ...]] = {
    "gcc": ("-fopt-info-optimized-missed",),
    "llvm": ("-Rpass=.*", "-Rpass-missed=(loop|slp|inline|licm|unroll).*"),
}
"""By compiler family: have it say what it optimised and what it could not, among its diagnostics."""

DEBUG_LINES = ("-g", "-fno-omit-frame-pointer")
"""For a profiler: which line an instruction comes from. Changes no instruction's result."""

_KEPT = re.compile(r"-I.+|-L.+|-D[A-Za-z_][A-Za-z0-9_]*(\([^)]*\))?(=.*)?", re.DOTALL)
_LINK = re.compile(r"-l([A-Za-z0-9_+.-]+)")


def compile_command(
    language: str,
    source: Path,
    output: Path,
    *,
    family: str = "gcc",
    extra: Sequence[str] = (),
    purpose: Purpose = "submission",
    shared: bool = True,
) -> list[str]:
    """The one command that compiles ``source`` and links it into ``output``.

    A ``sanitized`` build reports memory errors and undefined behaviour; its run-time library comes from the
    program that loads it. ``shared`` makes a shared library, else a program. ``extra`` is what a submission's
    build list may contribute (see split_build_list): include paths and macros go before the source, libraries
    after it.
    """
    entry = languages.get(language)
    before = [item for item in extra if not item.startswith(("-l", "-L"))]
    after = [item for item in extra if item.startswith(("-l", "-L"))]
    complete = shared and purpose in ("submission", "reference")
    return [
        entry.compiler(family),
        entry.standards[family],
        *(_SANITIZED if purpose == "sanitized" else _OPTIMISE),
        *(_NULL_ARGUMENTS if purpose == "sanitized" and language == "fortran" else ()),
        *(("-fno-openmp",) if without_openmp(language, family) else _OPENMP),
        *(_RUNNER if purpose == "runner" else _SEMANTICS),
        *_WARN,
        *(_SHARED if shared else ()),
        *(_COMPLETE if complete else ()),
        *before,
        str(source),
        "-o",
        str(output),
        *after,
        *_LIBRARIES,
    ]


def autopar(threads: int) -> tuple[str, ...]:
    """Have gcc run the loops it can prove independent on ``threads`` threads (reference kind c-autopar)."""
    return (f"-ftree-parallelize-loops={threads}",)


def without_openmp(language: str, family: str) -> bool:
    """Whether a compiled source is built without OpenMP: by a clang whose library this host lacks."""
    entry = languages.get(language)
    return entry.compiled and family != "gcc" and not has_openmp(entry.compiler(family))


@functools.lru_cache(maxsize=8)
def has_openmp(compiler: str) -> bool:
    """Whether ``compiler`` finds OpenMP's header and library; False as well when it cannot be run."""
    text = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"
    with tempfile.TemporaryDirectory(prefix="openmp-") as folder:
        source = Path(folder) / "probe.c"
        source.write_text(text)
        argv = [compiler, *_OPENMP, "-x", "c", str(source), "-o", f"{folder}/probe"]
        try:
            return subprocess.run(argv, capture_output=True, timeout=60, check=False).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False


def split_build_list(items: Sequence[str]) -> tuple[list[str], list[str]]:
    """A submission's build list as (kept, refused).

    Kept are -I, -D and -L with their value in the same item, and -l of a library in ``LINKABLE``.
    """
    kept: list[str] = []
    refused: list[str] = []
    for item in items:
        link = _LINK.fullmatch(item)
        allowed = link.group(1) in LINKABLE if link else _KEPT.fullmatch(item) is not None
        (kept if allowed else refused).append(item)
    return kept, refused
