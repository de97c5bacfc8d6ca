"""From the body of a request to a Submission, or one line that says what is wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcagent_bench import config
from hpcagent_bench.cluster.identity import Caller
from hpcagent_bench.corpus import spec
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness.submission import Submission
from hpcagent_bench.toolchain import flags, languages

DELIVERIES = ("source", "source_file", "library")


class Refused(Exception):
    """A request answered without grading: HTTP code and one line, with extra fields for some codes."""

    def __init__(self, code: int, error: str, **extra: Any) -> None:
        super().__init__(error)
        self.code = code
        self.body: dict[str, Any] = {"error": error, **extra}


@dataclass(frozen=True)
class Request:
    """A checked request: what to grade and what to note beside it."""

    submission: Submission
    optimizer: str | None
    tokens: int | None


def decode(raw: bytes) -> dict[str, Any]:
    """The JSON object of a body; anything else is refused with 400."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise Refused(400, f"the body is a JSON {type(body).__name__}, an object is needed")
    return body


def check_rank(value: Any, mine: int) -> None:
    """400 for a missing or invalid rank, 421 for another judge's."""
    try:
        rank = int(value) if isinstance(value, str | int) and not isinstance(value, bool) else -1
    except ValueError:
        rank = -1
    if rank < 0:
        raise Refused(400, f"rank is {value!r}; send this judge's rank, {mine}")
    if rank != mine:
        raise Refused(421, f"rank {rank} is another judge's", judge_rank=mine, requested_rank=rank)


def known_kernel(name: Any, caller: Caller) -> Kernel:
    """The kernel asked for: 400 when missing or not this worker's, 404 when unknown."""
    if not isinstance(name, str) or not name:
        raise Refused(400, "no kernel; send its name as 'kernel'")
    try:
        kernel = spec.load(name)
    except UserError as error:
        raise Refused(404, str(error)) from None
    if caller.kernel is not None and kernel.name != caller.kernel:
        raise Refused(400, f"kernel {kernel.name} is not this worker's; it works on {caller.kernel}")
    return kernel


def known_language(name: Any, caller: Caller) -> str:
    """400 for a language without a compiler here, or not the one this worker was asked to write."""
    if not isinstance(name, str) or name not in languages.REGISTRY:
        raise Refused(400, f"language is {name!r}; one of {', '.join(languages.REGISTRY)}")
    if caller.language is not None and name != caller.language:
        raise Refused(400, f"language {name} is not this worker's; it writes {caller.language}")
    return name


def read(
    body: dict[str, Any], caller: Caller, rank: int, settings: config.Judge, shared: Path | None
) -> Request:
    """Check a request from the outside in: rank, kernel, language, delivery, build list, workspace."""
    check_rank(body.get("rank"), rank)
    kernel = known_kernel(body.get("kernel"), caller)
    language = known_language(body.get("language", "c"), caller)
    mode, source = _delivery(body, kernel, language, settings, shared)
    build = body.get("build") or []
    if not isinstance(build, list) or not all(isinstance(item, str) for item in build):
        raise Refused(400, "build is not a list of strings")
    _, refused = flags.split_build_list(build)
    links = [item for item in refused if item.startswith("-l")]
    if links:
        raise Refused(400, f"link flag {links[0]} is not allowed")
    workspace = body.get("workspace_bytes") or 0
    limit = int(settings.limits.kernel_memory_gb * 2**30)
    if not isinstance(workspace, int) or not 0 <= workspace <= limit:
        raise Refused(400, f"workspace_bytes is {workspace!r}; a whole number up to {limit}")
    optimizer = body.get("optimizer")
    return Request(
        Submission(kernel, language, source, tuple(build), workspace, mode),
        _text(optimizer)[:200] if optimizer is not None else None,
        _count(body.get("tokens")),
    )


def _text(value: Any) -> str:
    """A note as it can be stored: JSON may hold half of a surrogate pair, UTF-8 cannot."""
    return str(value).encode(errors="replace").decode()


def _count(value: Any) -> int | None:
    """A whole number that the database can hold, or None: what an agent counts never spoils its grade."""
    known = isinstance(value, int) and not isinstance(value, bool)
    return value if known and 0 <= value < 2**63 else None


def _delivery(
    body: dict[str, Any], kernel: Kernel, language: str, settings: config.Judge, shared: Path | None
) -> tuple[str, str]:
    """Exactly one of source, source_file and library, as service.input_mode allows."""
    sent = [key for key in DELIVERIES if body.get(key) is not None]
    if len(sent) != 1:
        raise Refused(400, f"send exactly one of {', '.join(DELIVERIES)}; got {', '.join(sent) or 'none'}")
    mode, value = sent[0], body[sent[0]]
    if mode == "library" or settings.service.input_mode not in ("source", "any"):
        raise Refused(
            400, f"{mode} is not accepted here: service.input_mode is {settings.service.input_mode}"
        )
    if not isinstance(value, str) or not value.strip():
        raise Refused(400, f"{mode} is empty or not text")
    return mode, value if mode == "source" else _read_shared(value, kernel, language, shared)


def _read_shared(name: str, kernel: Kernel, language: str, shared: Path | None) -> str:
    """The text of a file in the shared folder; links are followed before the place is checked."""
    if shared is None:
        raise Refused(400, "source_file needs a shared folder, and this judge has none; send source")
    wanted = kernel.name + languages.get(language).extension
    relative = name.removeprefix("/shared/")
    if Path(name).name != wanted:
        raise Refused(400, f"source_file must be called {wanted}, not {Path(name).name}")
    try:
        path = (shared / relative).resolve()
        if not path.is_relative_to(shared.resolve()) or not path.is_file():
            raise Refused(400, f"source_file {name} is not a file in the shared folder")
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise Refused(400, f"source_file {name} cannot be read as UTF-8 text") from None
