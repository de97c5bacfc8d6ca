"""Token components of one attempt, from what its harness wrote down (scoring.md section 8)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcagent_agent.driver.files import read_untrusted

MAX_USAGE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Usage:
    """Components of one attempt in tokens; ``output_source`` "none" says that nothing was counted (T9)."""

    fresh_input: int = 0
    cached_input: int = 0
    output: int = 0
    billed: int = 0
    calls: int = 0
    compactions: int = 0
    output_source: str = "none"

    @property
    def effective(self) -> int:
        """The effective card: fresh input plus output."""
        return self.fresh_input + self.output


def fold(calls: Iterable[dict[str, Any]]) -> Usage:
    """The perfect-prefix fold over model calls with disjoint counts input, cached_input, output, reasoning.

    What one prompt shares in length with the one before it counts as cached; a prompt that shrank was
    rebuilt (a compaction) and counts as fresh as a whole (T13).
    """
    fresh = cached = output = billed = number = compactions = previous = 0
    for call in calls:
        prompt = _count(call, "input") + _count(call, "cached_input")
        produced = _count(call, "output") + _count(call, "reasoning")
        if prompt < previous:
            compactions += 1
            fresh += prompt
        else:
            fresh += prompt - previous
            cached += previous
        previous = prompt
        output += produced
        billed += prompt + produced
        number += 1
    return Usage(fresh, cached, output, billed, number, compactions, "usage_jsonl" if number else "none")


def read_usage(path: Path) -> Usage:
    """Fold a runner's ``usage.jsonl``; a missing file or a broken line counts nothing."""
    return fold(_records(path))


def _records(path: Path) -> list[dict[str, Any]]:
    raw = read_untrusted(path, MAX_USAGE_BYTES) or b""
    found: list[dict[str, Any]] = []
    for line in raw.splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue  # the last line may be half written while its harness runs
        if isinstance(record, dict):
            found.append(record)
    return found


def _count(record: dict[str, Any], key: str) -> int:
    value = record.get(key, 0)
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return max(0, value)
