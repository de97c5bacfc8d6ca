"""The rows of a results database as typed values; field names are the column names of schema.sql."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["score", "submit", "promoted", "harvested", "probe", "final", "regrade"]

SUBMIT_LIKE: tuple[str, ...] = ("submit", "promoted", "harvested", "probe")
"""Grade kinds that can answer a task; ``final`` and ``regrade`` rows belong to one of them."""

ADHOC = "adhoc"
"""Label of grades asked for outside any episode: kept on record, used by no analysis."""


def now_ms() -> int:
    """UTC epoch milliseconds."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class Setup:
    """One launcher configuration (scoring.md 3.1). ``model`` None: no model, a fixed program."""

    setup: str
    study: str | None = None
    model: str | None = None
    language: str = "c"
    device: str = "cpu"
    packet: str = ""
    harness: str = "claude"
    temperature: float | None = 1.0


@dataclass(frozen=True)
class Episode:
    """One agent optimising one kernel once. (job, label, rep) names it; labels repeat across jobs."""

    setup: str
    job: int | None
    label: str
    rep: int = 1
    slot: int = 1
    kernel: str | None = None

    @property
    def key(self) -> tuple[int, str, int]:
        """The natural key as stored: an unknown job counts as -1."""
        return (-1 if self.job is None else self.job, self.label, self.rep)


@dataclass(frozen=True)
class Source:
    """One delivered source text; ``part`` is ``host`` or ``device``."""

    part: str
    language: str
    text: str

    @property
    def hash(self) -> str:
        """sha256 of the UTF-8 text, hex."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Cell:
    """One input of a grade: its shape, both sides' reduced times (ns) and the credited ratio r_j."""

    cell: int
    label: str | None = None
    shape: Mapping[str, Any] | str | None = None
    timed: bool | None = None
    correct: bool | None = None
    suspect: bool | None = None
    significant: bool | None = None
    p_value: float | None = None
    baseline: str | None = None
    baseline_candidates: str | None = None
    race_leader: str | None = None
    race_leader_source: str | None = None
    race_cuts: Mapping[str, Any] | str | None = None
    baseline_ns: float | None = None
    native_ns: float | None = None
    ratio: float | None = None
    residency: str | None = None
    timer: str | None = None
    copies_excluded: bool | None = None
    residual_ns: float | None = None
    host_event_delta_ns: float | None = None
    device_index: int | None = None
    status: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Grade:
    """One graded call. ``call_index`` None is numbered by ``record`` from 1 per episode, kernel and kind.

    ``speedup`` is what was measured (0: untimed); ``credited_speedup`` is S_i, None when not credited.
    Mappings and sequences in JSON columns are stored as JSON text.
    """

    kernel: str
    kind: Kind
    ts_ms: int = field(default_factory=now_ms)
    request_id: str | None = None
    optimizer: str | None = None
    call_index: int | None = None
    tokens_so_far: int | None = None
    preset: str | None = None
    datatype: str | None = None
    source_mode: str | None = None
    baseline: str | None = None
    grading_protocol: str | None = None
    timing_reduction: str | None = None
    baseline_policy: str | None = None
    denominator: str | None = None
    score_rule: str | None = None
    requested_build: Sequence[str] | str | None = None
    requested_libraries: Sequence[str] | str | None = None
    build_commands: Sequence[str] | str | None = None
    build_ok: bool | None = None
    correct: bool | None = None
    status: str | None = None
    reason: str | None = None
    speedup: float | None = None
    credited_speedup: float | None = None
    suspect: bool | None = None
    device_runtime: str | None = None
    baseline_ns: float | None = None
    native_ns: float | None = None
    timing_residual_ns: float | None = None
    timing_host_ns: float | None = None
    timing_event_ns: float | None = None
    device_index: int | None = None
    detail: str | None = None
    distribution: Mapping[str, Any] | str | None = None
    workspace_bytes: int | None = None
    layout: str | None = None
    layout_prep_ns: float | None = None
    layout_request: str | None = None
    size_scale: float | None = None
    scale_axes: str | None = None
    node: str | None = None
    cpu: str | None = None
    commit_sha: str | None = None
    task_hash: str | None = None
    cells: tuple[Cell, ...] = ()
    sources: tuple[Source, ...] = ()
