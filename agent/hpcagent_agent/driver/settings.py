"""The driver's input: ``driver.json``, written by the node job."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError, model_validator

SafeName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
Mode = Literal["multi", "single", "blind"]


class SettingsError(Exception):
    """A ``driver.json`` that cannot be used: one line, exit code 2."""


class Problem(BaseModel):
    """One episode to run. ``token`` is its secret towards the judge and never enters the sandbox."""

    id: SafeName
    kernel: str = Field(pattern=r"^[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*$")
    episode_id: str
    token: str = Field(min_length=1, repr=False)
    language: str = "c"
    setup: str = ""
    slot: int = 1
    rep: int = 1
    job: int | None = None
    worker: int | None = None
    prompt: str = ""
    seal_argv: list[str] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _number_as_id(cls, data: object) -> object:
        """Problems are numbered, but an id names a folder."""
        if isinstance(data, dict) and isinstance(data.get("id"), int):
            return {**data, "id": str(data["id"])}
        return data

    @property
    def kernel_name(self) -> str:
        """The kernel without its track."""
        return self.kernel.rsplit("/", 1)[-1]


class Harness(BaseModel):
    """Which program runs in the workspace; ``{python}`` in ``argv`` stands for this interpreter."""

    name: SafeName
    argv: list[str] = Field(min_length=1)
    env: dict[str, str] = Field(default_factory=dict)
    options: dict[str, object] = Field(default_factory=dict)

    def command(self) -> list[str]:
        """``argv`` with its placeholders filled in."""
        return [item.replace("{python}", sys.executable) for item in self.argv]


class Seal(BaseModel):
    """The bubblewrap prefix; placeholders {workdir} {agent_folder} {shared} {task} {socket}."""

    enabled: bool = True
    argv: list[str] = Field(default_factory=list)


class Settings(BaseModel):
    """One driver's work. Times in seconds; ``timeout_s`` None sets no deadline."""

    run_dir: Path
    judge_url: str = Field(pattern=r"^https?://")
    shared_dir: Path
    problems: list[Problem]
    harness: Harness
    seal: Seal = Field(default_factory=Seal)
    node: int = 0
    judge_rank: int = 0
    workers: int = Field(default=1, ge=1)
    cpus: list[int] = Field(default_factory=list)
    timeout_s: float | None = Field(default=None, gt=0)
    max_attempts: int = Field(default=3, ge=1)
    max_tokens: int | None = Field(default=None, gt=0)
    submission_mode: Mode = "single"
    judge_timeout_s: float = 1800.0
    judge_ready_s: float = 300.0
    stagger_s: float = 0.5
    kill_grace_s: float = 5.0
    submitted_grace_s: float = 5.0

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        seen: set[str] = set()
        for problem in self.problems:
            if problem.id in seen:
                raise ValueError(f"two problems have the id {problem.id}")
            seen.add(problem.id)
            if self.seal.enabled and not (problem.seal_argv or self.seal.argv):
                raise ValueError(f"problem {problem.id} has no seal_argv and seal.enabled is true")
        return self

    def worker_dir(self, problem: Problem, worker: int) -> Path:
        """Where a problem's ledger, transcripts and workspace lie."""
        number = problem.worker if problem.worker is not None else worker
        return self.run_dir / "agents" / f"node-{self.node}" / f"problem-{problem.id}-worker-{number}"

    def worker_cpus(self, worker: int) -> list[int]:
        """Every ``workers``-th core; all of them where there are fewer cores than workers."""
        return self.cpus[worker :: self.workers] or self.cpus


def load(path: Path) -> Settings:
    """Read ``driver.json``; raises SettingsError naming the file, the field and what is wrong."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error
    try:
        settings = Settings.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"{path}: {where + ': ' if where else ''}{first['msg']}") from error
    run_dir, shared = settings.run_dir.absolute(), settings.shared_dir.absolute()
    return settings.model_copy(update={"run_dir": run_dir, "shared_dir": shared})
