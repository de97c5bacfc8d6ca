"""The builds of a grade, made side by side before anything is timed, and their processes (scoring.md 1.2)."""

from __future__ import annotations

import functools
import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hpcagent_bench import config
from hpcagent_bench.harness import sandbox
from hpcagent_bench.harness.building import python_source, shared_object
from hpcagent_bench.harness.native_call import Child
from hpcagent_bench.harness.runner import build as runner_build
from hpcagent_bench.harness.sandbox import Build
from hpcagent_bench.harness.submission import Grading, Submission
from hpcagent_bench.toolchain import flags, languages

LIBRARY_MAX = sandbox.COMPILER_FILE
"""Bytes of a library somebody else built: what a compiler may write here."""

LATER_NICE = 10
REBUILD_TIME, SANITIZED_TIME = 4.0, 2.0
"""The first build goes ahead of the others, so that its time limit means the same alone and beside them; the
others get a multiple of it, since on few cores they come after it."""

Job = Callable[[threading.Event], Build]


def start(grading: Grading) -> None:
    """Make the builds this grade needs and wait for all of them; a failed first one ends the others.

    Sets ``grading.build``, for a final grade also ``rebuilt`` (a fresh build from the text, in another
    folder) and ``sanitized`` (None where it does not apply, see ``sanitizer_obstacle``).
    """
    jobs = _jobs(grading)
    cancelled = threading.Event()
    with ThreadPoolExecutor(len(jobs), "build") as pool:
        made = {name: pool.submit(job, cancelled) for name, job in jobs.items()}
        try:
            grading.build = made["submission"].result()
        finally:
            if grading.build is None or not grading.build.ok:
                cancelled.set()
    grading.rebuilt = made["rebuilt"].result() if "rebuilt" in made else None
    grading.sanitized = made["sanitized"].result() if "sanitized" in made else None


def _jobs(grading: Grading) -> dict[str, Job]:
    submission, settings = grading.submission, grading.context.settings
    make = functools.partial(_make, submission, settings)
    jobs: dict[str, Job] = {"submission": functools.partial(make, grading.folder / "build")}
    if grading.settings.protocol.role != "final":
        return jobs
    jobs["rebuilt"] = _later(functools.partial(make, grading.folder / "rebuild", slack=REBUILD_TIME))
    if not sanitizer_obstacle(submission):
        folder = grading.folder / "sanitized"
        sanitized = functools.partial(make, folder, purpose="sanitized", slack=SANITIZED_TIME)
        jobs["sanitized"] = _later(sanitized)
    return jobs


def _later(job: Job) -> Job:
    """``job`` with a low priority: a thread has its own on Linux, and what it starts inherits it."""

    def run(cancelled: threading.Event) -> Build:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LATER_NICE)
        return job(cancelled)

    return run


def sanitizer_obstacle(submission: Submission) -> str:
    """Why sanitizers do not apply to a submission, or an empty string."""
    if submission.library is not None:
        return "a library is not built here"
    if not languages.get(submission.language).compiled:
        return f"{submission.language} is not compiled"
    if not runner_build.sanitizer_available(submission.family):
        return f"the {submission.family} sanitizers do not work on this host"
    return ""


def _make(
    submission: Submission,
    settings: config.Judge,
    folder: Path,
    cancelled: threading.Event,
    *,
    purpose: flags.Purpose = "submission",
    slack: float = 1.0,
) -> Build:
    """One build of a submission in a folder of its own."""
    kernel, timeout_s = submission.kernel, slack * settings.timeouts.compile_s
    if submission.library is not None:
        return copy_library(submission.library, kernel.symbol, folder)
    sealed = settings.grading.seal
    if not languages.get(submission.language).compiled:
        return python_source.check(
            submission.source, kernel.symbol, kernel.function, folder, timeout_s=timeout_s, sealed=sealed
        )
    kept, _ = flags.split_build_list(list(submission.build))
    return sandbox.build(
        submission.source,
        submission.language,
        kernel.symbol,
        folder,
        extra=kept,
        timeout_s=timeout_s,
        family=submission.family,
        sealed=sealed,
        purpose=purpose,
        cancelled=cancelled,
    )


def copy_library(library: Path, symbol: str, folder: Path) -> Build:
    """A private copy of a library built elsewhere, checked to be one that exports ``symbol``.

    The copy has a name of the judge's; links are not followed, and later changes of the original do not
    matter.
    """
    started = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / Path(sandbox.source_name(symbol, "c")).with_suffix(".so").name
    try:
        _copy(library, target)
        data = target.read_bytes()
        problem = shared_object.check(data, symbol)
    except OSError as error:
        data, problem = b"", f"the library cannot be read: {error.strerror}"
    return Build(
        ok=not problem,
        library=None if problem else target,
        log=f"{target.name}: error: {problem}" if problem else "",
        commands=(),
        digest="" if problem else sandbox.digest(data),
        seconds=time.perf_counter() - started,
        timed_out=False,
    )


def _copy(library: Path, target: Path) -> None:
    descriptor = os.open(library, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as given:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "it is no regular file")
        if status.st_size > LIBRARY_MAX:
            raise OSError(0, f"it has more than {LIBRARY_MAX >> 20} MiB")
        target.write_bytes(given.read(LIBRARY_MAX))  # bounded, since it may grow meanwhile


def start_candidate(
    grading: Grading, *, cores: Sequence[int] | None = None, build: Build | None = None
) -> Child:
    """A sealed process for a build of the submission (default: the first), by default on the timed cores.

    It returns while the process is still starting.
    """
    context, kernel = grading.context, grading.submission.kernel
    made = build or grading.build
    assert made is not None
    assert made.library is not None
    chosen, settings = context.cores if cores is None else cores, context.settings
    if grading.submission.library is None and not languages.get(grading.submission.language).compiled:
        return Child.python(
            made.library,
            kernel.function,
            kernel.arg_order,
            context.binding(kernel),
            cores=chosen,
            memory_bytes=_memory_bytes(grading),
            stack_mb=settings.limits.thread_stack_mb,
            sealed=settings.grading.seal,
            pool=context.pool,
        )
    return _native(grading, made.library, chosen)


def start_sanitized(grading: Grading) -> Child:
    """A process for the sanitized build, on one core."""
    assert grading.sanitized is not None
    assert grading.sanitized.library is not None
    return _native(grading, grading.sanitized.library, grading.context.cores[:1], sanitized=True)


def _native(grading: Grading, library: Path, cores: Sequence[int], *, sanitized: bool = False) -> Child:
    context, settings = grading.context, grading.context.settings
    return Child.native(
        library,
        context.binding(grading.submission.kernel),
        cores=cores,
        memory_bytes=_memory_bytes(grading),
        stack_mb=settings.limits.thread_stack_mb,
        sealed=settings.grading.seal,
        pool=context.pool,
        sanitized=sanitized,
    )


def _memory_bytes(grading: Grading) -> int:
    return int(grading.context.settings.limits.kernel_memory_gb * 2**30)
