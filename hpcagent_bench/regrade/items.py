"""One submission that is owed a final grade, as a line of a worklist (JSON Lines)."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import types
import typing
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcagent_bench import paths
from hpcagent_bench.corpus import sizing, spec
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness.submission import Submission

_NAMESPACE = uuid.UUID("6a2c6c0e-7a0f-4f36-9d0c-3b9a1f1f5f10")
"""Makes the request id of a promotion from its item's key: a promotion is recognised when met again."""

SPARE_WORKSPACE = 64 << 20
"""What a submission whose workspace is not on record gets beyond its kernel's array bytes."""


@dataclass(frozen=True)
class Item:
    """A grade row that is to be graded finally; ``promoted``: to be submitted first.

    ``episode_id`` is the episode's label; (job, episode_id, rep, kernel, ts_ms, kind) names the row across
    databases, ``grade_id`` in ``db``. ``final``, ``speedup`` and ``reduction`` are of the final row it has
    now (its id, S_i or None, stamp). ``protocol``, ``denominator`` and ``preset`` are what it is to be graded
    under.
    """

    db: str
    grade_id: int
    episode_id: str
    rep: int
    job: int | None
    slot: int
    setup: str
    kernel: str
    ts_ms: int
    kind: str
    language: str
    source_mode: str | None
    source_hash: str
    workspace_bytes: int | None
    libraries: list[str]
    promoted: bool
    submissions: int
    reason: str
    protocol: str
    denominator: str
    preset: str | None
    final: int | None = None
    speedup: float | None = None
    reduction: str | None = None

    @property
    def key(self) -> str:
        """The natural key of the row."""
        return natural_key(self.job, self.episode_id, self.rep, self.kernel, self.kind, self.ts_ms)

    @property
    def request_id(self) -> str:
        """The request id a promotion of this item is recorded under."""
        return uuid.uuid5(_NAMESPACE, self.key).hex


def natural_key(job: int | None, label: str, rep: int, kernel: str, kind: str, ts_ms: int) -> str:
    """The natural key of a grade row as one text."""
    return json.dumps([-1 if job is None else job, label, rep, kernel, kind, ts_ms])


def write(path: Path, items: list[Item]) -> None:
    """Write a worklist whole or not at all."""
    lines = (json.dumps(dataclasses.asdict(item), sort_keys=True) for item in items)
    try:
        paths.write_atomic(path, "".join(f"{line}\n" for line in lines))
    except OSError as error:
        raise UserError(f"--out {path}: {error.strerror}", "name a file that you can write") from None


def read(path: Path) -> list[Item]:
    """The items of a worklist; UserError with the line of what is none, and when an item is there twice."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path}: no worklist ({error})", "make one with: hpcagent-bench grade-under worklist"
        ) from None
    items = [_item(line, f"{path}:{n}") for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    twice = {item.key for item in items}
    if len(twice) < len(items):
        raise UserError(f"{path}: an item is listed twice", "make the worklist again")
    return items


def _item(line: str, where: str) -> Item:
    try:
        raw = json.loads(line)
    except ValueError:
        raw = None
    if not isinstance(raw, dict):
        raise UserError(f"{where}: not a JSON object")
    hints = typing.get_type_hints(Item)
    needed = {f.name for f in dataclasses.fields(Item) if f.default is dataclasses.MISSING}
    problem = next((name for name in sorted(needed) if name not in raw), "")
    if problem:
        raise UserError(f"{where}: {problem} is missing", "make the worklist again")
    known = {name: value for name, value in raw.items() if name in hints}
    for name, value in known.items():
        if not _fits(value, hints[name]):
            raise UserError(f"{where}: {name}={value!r} does not fit", "make the worklist again")
    return Item(**known)


def _fits(value: Any, kind: Any) -> bool:
    """Whether a JSON value has the type of its field."""
    if isinstance(kind, types.UnionType):
        return any(_fits(value, part) for part in typing.get_args(kind))
    if kind is type(None):
        return value is None
    if typing.get_origin(kind) is list:
        return isinstance(value, list) and all(isinstance(part, str) for part in value)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def find(conn: sqlite3.Connection, item: Item) -> sqlite3.Row:
    """The item's grade row with its source text; UserError when the database holds it no more."""
    row = conn.execute(
        "SELECT g.*, s.hash, s.language, t.text FROM grades g JOIN episodes e ON e.id = g.episode_id "
        "LEFT JOIN grade_sources s ON s.grade_id = g.id AND s.part = 'host' LEFT JOIN sources t USING (hash) "
        "WHERE coalesce(e.job, -1) = ? AND e.label = ? AND e.rep = ? AND g.kernel = ? AND g.kind = ? "
        "AND g.ts_ms = ?",
        (
            -1 if item.job is None else item.job,
            item.episode_id,
            item.rep,
            item.kernel,
            item.kind,
            item.ts_ms,
        ),
    ).fetchone()
    if row is None or row["hash"] != item.source_hash:
        raise UserError(
            f"{item.db} does not hold the {item.kind} of {item.episode_id} on {item.kernel} any more",
            "make the worklist again",
        )
    assert isinstance(row, sqlite3.Row)
    return row


def submission_of(row: sqlite3.Row, rung: dict[str, int], datatype: str) -> Submission:
    """A recorded row as it was handed in; ``rung`` are the sizes a missing workspace is guessed for."""
    kernel = spec.load(row["kernel"])
    workspace = row["workspace_bytes"]
    if workspace is None:
        workspace = kernel.input_bytes(rung, datatype) + SPARE_WORKSPACE
    return Submission(
        kernel=kernel,
        language=row["language"],
        source=row["text"],
        build=tuple(json.loads(row["requested_build"] or "[]")),
        workspace_bytes=workspace,
        source_mode=row["source_mode"] or "source",
        family=compiler_family(row["build_commands"]),
        libraries=tuple(json.loads(row["requested_libraries"] or "[]")),
    )


def rung_of(kernel: Kernel, sizes: Any, datatype: str) -> dict[str, int]:
    """The sizes of the timed rung with the knobs that its byte count needs."""
    return {**kernel.configs[0], **sizing.rung(kernel, sizes, datatype)}  # type: ignore[dict-item]


def compiler_family(build_commands: str | None) -> str:
    """The family that built a submission, read off the recorded command: ``llvm`` for clang, else ``gcc``."""
    commands = json.loads(build_commands or "[]")
    first = str(commands[0]).split(" ", 1)[0] if commands else ""
    return "llvm" if Path(first).name.startswith(("clang", "flang")) else "gcc"
