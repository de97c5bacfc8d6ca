"""The environment of a grading child: threads of its cores and no more, asleep when idle."""

from __future__ import annotations

from collections.abc import Sequence

from hpcagent_bench import seal


def thread_environment(cores: Sequence[int], stack_mb: int) -> dict[str, str]:
    """One thread for each granted core in every runtime that reads its number from the environment.

    OpenMP threads are pinned one to a core. Runtimes differ in what a thread does after a parallel region;
    here all put it to sleep at once, since a spinning thread disturbs the other side's call.
    """
    count = str(len(cores))
    return {
        "OMP_NUM_THREADS": count,
        "OMP_PROC_BIND": "close",
        "OMP_PLACES": ",".join(f"{{{core}}}" for core in cores),
        "OMP_WAIT_POLICY": "passive",
        "OMP_DYNAMIC": "false",
        "OMP_STACKSIZE": f"{stack_mb}M",
        "GOMP_SPINCOUNT": "0",
        "KMP_BLOCKTIME": "0",
        "MKL_NUM_THREADS": count,
        "MKL_DYNAMIC": "FALSE",
        "BLIS_NUM_THREADS": count,
        "OPENBLAS_NUM_THREADS": count,
        "OPENBLAS_THREAD_TIMEOUT": "4",  # 2^4 turns of its waiting loop, the least it takes
        "LC_ALL": "C.UTF-8",
        "HOME": "/tmp",
        "PATH": "/usr/bin:/bin",
    }


def numba_threads(cores: Sequence[int]) -> dict[str, str]:
    """numba on OpenMP's threads, and a Python that neither reads nor writes beside its modules."""
    return {
        "NUMBA_NUM_THREADS": str(len(cores)),
        "NUMBA_THREADING_LAYER": "omp",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONSAFEPATH": "1",
    }


def library_path() -> dict[str, str]:
    """Where run-time libraries of a compiler outside the system folders lie."""
    folders = [f"{folder}/{lib}" for folder in seal.toolchain_folders() for lib in ("lib64", "lib")]
    return {"LD_LIBRARY_PATH": ":".join(folders)} if folders else {}


def sanitizer_options(family: str) -> dict[str, str]:
    """Reports to standard error, at once. Only gcc's name source lines without starting a program for it."""
    common = f"color=never:symbolize={int(family == 'gcc')}:print_stacktrace=0"
    address = (
        "detect_leaks=0:exitcode=86:allocator_may_return_null=1:detect_odr_violation=0:handle_abort=0:"
        "print_legend=0:quarantine_size_mb=16:check_initialization_order=0"
    )
    return {"ASAN_OPTIONS": f"{common}:{address}", "UBSAN_OPTIONS": f"{common}:halt_on_error=0"}
