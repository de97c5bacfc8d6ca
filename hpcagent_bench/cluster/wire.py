"""The bodies of requests and answers as types: what the OpenAPI document says and what is checked."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from hpcagent_bench.toolchain import languages

TOOLS = ("linuxperf", "papi", "none", "opt-report", "nsys", "rocprofv3", "ncu", "rocprof-compute")
COUNTER_GROUPS = ("overview", "cache", "memory", "branch", "tlb", "flops", "stalls", "all")
DEVICE_ONLY = ("device_source", "device_source_file", "distribution", "sparse_config")
"""Fields of deliveries that other tracks take; on a host track they are refused, never ignored."""

REQUEST_ID = r"^[A-Za-z0-9_.:-]{1,64}$"
LIST_MAX = 64
EXPRESSION_MAX = 200

Texts = Annotated[list[StrictStr], Field(max_length=LIST_MAX)]


class Delivery(BaseModel):
    """What is to be graded: exactly one of ``source``, ``source_file`` and ``library``."""

    model_config = ConfigDict(extra="ignore")

    kernel: StrictStr = Field(description="name of the kernel", examples=["tsvc_2_s311"])
    language: StrictStr = Field("c", description=f"one of {', '.join(languages.REGISTRY)}")
    rank: StrictInt | StrictStr = Field(description="this judge's rank, a whole number")
    episode_id: StrictStr | None = Field(None, description="text; who calls is known by the token alone")
    request_id: Annotated[StrictStr, Field(pattern=REQUEST_ID)] | None = Field(
        None,
        description="1 to 64 of letters, digits, _ . : -; a repeated request gets the answer of the first",
    )
    optimizer: StrictStr | None = Field(None, description="text: what wrote the code")
    tokens: Annotated[StrictInt, Field(ge=0, lt=2**62)] | None = Field(
        None, description="a whole number: tokens spent so far"
    )
    source: StrictStr | None = Field(None, description="text of the source")
    source_file: StrictStr | None = Field(None, description="path of KERNEL.EXTENSION in the shared folder")
    library: StrictStr | None = Field(None, description="path of a shared library in the shared folder")
    build: Texts | None = Field(None, description="a list of strings, of which -I -D -l -L are used")
    libraries: Texts | None = Field(None, description="a list of names of libraries to link")
    workspace_bytes: StrictInt | Annotated[StrictStr, Field(max_length=EXPRESSION_MAX)] | None = Field(
        None,
        description="a whole number of bytes, or an expression over sizes like '8*N + 256'",
        examples=[4096],
    )
    compiler: StrictStr | None = Field(None, description="compiler family: gcc or llvm")


class ProfileBody(Delivery):
    """A delivery to look at; nothing of it is graded or recorded."""

    tool: StrictStr = Field("linuxperf", description=f"one of {', '.join(TOOLS)}")
    counter_group: StrictStr = Field("overview", description=f"one of {', '.join(COUNTER_GROUPS)}")
    threads: Annotated[list[Annotated[StrictInt, Field(ge=1, le=1024)]], Field(max_length=8)] | None = Field(
        None, description="a list of at most 8 thread counts, each run once"
    )


class SearchBody(BaseModel):
    """A question for the web search the judge relays to."""

    model_config = ConfigDict(extra="ignore")

    query: Annotated[StrictStr, Field(min_length=1, max_length=2000)] = Field(description="text, not empty")
    context: Annotated[StrictStr, Field(max_length=8000)] | None = Field(None, description="text")
    limit: Annotated[StrictInt, Field(ge=1, le=20)] = Field(5, description="a whole number, 1 to 20")


class Refusal(BaseModel):
    """Why nothing was done."""

    model_config = ConfigDict(extra="allow")

    error: str
    cause: str | None = None
    judge_rank: int | None = None
    requested_rank: int | None = None


class Health(BaseModel):
    """Whether this judge serves. ``position``: how many grades go before the caller's, 0 is being graded."""

    status: Literal["ok"]
    rank: int
    oracle: str
    baseline: str
    input_mode: str
    waiting: int
    position: int | None = None


class Baseline(BaseModel):
    """Times to beat in ns."""

    kernel: str
    preset: str
    baseline: str
    baselines: dict[str, float]


class BuildCommand(BaseModel):
    """How a language is built; one that is not compiled tells the versions of what runs it."""

    language: str
    family: str | None = None
    argv: list[str]
    command: str
    versions: dict[str, str] | None = None


class Loop(BaseModel):
    """What is known of one loop of the reference."""

    line: int
    index: str
    parallel: bool
    reason: str


class ParallelForm(BaseModel):
    """The canonical parallel form of a kernel."""

    kernel: str
    language: str
    source: str
    loops: list[Loop]


class Task(BaseModel):
    """Everything an agent may know about a kernel."""

    kernel: str
    language: str
    signature: str
    symbol: str
    reference_numpy: str
    rtol: float
    atol: float
    preset: str
    oracle: str
    baseline: str
    input_mode: str
    abi_doc: str
    shared: dict[str, Any]
    goal: str


class CellAnswer(BaseModel):
    """One input of a preview."""

    label: str
    correct: bool
    reason: str
    ratio: float | None = None
    p_value: float | None = None
    significant: bool | None = None
    native_ns: float | None = None
    baseline_ns: float | None = None
    baseline: str | None = None


class ScoreAnswer(BaseModel):
    """A preview grade."""

    request_id: str
    kernel: str
    language: str
    preset: str
    correct: bool
    public_correct: bool
    build_ok: bool
    status: str
    detail: str
    timed_out: bool
    harness_fault: bool
    judge_fault: bool | None = None
    max_rel_error: float | None = None
    speedup: float | None = None
    native_ns: float | None = None
    baseline_ns: float | None = None
    baseline: str
    baselines: dict[str, float] = {}
    speedups: dict[str, float] = {}
    oracle: str
    cells: list[CellAnswer]
    build_log: str | None = None
    build_ignored: list[str] | None = None


class SubmitAnswer(BaseModel):
    """The verdict on a submission."""

    correct: Literal["yes", "no"]
    request_id: str
    build_log: str | None = None
    judge_fault: bool | None = None
    grade: dict[str, Any] | None = None


class Counter(BaseModel):
    """One event; no value where this host does not count it."""

    event: str
    value: float | None = None


class HotSpot(BaseModel):
    """Where time went: a share of the samples, in percent."""

    percent: float
    symbol: str
    object: str
    line: str | None = None


class Profiled(BaseModel):
    """One run under a profiler."""

    threads: int
    elapsed_s: float
    hot_spots: list[HotSpot] = []
    counters: list[Counter] = []


class ProfileAnswer(BaseModel):
    """What the tool saw. A source that does not build has ``build_ok`` false and its log."""

    kernel: str
    language: str
    tool: str
    build_ok: bool
    build_log: str | None = None
    report: str | None = None
    runs: list[Profiled] = []
    stdout: str | None = None
    stderr: str | None = None
    exit_code: int | None = None
    elapsed_s: float | None = None
    timed_out: bool | None = None


class SearchAnswer(BaseModel):
    """What the search answered, as it came."""

    model_config = ConfigDict(extra="allow")
