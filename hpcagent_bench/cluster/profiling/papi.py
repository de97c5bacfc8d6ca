"""Counters by PAPI, where its library is installed: one run for each metric."""

from __future__ import annotations

import ctypes.util
import functools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from hpcagent_bench.cluster import wire
from hpcagent_bench.cluster.profiling.launching import Limits
from hpcagent_bench.cluster.profiling.papi_counter import NO_PAPI
from hpcagent_bench.cluster.profiling.perf import Missing
from hpcagent_bench.cluster.profiling.subject import Subject
from hpcagent_bench.cluster.refusals import Refused

COUNTER = Path(__file__).resolve().parent / "papi_counter.py"
PROBE_TIMEOUT_S = 30
GROUPS: dict[str, tuple[str, ...]] = {
    "overview": ("PAPI_TOT_CYC", "PAPI_TOT_INS", "PAPI_BR_MSP", "PAPI_L2_TCM", "PAPI_L3_TCM"),
    "cache": ("PAPI_L1_DCM", "PAPI_L2_DCM", "PAPI_L2_DCA", "PAPI_L3_TCM", "PAPI_L3_TCA"),
    "memory": ("PAPI_LD_INS", "PAPI_SR_INS", "PAPI_LST_INS", "PAPI_L3_TCM"),
    "branch": ("PAPI_BR_INS", "PAPI_BR_CN", "PAPI_BR_TKN", "PAPI_BR_MSP"),
    "tlb": ("PAPI_TLB_DM", "PAPI_TLB_IM"),
    "flops": ("PAPI_FP_OPS", "PAPI_DP_OPS", "PAPI_SP_OPS", "PAPI_VEC_DP", "PAPI_VEC_SP"),
    "stalls": ("PAPI_RES_STL", "PAPI_STL_ICY", "PAPI_STL_CCY", "PAPI_MEM_SCY"),
}


def events_of(group: str) -> tuple[str, ...]:
    """The metrics of a group; ``all`` is every one."""
    if group != "all":
        return GROUPS[group]
    return tuple(dict.fromkeys(event for events in GROUPS.values() for event in events))


@functools.cache
def missing() -> Missing | None:
    """Why PAPI cannot be used on this host, or None."""
    if not sys.platform.startswith("linux"):
        return Missing("not_linux", "it is no Linux")
    if ctypes.util.find_library("papi") is None:
        return Missing("papi_missing", "PAPI is not installed")
    try:
        probe = [sys.executable, str(COUNTER), "", "", "--", "true"]
        done = subprocess.run(probe, capture_output=True, timeout=PROBE_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return Missing("papi_init_failed", "PAPI does not initialise in time")
    if done.returncode != 0:
        return Missing("papi_init_failed", "PAPI does not initialise")
    return None


def watch(subject: Subject, limits: Limits, group: str) -> wire.Profiled:
    """The counters of the group, each from a run of its own; without a value where the host has none."""
    counters: list[wire.Counter] = []
    seconds = 0.0
    with tempfile.TemporaryDirectory(prefix="hpcagent-papi-") as folder:
        out = Path(folder) / "count"
        for event in events_of(group):
            out.unlink(missing_ok=True)
            before = [sys.executable, str(COUNTER), str(out), event, "--"]
            ran = subject.run(limits, calls=1, before=before)
            if ran.status == NO_PAPI:
                raise Refused(503, "PAPI does not initialise", cause="papi_init_failed")
            seconds = ran.call_s or seconds
            counters.append(wire.Counter(event=event, value=_value(out)))
    return wire.Profiled(threads=len(limits.cores), elapsed_s=seconds, counters=counters)


def _value(out: Path) -> float | None:
    try:
        return float(json.loads(out.read_text()))
    except (OSError, ValueError, TypeError):
        return None
