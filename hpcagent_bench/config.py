"""Typed settings of every configuration group; the names are those an operator types (conf/, Hydra).

What a field may hold beyond its type stands in its metadata: ``choices`` (a closed list), ``pattern`` with
``shape`` (a regular expression and how to say it) and ``at_least`` (a lower bound). ``config_check`` enforces
them on files and on the command line alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

DENOMINATORS = (
    "numba",
    "c",
    "c-autopar",
    "numpy",
    "vendored",
    "best-of(numba,c)",
    "best-of(numba,c,c-autopar)",
    "torch-autotune",
)

DEVICES = ("cpu", "cpu-multinode", "gpu", "gpu-multinode")

_NAME = {"pattern": r"[A-Za-z0-9][A-Za-z0-9_-]*", "shape": "letters, digits, '_' and '-'"}
_TIME = {"pattern": r"(\d+-)?\d{1,3}:[0-5]\d:[0-5]\d", "shape": "HH:MM:SS or D-HH:MM:SS"}
_MEMORY = {"pattern": r"[1-9]\d*[KMGT]", "shape": "a whole number with K, M, G or T, like 64G"}


def _one_of(default: str, *choices: str) -> Any:
    """A string field restricted to ``choices``."""
    return field(default=default, metadata={"choices": choices})


def _positive(default: int) -> Any:
    """A whole number of at least 1."""
    return field(default=default, metadata={"at_least": 1})


@dataclass
class Denominator:
    """Which reference time a grade divides by, per track (scoring.md 1.4)."""

    loop_level_reasoning: str = _one_of("best-of(numba,c)", *DENOMINATORS)
    scientific_computing: str = _one_of("best-of(numba,c)", *DENOMINATORS)
    machine_learning: str = _one_of("torch-autotune", *DENOMINATORS)


@dataclass
class Measurement:
    """How calls are timed and reduced."""

    credited_protocol: str = "mw4x5"
    preview_protocol: str = "mw2x5"
    denominator: Denominator = field(default_factory=Denominator)
    baseline_race: str = _one_of("leader-first", "leader-first", "complete")
    early_stop_factor: float = 2.0
    early_stop_floor_s: float = 1.0
    pin_threads: bool = True
    timing_lock: str = ""  # flock path that serialises timing between graders on one host
    node_check: str = _one_of("record", "wait", "record", "off")  # wait, or only note, while the node is busy
    node_check_every_s: float = 3600.0
    node_wait_s: float = 120.0
    node_max_foreign: float = 0.05  # share of a timed core's time that others use
    node_max_steal: float = 0.05  # the same, kept by the hypervisor
    node_max_sibling: float = 0.3  # how busy the other hardware thread of a timed core may be
    node_max_running: float = 1.5  # runnable tasks per CPU of the host
    node_max_noise: float = 0.05  # a reference against itself: ratio of medians less 1
    node_max_drift: float = 0.25  # slower than at its best since the judge started
    node_min_memory_gb: float = 1.0


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
    hidden_correctness_presets: list[str] = field(default_factory=lambda: ["XL", "M", "M", "L", "S"])


@dataclass
class Seeds:
    """Public seeds. The secret ones live in a file only the judge reads."""

    input_dist: int = 0
    fuzz: int = 42


@dataclass
class Service:
    """What the judge's HTTP routes accept and tell."""

    input_mode: str = _one_of("source", "source", "py-binding", "library", "any")
    submit_feedback: str = _one_of("verdict", "verdict", "full")
    score_enabled: bool = True
    datatype: str = _one_of("float64", "float64", "float32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2")
    oracle: str = "auto"
    max_body_mb: int = _positive(8)
    body_timeout_s: float = 30.0  # longest time for a body to arrive
    max_library_mb: int = _positive(64)  # largest shared library of a delivery
    max_waiting: int = _positive(256)  # requests that wait for their grade; beyond it 503
    max_waiting_per_episode: int = _positive(32)  # of those, one worker's
    profile_timeout_s: float = 120.0  # longest run under /profile
    search_url: str = ""  # where /search is relayed to; "" has none
    search_timeout_s: float = 30.0


