"""What agents may know about a kernel: its task, how it is built, and its canonical parallel form."""

from __future__ import annotations

import importlib.metadata
import platform
import shlex
from pathlib import Path

from hpcagent_bench import config, translators
from hpcagent_bench.cluster import wire
from hpcagent_bench.cluster.refusals import Refused
from hpcagent_bench.corpus import datatypes, precision, sizing
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.harness import denominator
from hpcagent_bench.toolchain import abi, flags, fortran_abi, languages

ABI_DOC = (
    "All pointers sorted by name, then scalars and sizes sorted by name, then uint8_t *workspace and int64_t "
    "workspace_size. Memory is the caller's; nothing is returned; outputs are written in place; sizes are "
    "int64. The workspace is NULL and 0 unless workspace_bytes asks for one; it is zeroed before each call."
)
PYTHON_DOC = (
    "A top-level function of this name, called positionally with NumPy arrays and numbers in this order. "
    "Inputs are read-only, outputs are written in place, the return value is ignored."
)
GOAL = (
    "Write a faster {language} implementation of {kernel} that computes what the NumPy reference computes; "
    "it is graded on inputs and sizes that are not shown."
)
SHARED_FOLDER = "/shared"
RUNTIME = ("numpy", "numba")


def signature(kernel: Kernel, language: str, datatype: str) -> str:
    """How an implementation in ``language`` is declared."""
    if language == "python":
        return f"def {kernel.function}({', '.join(kernel.arg_order)}):"
    bound = abi.binding(kernel, datatype)
    if language == "fortran":
        return "\n".join(fortran_abi.head(bound))
    return abi.c_declaration(bound, "cpp" if language == "cpp" else "c")


def task(kernel: Kernel, language: str, settings: config.Judge, sizes: config.Sizes) -> wire.Task:
    """Everything about the task but its hidden inputs and drawn sizes."""
    service = settings.service
    band = precision.band(service.datatype)
    return wire.Task(
        kernel=kernel.name,
        language=language,
        signature=signature(kernel, language, service.datatype),
        symbol=kernel.function if language == "python" else kernel.symbol,
        reference_numpy=kernel.numpy_source.read_text(encoding="utf-8"),
        rtol=max(band.rtol, kernel.manifest.conditioning_rtol or 0.0),
        atol=max(band.atol, kernel.manifest.conditioning_atol or 0.0),
        preset=sizing.rung_name(sizes),
        oracle=service.oracle,
        baseline=denominator.for_kernel(kernel, settings.measurement).name,
        input_mode=service.input_mode,
        abi_doc=PYTHON_DOC if language == "python" else ABI_DOC,
        shared={"dir": SHARED_FOLDER, "libraries": sorted(flags.LINKABLE)},
        goal=GOAL.format(language=language, kernel=kernel.name),
    )


def build_command(language: str, family: str) -> wire.BuildCommand:
    """The exact command that compiles and links a submission; of Python, the versions that run it."""
    if not languages.get(language).compiled:
        versions = {"python": platform.python_version()}
        versions |= {name: importlib.metadata.version(name) for name in RUNTIME}
        return wire.BuildCommand(language=language, argv=[], command="", versions=versions)
    source = Path("kernel" + languages.get(language).extension)
    argv = flags.compile_command(language, source, Path("libkernel.so"), family=family)
    return wire.BuildCommand(language=language, family=family, argv=argv, command=shlex.join(argv))


def parallel_form(kernel: Kernel, language: str, settings: config.Judge) -> wire.ParallelForm:
    """The translator's parallel emission of the reference, and what it proved of each loop."""
    wanted: translators.Language = "numba"
    for known in translators.LANGUAGES:
        if known == language:
            wanted = known
    try:
        source = translators.emit(kernel, wanted, datatypes.parse(settings.service.datatype), parallel=True)
        loops = translators.explain(kernel)
    except translators.Unsupported as error:
        raise Refused(404, f"kernel {kernel.name} has no canonical parallel form: {error}") from None
    return wire.ParallelForm(
        kernel=kernel.name,
        language=language,
        source=source,
        loops=[
            wire.Loop(line=loop.line, index=loop.index, parallel=loop.parallel, reason=loop.reason)
            for loop in loops
        ],
    )
