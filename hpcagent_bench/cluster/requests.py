"""From the body of a request to a Submission, or one line that says what is wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from hpcagent_bench import config
from hpcagent_bench.cluster import deliveries, wire
from hpcagent_bench.cluster.identity import Caller
from hpcagent_bench.cluster.refusals import Refused
from hpcagent_bench.corpus import expressions, spec
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness.submission import Submission
from hpcagent_bench.toolchain import flags, languages

DELIVERIES = ("source", "source_file", "library")
SHOWN = 80
"""Characters of a wrong value that its refusal repeats."""

Body = TypeVar("Body", bound=BaseModel)


@dataclass(frozen=True)
class Place:
    """Where a judge takes files from and keeps its copies. ``shared`` None: it has no shared folder."""

    settings: config.Judge
    rank: int
    shared: Path | None
    work: Path


@dataclass(frozen=True)
class Request:
    """A checked request: what to grade and what to note beside it. ``ignored`` are build items not used."""

    submission: Submission
    optimizer: str | None = None
    tokens: int | None = None
    request_id: str | None = None
    ignored: tuple[str, ...] = ()

    def discard(self) -> None:
        """Delete the judge's copy of a delivered library."""
        if self.submission.library is not None:
            self.submission.library.unlink(missing_ok=True)


