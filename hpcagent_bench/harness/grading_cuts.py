"""Dates before which grades are owed again: the reader of ``grading_cuts.yaml`` (scoring.md 1.1)."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hpcagent_bench.config import DENOMINATORS
from hpcagent_bench.errors import UserError, did_you_mean
from hpcagent_bench.finals import Cut

FILE = Path(__file__).parent / "grading_cuts.yaml"
REFERENCES = tuple(name for name in DENOMINATORS if not name.startswith("best-of"))
"""Reference kinds a denominator may race."""

_SECTIONS = ("kernels", "references")


@dataclass(frozen=True)
class Cuts:
    """The cuts of a file, by kernel and by reference kind."""

    kernels: Mapping[str, Cut] = field(default_factory=dict)
    references: Mapping[str, Cut] = field(default_factory=dict)

    def of(self, kernel: str, kinds: Iterable[str]) -> Cut | None:
        """The latest cut that concerns a kernel whose denominator races ``kinds``."""
        found = [self.kernels.get(kernel), *(self.references.get(kind) for kind in kinds)]
        return max((cut for cut in found if cut is not None), key=lambda c: c.before_ms, default=None)


def load(kernels: Iterable[str], path: Path = FILE) -> Cuts:
    """The cuts of ``path``; ``kernels`` are those there are.

    UserError: an unknown section, kernel or reference, or a value that is no date, each with file and key.
    """
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, yaml.YAMLError) as error:
        raise UserError(f"{path}: not a YAML file ({str(error).splitlines()[0]})") from None
    if not isinstance(raw, dict):
        raise UserError(f"{path}: a mapping is needed", f"with {' and '.join(_SECTIONS)}")
    for section in raw:
        if section not in _SECTIONS:
            raise UserError(f"{path}: '{section}' is no section", did_you_mean(str(section), _SECTIONS))
    return Cuts(
        _section(raw.get("kernels"), path, "kernels", tuple(kernels)),
        _section(raw.get("references"), path, "references", REFERENCES),
    )


def _section(raw: Any, path: Path, section: str, known: tuple[str, ...]) -> dict[str, Cut]:
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise UserError(f"{path}: {section} is no mapping", "write NAME: DATE lines below it")
    found = {}
    for name, value in raw.items():
        if name not in known:
            raise UserError(
                f"{path}: {section}.{name} is not known", did_you_mean(str(name), known) if known else ""
            )
        found[str(name)] = Cut(str(name), _milliseconds(value, f"{path}: {section}.{name}"))
    return found


def _milliseconds(value: Any, where: str) -> int:
    """UTC epoch ms of a date (its midnight) or of a moment; one without a zone is UTC."""
    if isinstance(value, datetime.datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)
    elif isinstance(value, datetime.date):
        moment = datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.UTC)
    else:
        raise UserError(f"{where}={value!r} is no date", "write for example 2026-01-31")
    return int(moment.timestamp() * 1000)