@dataclass
class Record:
    """What makes a timing implausible, and whether the references check each other."""

    dual_oracle: bool = True

    speedup_suspect_above_host: float = 2000.0
    speedup_suspect_above_device: float = 16000.0
    physical_bandwidth_gbps_host: float = 10600.0
    physical_bandwidth_gbps_device: float = 10600.0
    physical_margin: float = 2.0  # faster than the node's measured peak by more is impossible
    clock_margin_us: float = 50.0  # beyond the reference's own gaps between the clocks inside and outside
    unattested: str = _one_of("mark", "mark", "suspect")  # a gain smaller than the clocks can tell


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


@dataclass
class Model:
    """Who writes the code: group ``model``. ``model`` None is the compiler row (no model at all)."""

    name: str = field(default=MISSING, metadata=_NAME)
    model: str | None = None
    title: str = ""
    temperature: float = 1.0
    base_url: str = ""
    key_env: str = ""  # name of the environment variable that holds the key; never the key itself


@dataclass
class Language:
    """What the submission is written in: group ``language``."""

    name: str = field(default=MISSING, metadata=_NAME)
    title: str = ""
    device: str = _one_of("cpu", *DEVICES)


@dataclass
class Packet:
    """What an agent gets besides the task: group ``packet``; ``packet`` is the recorded column, or empty.

    ``in_names`` is how setup names spell it (default: the column), ``order`` its place among packets in
    tables and figures, ``languages`` the only ones it is made for (none named: all).
    """

    name: str = field(default=MISSING, metadata=_NAME)
    packet: str = ""
    title: str = ""
    in_names: str | None = None
    order: int | None = None
    languages: list[str] = field(default_factory=list)


@dataclass
class Harness:
    """The program that plays the agent: group ``harness``. ``{python}`` in argv is the job's interpreter.

    ``in_names`` is how setup names spell it (default: its name; "" leaves it out), ``languages`` the only
    ones it writes (none named: all).
    """

    name: str = field(default=MISSING, metadata=_NAME)
    title: str = ""
    in_names: str | None = None
    languages: list[str] = field(default_factory=list)
    needs_model: bool = True
    argv: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    max_attempts: int = _positive(3)


@dataclass
class Budgets:
    """What one episode may spend. ``timeout_s`` is wall-clock seconds of all its attempts together."""

    timeout_s: int = _positive(900)
    max_tokens: int | None = field(default=None, metadata={"at_least": 1})


@dataclass
class Study:
    """What is compared with what: group ``study``. A setup is one combination of the four axes.

    ``controls`` names by harness, else by language, the setup that others are compared with; ``{model}`` in
    it is the other's own model. ``partitions`` names by device where jobs run, else it is ``partition``.
    """

    experiment: str = field(default=MISSING, metadata=_NAME)
    title: str = ""
    bench: str = _one_of("kernels", "kernels")
    tag: str = field(default=MISSING, metadata=_NAME)
    models: list[str] = field(default_factory=lambda: ["none"])
    languages: list[str] = field(default_factory=lambda: ["c"])
    packets: list[str] = field(default_factory=lambda: ["none"])
    harnesses: list[str] = field(default_factory=list)
    controls: dict[str, str] = field(default_factory=dict)
    partitions: dict[str, str] = field(default_factory=dict)
    repeat: int = _positive(1)
    submission_mode: str = _one_of("single", "multi", "single", "blind")
    budgets: Budgets = field(default_factory=Budgets)


