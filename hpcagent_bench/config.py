"""Typed settings of every configuration group; the names are those an operator types (conf/, Hydra)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Denominator:
    """Which reference time a grade divides by, per track (scoring.md 1.4)."""

    loop_level_reasoning: str = "best-of(numba,c)"
    scientific_computing: str = "best-of(numba,c)"
    machine_learning: str = "torch-autotune"


@dataclass
class Measurement:
    """How calls are timed and reduced."""

    credited_protocol: str = "mw4x5"
    preview_protocol: str = "mw2x5"
    denominator: Denominator = field(default_factory=Denominator)
    baseline_race: str = "leader-first"  # or "complete"
    early_stop_factor: float = 2.0
    early_stop_floor_s: float = 1.0
    pin_threads: bool = True
    timing_lock: str = ""  # flock path that serialises timing between graders on one host


@dataclass
class Timeouts:
    """Wall-clock limits, in seconds."""

    kernel_s: float = 300.0
    kernel_s_by_level: dict[int, float] = field(default_factory=lambda: {1: 180.0, 2: 300.0, 3: 600.0})
    kernel_s_override: float | None = None
    guillotine_factor: float = 2.0  # 0 disables
    guillotine_floor_s: float = 1.0
    compile_s: float = 75.0


@dataclass
class Fuzz:
    """How sizes are drawn."""

    xl_lo_mult: float = 0.5
    xl_hi_mult: float = 1.0
    config_pool: int = 5


@dataclass
class Seeds:
    """Public seeds. The secret ones live in a file only the judge reads."""

    input_dist: int = 0
    fuzz: int = 42


@dataclass
class Service:
    """What the judge's HTTP routes accept and tell."""

    input_mode: str = "source"  # source | py-binding | library | any
    submit_feedback: str = "verdict"  # verdict | full
    score_enabled: bool = True
    datatype: str = "float64"
    oracle: str = "auto"
    max_body_mb: int = 8


@dataclass
class Record:
    """What makes a timing implausible."""

    speedup_suspect_above_host: float = 2000.0
    speedup_suspect_above_device: float = 16000.0
    physical_bandwidth_gbps_host: float = 10600.0
    physical_bandwidth_gbps_device: float = 10600.0


@dataclass
class Grading:
    """What a submission may bring along, and whether it is sealed."""

    seal: bool = True
    allow_agent_build_flags: bool = False


@dataclass
class Limits:
    """Memory bounds of grading children."""

    kernel_memory_gb: float = 20.0
    thread_stack_mb: int = 512


@dataclass
class Judge:
    """The judge: group ``judge``."""

    name: str = "default"
    measurement: Measurement = field(default_factory=Measurement)
    timeouts: Timeouts = field(default_factory=Timeouts)
    fuzz: Fuzz = field(default_factory=Fuzz)
    seeds: Seeds = field(default_factory=Seeds)
    service: Service = field(default_factory=Service)
    record: Record = field(default_factory=Record)
    grading: Grading = field(default_factory=Grading)
    limits: Limits = field(default_factory=Limits)


@dataclass
class Sizes:
    """The timed rung: group ``sizes``. ``bytes`` bounds the arrays of one input; None keeps the XL preset."""

    name: str = "xl"
    bytes: int | None = None


Json = dict[str, Any]
