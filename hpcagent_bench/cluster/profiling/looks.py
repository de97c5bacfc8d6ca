"""One look at a delivery: the tool asked for, the build it needs, and what it saw."""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hpcagent_bench.cluster import wire
from hpcagent_bench.cluster.profiling import papi, perf
from hpcagent_bench.cluster.profiling.launching import Limits
from hpcagent_bench.cluster.profiling.subject import Subject, public_subject
from hpcagent_bench.cluster.refusals import Refused
from hpcagent_bench.cluster.requests import Request
from hpcagent_bench.harness import sandbox
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.toolchain import flags, languages

GPU_TOOLS = ("nsys", "rocprofv3", "ncu", "rocprof-compute")
WATCHED_S = 0.3
"""How long a sampled kernel is called again and again, at least."""


@dataclass(frozen=True)
class Look:
    """What was asked for: the tool, its counters, and a run for each thread count."""

    tool: str
    counter_group: str
    threads: tuple[int, ...]


def asked(body: wire.ProfileBody, request: Request, context: GradingContext) -> Look:
    """Check what was asked; 400 for what is wrong, 503 with a cause for what this host cannot do."""
    if body.tool not in wire.TOOLS:
        raise Refused(400, f"tool is {body.tool[:80]!r}; one of {', '.join(wire.TOOLS)}")
    if body.counter_group not in wire.COUNTER_GROUPS:
        raise Refused(
            400, f"counter_group is {body.counter_group[:80]!r}; one of {', '.join(wire.COUNTER_GROUPS)}"
        )
    threads = tuple(body.threads or (len(context.cores),))
    if max(threads) > len(context.cores):
        raise Refused(400, f"threads is {max(threads)}; this judge grades on {len(context.cores)} core(s)")
    if body.tool in GPU_TOOLS:
        raise Refused(503, f"{body.tool} looks at GPUs, and this judge grades on the host", cause="no_gpu")
    submission = request.submission
    if body.tool != "none" and not languages.get(submission.language).compiled:
        raise Refused(503, f"{body.tool} needs compiled code", cause="not_native")
    if body.tool == "opt-report" and submission.library is not None:
        raise Refused(400, "opt-report needs a source: a library is compiled already")
    missing = _missing(body.tool)
    if missing is not None:
        raise Refused(503, f"{body.tool} cannot be used on this host: {missing.words}", cause=missing.cause)
    return Look(body.tool, body.counter_group, threads)


def _missing(tool: str) -> perf.Missing | None:
    if tool == "linuxperf":
        return perf.missing()
    return papi.missing() if tool == "papi" else None


def run(context: GradingContext, look: Look, request: Request) -> wire.ProfileAnswer:
    """Build the delivery, run it as the tool needs, and tell what was seen."""
    context.progress("profiling", kernel=request.submission.kernel.name, tool=look.tool)
    submission = request.submission
    answer = wire.ProfileAnswer(
        kernel=submission.kernel.name, language=submission.language, tool=look.tool, build_ok=True
    )
    with tempfile.TemporaryDirectory(prefix="hpcagent-profile-", dir=context.work) as folder:
        extra = {"opt-report": flags.OPT_REPORT[submission.family], "linuxperf": flags.DEBUG_LINES}
        delivery = _delivered(context, request, Path(folder), extra.get(look.tool, ()), answer)
        if delivery is None or look.tool == "opt-report":
            return answer
        with public_subject(context, submission, delivery) as subject:
            limits = _limits(context)
            if look.tool == "none":
                _show(subject, limits, answer)
            elif look.tool == "papi":
                answer.runs = [papi.watch(subject, _on(limits, n), look.counter_group) for n in look.threads]
            else:
                answer.runs = [_sampled(subject, _on(limits, n), look, Path(folder)) for n in look.threads]
    return answer


def _delivered(
    context: GradingContext, request: Request, folder: Path, extra: Sequence[str], answer: wire.ProfileAnswer
) -> Path | None:
    """The library or module to run, None when it does not build; the answer gets the log or the report."""
    submission = request.submission
    if submission.library is not None:
        return submission.library
    if not languages.get(submission.language).compiled:
        module = folder / f"{submission.kernel.name}.py"
        module.write_bytes(submission.source.encode(errors="replace"))
        try:
            ast.parse(submission.source)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            answer.build_ok, answer.build_log = False, f"{module.name}: {error}"
            return None
        return module
    kept, _ = flags.split_build_list(list(submission.build))
    built = sandbox.build(
        submission.source,
        submission.language,
        submission.kernel.symbol,
        folder / "build",
        extra=[*kept, *extra],
        timeout_s=context.settings.timeouts.compile_s,
        family=submission.family,
        sealed=context.settings.grading.seal,
    )
    answer.build_ok = built.ok
    if answer.tool == "opt-report" and built.ok:
        answer.report = built.log
    elif built.log:
        answer.build_log = built.log
    return built.library


def _limits(context: GradingContext) -> Limits:
    settings = context.settings
    return Limits(
        context.cores,
        int(settings.limits.kernel_memory_gb * 2**30),
        settings.limits.thread_stack_mb,
        settings.service.profile_timeout_s,
        settings.grading.seal,
    )


def _on(limits: Limits, threads: int) -> Limits:
    """The same limits on the first ``threads`` cores."""
    return Limits(
        limits.cores[:threads], limits.memory_bytes, limits.stack_mb, limits.timeout_s, limits.sealed
    )


def _show(subject: Subject, limits: Limits, answer: wire.ProfileAnswer) -> None:
    """One plain call: what the delivery printed, and how it ended."""
    ran = subject.run(limits, calls=1)
    answer.stdout, answer.stderr = ran.stdout, ran.stderr
    answer.exit_code, answer.elapsed_s, answer.timed_out = ran.status, ran.elapsed_s, ran.timed_out


def _sampled(subject: Subject, limits: Limits, look: Look, folder: Path) -> wire.Profiled:
    """Where time goes, by samples, and the counters of the group."""
    calls_ns = int(WATCHED_S * 1e9)
    data = folder / "samples"
    ran = subject.run(limits, min_ns=calls_ns, before=perf.recording(data))
    if ran.timed_out or ran.status != 0:
        raise Refused(503, f"perf record: {_end_of(ran.stderr, ran.timed_out)}", cause="perf_record_failed")
    spots = perf.hot_spots(data, subject.files, limits.sealed)
    if not spots:
        raise Refused(503, "perf took no sample of the kernel", cause="no_samples")
    counters = folder / "counters"
    events = perf.known_events(look.counter_group)
    subject.run(limits, min_ns=calls_ns, before=perf.counting(counters, events))
    return wire.Profiled(
        threads=len(limits.cores),
        elapsed_s=ran.call_s or 0.0,
        hot_spots=spots,
        counters=perf.counted(counters, look.counter_group),
    )


def _end_of(stderr: str, timed_out: bool) -> str:
    """Why a watched run failed, in one line: its last words."""
    if timed_out:
        return "stopped at its time limit"
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it failed without a word"