@dataclass
class Cluster:
    """Where node jobs run and how the scheduler is spoken to: group ``cluster``."""

    name: str = field(default=MISSING, metadata=_NAME)
    executor: str = _one_of("local", "local", "slurm")
    exclusive_host: bool = False  # node jobs on one host take turns
    account: str = ""
    qos: str = ""
    setup: list[str] = field(default_factory=list)  # shell lines before the job's command
    sbatch: dict[str, str] = field(default_factory=dict)  # further sbatch options by their long names
    use_srun: bool = True
    slurm_conf: str = ""  # set as SLURM_CONF when the environment has none
    max_array_size: int = _positive(1001)  # used when the scheduler does not say
    max_running: int = _positive(256)  # tasks of one array that run at once
    signal_delay_s: int = _positive(120)  # warning before the time limit
    stop_grace_s: int = _positive(30)  # what the driver gets to end after a signal
    unknown_grace_s: int = _positive(300)  # how long a job nobody knows still counts as in flight
    poll_s: float = 5.0


@dataclass
class Partition:
    """What one node job gets: group ``partition``."""

    name: str = field(default=MISSING, metadata=_NAME)
    partition: str = ""  # Slurm's name, several separated by commas; "" leaves it to the site
    cores: int = _positive(2)
    gpus: int = field(default=0, metadata={"at_least": 0})
    gpu_type: str = ""
    gpu_form: str = _one_of("gres", "gres", "gpus-per-node")
    time: str = field(default="01:00:00", metadata=_TIME)
    mem: str | None = field(default=None, metadata=_MEMORY)
    mem_per_cpu: str | None = field(default=None, metadata=_MEMORY)
    constraint: str = ""
    nodelist: str = ""
    exclude: str = ""
    exclusive: bool = False
    workers: int = _positive(1)  # agents at once on a node
    judge_cores: int = _positive(1)
    agent_cores: int = _positive(1)
    problems_per_job: int = _positive(8)
    scratch: str = ""


@dataclass
class Statistics:
    """How grades become statements: group ``statistics``."""

    name: str = field(default="default", metadata=_NAME)
    paired_test: str = _one_of("sign-flip", "sign-flip", "wilcoxon", "ttest_rel")
    proportion_test: str = _one_of("fisher", "fisher", "boschloo", "barnard", "chi2")
    correction: str = _one_of("benjamini-hochberg", "benjamini-hochberg", "holm")
    confidence: float = 0.95
    resamples: int = _positive(9999)
    seed: int = 0


@dataclass
class Root:
    """Everything one launch is made of."""

    study: Study = MISSING
    cluster: Cluster = MISSING
    partition: Partition = MISSING
    judge: Judge = field(default_factory=Judge)
    sizes: Sizes = field(default_factory=Sizes)
    statistics: Statistics = field(default_factory=Statistics)
    models: dict[str, Model] = field(default_factory=dict)
    languages: dict[str, Language] = field(default_factory=dict)
    packets: dict[str, Packet] = field(default_factory=dict)
    harnesses: dict[str, Harness] = field(default_factory=dict)
    partitions: dict[str, Partition] = field(default_factory=dict)  # by device, from study.partitions
    action: str = _one_of("run", "run", "plan", "diff")
    setups: list[str] = field(default_factory=list)  # glob patterns; [] is all
    kernels: list[str] = field(default_factory=list)  # glob patterns; [] is all
    runs: str = "runs"  # folder of run trees
    fresh: bool = False  # start a new run root even when one of this study exists
    follow: bool = True  # stay and show progress


AXES: dict[str, str] = {
    "models": "model",
    "languages": "language",
    "packets": "packet",
    "harnesses": "harness",
}
"""Axis of a study (and key of Root) -> the configuration group its members come from."""

GROUPS: dict[str, type] = {
    "study": Study,
    "cluster": Cluster,
    "partition": Partition,
    "judge": Judge,
    "sizes": Sizes,
    "statistics": Statistics,
    "model": Model,
    "language": Language,
    "packet": Packet,
    "harness": Harness,
}
"""Configuration group (folder of conf/) -> its type."""

Json = dict[str, Any]