def decode(raw: bytes) -> dict[str, Any]:
    """The JSON object of a body; anything else is refused with 400."""
    try:
        body = json.loads(raw)
        json.dumps(body, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise Refused(400, f"the body is a JSON {type(body).__name__}, an object is needed")
    return body


def shown(value: Any) -> str:
    """``value`` as a refusal quotes it: one short line."""
    text = repr(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def typed(kind: type[Body], body: Mapping[str, Any]) -> Body:
    """``body`` as ``kind``; 400 names the first wrong field, its value and what is wanted."""
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        wanted = kind.model_fields[name].description
        raise Refused(400, f"{name} is {shown(body.get(name))}, not {wanted}") from None


def check_rank(value: Any, mine: int) -> None:
    """400 for a missing or invalid rank, 421 for another judge's."""
    try:
        rank = int(value) if isinstance(value, str | int) and not isinstance(value, bool) else -1
    except ValueError:
        rank = -1
    if not 0 <= rank < 2**31:
        raise Refused(400, f"rank is {shown(value)}; send this judge's rank, {mine}")
    if rank != mine:
        raise Refused(421, f"rank {rank} is another judge's", judge_rank=mine, requested_rank=rank)


def known_kernel(name: Any, caller: Caller) -> Kernel:
    """The kernel asked for: 400 when missing or not this worker's, 404 when unknown."""
    if not isinstance(name, str) or not name:
        raise Refused(400, "no kernel; send its name as 'kernel'")
    try:
        kernel = spec.load(name)
    except UserError as error:
        raise Refused(
            404, str(error) if len(name) <= SHOWN else f"kernel {shown(name)} does not exist"
        ) from None
    if caller.kernel is not None and kernel.name != caller.kernel:
        raise Refused(400, f"kernel {kernel.name} is not this worker's; it works on {caller.kernel}")
    return kernel


def known_language(name: Any, caller: Caller | None = None) -> str:
    """400 for an unknown language, or not the one this worker was asked to write."""
    if not isinstance(name, str) or name not in languages.REGISTRY:
        raise Refused(400, f"language is {shown(name)}; one of {', '.join(languages.REGISTRY)}")
    if caller is not None and caller.language is not None and name != caller.language:
        raise Refused(400, f"language {name} is not this worker's; it writes {caller.language}")
    return name


def read(
    body: dict[str, Any], caller: Caller, place: Place, kind: type[wire.Delivery] = wire.Delivery
) -> Request:
    """Check a request from the outside in: rank, kernel, language, delivery, types, compiler, build list.

    The file of a ``library`` is copied last, so that a refused request leaves nothing behind.
    """
    check_rank(body.get("rank"), place.rank)
    kernel = known_kernel(body.get("kernel"), caller)
    language = known_language(body.get("language", "c"), caller)
    mode = _mode(body, language, place.settings.service.input_mode)
    asked = typed(kind, body)
    family = known_family(asked.compiler, language)
    build, ignored = _build_list(asked)
    number, expression = _workspace(asked.workspace_bytes, kernel, place.settings)
    source, library = _delivered(mode, body, kernel, language, caller, place)
    submission = Submission(
        kernel=kernel,
        language=language,
        source=source,
        build=build,
        workspace_bytes=number,
        source_mode=mode,
        family=family,
        library=library,
        workspace=expression,
        libraries=tuple(asked.libraries or ()),
    )
    optimizer = None if asked.optimizer is None else asked.optimizer[:200]
    return Request(submission, optimizer, asked.tokens, asked.request_id, ignored)


def _mode(body: Mapping[str, Any], language: str, accepted: str) -> str:
    """Which of the deliveries was sent; 400 unless it is one, and one that service.input_mode takes."""
    for name in wire.DEVICE_ONLY:
        if body.get(name) is not None:
            raise Refused(400, f"{name} is not accepted: this judge grades host kernels on one node")
    sent = [key for key in DELIVERIES if body.get(key) is not None]
    if len(sent) != 1:
        raise Refused(400, f"send exactly one of {', '.join(DELIVERIES)}; got {', '.join(sent) or 'none'}")
    mode, compiled = sent[0], languages.get(language).compiled
    fits = {
        "source": mode != "library" and compiled,
        "py-binding": mode != "library" and not compiled,
        "library": mode == "library",
        "any": True,
    }
    if not fits[accepted]:
        raise Refused(400, f"{mode} in {language} is not accepted here: service.input_mode is {accepted}")
    if mode == "library" and not compiled:
        raise Refused(400, f"{language} is not compiled; send source or source_file")
    value = body[mode]
    if not isinstance(value, str) or not value.strip():
        raise Refused(400, f"{mode} is empty or not text")
    return mode


def known_family(name: str | None, language: str) -> str:
    """The compiler family to build with; 400 names those of this host."""
    entry = languages.get(language)
    if not entry.compiled:
        if name is not None:
            raise Refused(400, f"compiler is {shown(name)}, but {language} is not compiled")
        return "gcc"
    here = [family for family, driver in entry.compilers.items() if shutil.which(driver)]
    family = name if name is not None else "gcc"
    if family not in here:
        raise Refused(
            400, f"compiler {shown(family)} is not here for {language}; families here: {', '.join(here)}"
        )
    return family


def _build_list(asked: wire.Delivery) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(the build list with the -l of libraries, its items that are not used); 400 for what is forbidden."""
    build = list(asked.build or ())
    names = [f"-l{name}" for name in asked.libraries or ()]
    for item in build:
        if flags.ALWAYS_REFUSED.fullmatch(item):
            raise Refused(
                400, f"flag {shown(item)[1:-1]} is never allowed: every build keeps the judge's own"
            )
    _, refused = flags.split_build_list([*build, *names])
    for item in refused:
        if item in names:
            catalog = ", ".join(sorted(flags.LINKABLE))
            raise Refused(400, f"library {shown(item[2:])} is not in the catalog: {catalog}")
        if item.startswith("-l"):
            raise Refused(400, f"link flag {shown(item)[1:-1]} is not allowed")
    if any("\0" in item for item in build):
        raise Refused(400, "build holds a NUL character")
    return (*build, *names), tuple(refused)


def _workspace(asked: int | str | None, kernel: Kernel, settings: config.Judge) -> tuple[int, str]:
    """(bytes, expression) of a workspace; 400 when it has no value, or too great a one, at a preset."""
    limit = int(settings.limits.kernel_memory_gb * 2**30)
    wrong = f"workspace_bytes is {shown(asked)}; a whole number up to {limit}, or an expression over sizes"
    if asked is None:
        return 0, ""
    if isinstance(asked, int):
        if not 0 <= asked <= limit:
            raise Refused(400, wrong)
        return asked, ""
    names = {name for preset in kernel.presets.values() for name in preset}
    configs = kernel.configs or ({},)
    try:
        for preset in kernel.presets.values():
            for knobs in configs:
                if not 0 <= expressions.integer(asked, {**knobs, **preset}) <= limit:
                    raise Refused(400, wrong)
    except UserError as error:
        sizes = ", ".join(sorted(names | set(configs[0])))
        raise Refused(400, f"workspace_bytes: {error}; names here: {sizes}") from None
    except (ValueError, RecursionError, MemoryError, OverflowError):
        raise Refused(400, wrong) from None
    return 0, asked


def _delivered(
    mode: str, body: Mapping[str, Any], kernel: Kernel, language: str, caller: Caller, place: Place
) -> tuple[str, Path | None]:
    """(source text, the judge's copy of a library)."""
    value = str(body[mode])
    service = place.settings.service
    if mode == "source":
        return value, None
    if place.shared is None:
        raise Refused(400, f"{mode} needs a shared folder, and this judge has none; send source")
    shared = deliveries.Shared(place.shared, None if caller.kernel is None else caller.episode.label)
    if mode == "library":
        return "", deliveries.copy_library(shared, value, place.work, service.max_library_mb * 2**20)
    wanted = kernel.name + languages.get(language).extension
    return deliveries.read_source(shared, value, wanted, service.max_body_mb * 2**20), None
