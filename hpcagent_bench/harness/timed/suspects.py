"""Why an input's timing cannot be believed, or how far it can be (scoring.md 1.5).

Every rule is a function of one measured input; the first that speaks makes the input suspect: it is credited
1 and left out of the task's score.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.grading import InputResult
from hpcagent_bench.harness.timed import transport

CPU_SLACK_SHARE = 0.05
CPU_SLACK_NS = 2_000_000
"""CPU time of one call beyond cores x wall that is no sign of more cores: the clocks are read one by one."""

COLD_SHARE = 2.0
"""A candidate whose first call in a process gains this much less than the later ones is worth a note."""

WAITING_TIMES = 4.0
WAITING_NS = 10_000_000
"""Waiting for a processor that is believed of a candidate: some times the references', or two time slices."""

Rule = Callable[[InputResult, GradingContext], str]


def gpu_runtime(result: InputResult, _: GradingContext) -> str:
    """A host grade must not map a GPU runtime."""
    runtime = result.runs.device_runtime
    return f"a host grade mapped {runtime}" if runtime else ""


def ratio_bound(result: InputResult, context: GradingContext) -> str:
    """Neither the credited nor the plain ratio may exceed record.speedup_suspect_above_host."""
    bound = context.settings.record.speedup_suspect_above_host
    assert result.reduction is not None
    above = max(result.reduction.speedup, result.reduction.ratio) > bound
    return f"ratio above {bound:g}" if above else ""


def declared_bandwidth(result: InputResult, context: GradingContext) -> str:
    """All declared bytes in the median time: at most record.physical_bandwidth_gbps_host."""
    bound = context.settings.record.physical_bandwidth_gbps_host
    inside = statistics.median(result.runs.inside)
    return f"faster than {bound:g} GB/s" if inside <= 0 or result.bytes_moved / inside > bound else ""


def physical_floor(result: InputResult, context: GradingContext) -> str:
    """No run may write what the reference changed faster than this node's cores can, by a margin."""
    if not result.bytes_changed:
        return ""
    bound = context.node.peak_gbps * context.settings.record.physical_margin
    rate = result.bytes_changed / max(1, min(result.runs.inside))
    return f"wrote its outputs at {rate:.4g} GB/s, more than this node can" if rate > bound else ""


def clocks(result: InputResult, context: GradingContext) -> str:
    """The clock inside must not fall behind the others by more than the references' did.

    Time that is hidden shows in the wall clock outside, and, unless it was spent waiting, as CPU time. More
    CPU time than the granted cores have in the time shown is proof. On several cores less than that may be
    honest, and on a busy machine an answer waits its turn: then both must speak. Waiting alone is believed
    within bounds. Medians decide: one late answer proves nothing, and who skews fewer than half of the runs
    moves no median. A clock that fell behind the kernel's was not believed, but tells what was tried.
    """
    runs, slack = result.runs, result.slack
    gap = transport.median(runs.gaps)
    others = len(context.cores) - 1
    beyond = statistics.median(g.cpu - others * i for g, i in zip(runs.gaps, runs.inside, strict=True))
    hidden = beyond > slack.cpu or (gap.wall > slack.wall and gap.cpu > slack.cpu)
    skewed = runs.skewed > len(runs.inside) / 2
    if hidden or skewed or gap.wall > max(WAITING_NS, WAITING_TIMES * slack.wall):
        return "the clocks inside and outside disagree"
    return ""


def handing_over(result: InputResult, _: GradingContext) -> str:
    """While its input is handed over a child has no more to compute than the references' children have."""
    load = transport.median(result.runs.gaps).load
    return "computed outside the clock, while its input was handed over" if load > result.slack.load else ""


def cores_used(result: InputResult, context: GradingContext) -> str:
    """No call may use more CPU time than the granted cores have, nor be found on other cores."""
    granted = len(context.cores)
    for cpu, outside in zip(result.runs.cpu, result.runs.outside, strict=True):
        if cpu > granted * outside * (1 + CPU_SLACK_SHARE) + CPU_SLACK_NS:
            return f"more CPU time than {granted} core(s) have"
    strayed = sorted(result.runs.strayed)
    return f"ran on core {strayed[0]}, which it was not granted" if strayed else ""


RULES: tuple[Rule, ...] = (
    gpu_runtime,
    ratio_bound,
    declared_bandwidth,
    physical_floor,
    cores_used,
    clocks,
    handing_over,
)


def suspect_timing(result: InputResult, context: GradingContext) -> str:
    """The first rule's reason, or an empty string. An input that is not timed, or was stopped, has none."""
    if result.reduction is None or result.runs.stopped_at_ns is not None or not result.runs.inside:
        return ""
    if context.settings.record.unattested == "suspect":
        return next((why for rule in (*RULES, unattested) if (why := rule(result, context))), "")
    return next((why for rule in RULES if (why := rule(result, context))), "")


def unattested(result: InputResult, _: GradingContext) -> str:
    """A credited gain too small for the outer clocks to vouch for, or an empty string.

    A candidate may have hidden up to the slack of the clock that binds it; where the gain is no more than
    that, it rests on the inside clock alone.
    """
    reduction = result.reduction
    if reduction is None or reduction.speedup <= 1 or result.runs.stopped_at_ns is not None:
        return ""
    gain = reduction.baseline - reduction.candidate
    by_cpu = transport.median(result.runs.gaps).cpu <= result.slack.cpu
    hideable = min(result.slack.wall, result.slack.cpu) if by_cpu else result.slack.wall
    if gain >= hideable:
        return ""
    return f"gain of {gain / 1e3:.3g} us is below what the clocks attest ({hideable / 1e3:.3g} us)"


def note(result: InputResult, context: GradingContext) -> str:
    """What a reader of the input should know although it is credited."""
    if result.reduction is None:
        return ""
    stopped = result.runs.stopped_at_ns
    if stopped is not None:
        return f"stopped at {stopped / 1e9:.3g} s, graded on one complete run"
    said = [unattested(result, context), _cold(result)]
    if result.runs.attempts > 1:
        said.append(f"measured {result.runs.attempts} times: CPU time alone spoke against it before")
    if result.runs.fp_modes:
        said.append(f"left floating-point modes changed: {result.runs.fp_modes}")
    return "; ".join(filter(None, said))


def _cold(result: InputResult) -> str:
    """Fast only once warm: the first calls of its processes gain much less than the timed ones."""
    cold, reduction = result.cold_ratio, result.reduction
    if cold is None or reduction is None or reduction.speedup < max(1.0, COLD_SHARE * cold):
        return ""
    return f"cold ratio {cold:.3g}, warm {reduction.ratio:.3g}"
