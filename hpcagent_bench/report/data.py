"""A run's design, answers and owed work, read once for every page of its report."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hpcagent_bench.episodes import Work
from hpcagent_bench.owed import OwedItem, OwedPlan, episode_facts, plan
from hpcagent_bench.stats.population import Answer, answers
from hpcagent_bench.stats.summary import SetupSummary, summarise


@dataclass(frozen=True)
class RunReport:
    """What a run was designed to answer and what it has answered so far."""

    root: Path
    designed: tuple[Work, ...]
    answers: dict[Work, Answer]
    owed: OwedPlan
    summaries: tuple[SetupSummary, ...]

    @cached_property
    def slots(self) -> dict[tuple[str, str], list[Work]]:
        """The slots of each (setup, kernel)."""
        found: dict[tuple[str, str], list[Work]] = defaultdict(list)
        for work in self.designed:
            found[work.setup, work.kernel].append(work)
        return found

    @property
    def owed_items(self) -> tuple[OwedItem, ...]:
        """What is owed: episodes, then final grades."""
        return (*self.owed.owed, *self.owed.ungraded)

    @cached_property
    def owed_class(self) -> dict[Work, str]:
        """The class of each owed piece of work."""
        return {item.work: item.owed_class for item in self.owed_items}

    @cached_property
    def flying(self) -> frozenset[Work]:
        """The work in flight."""
        return frozenset(self.owed.in_flight)

    @property
    def setups(self) -> list[str]:
        """Setup names in the design's order."""
        return list(dict.fromkeys(work.setup for work in self.designed))

    @property
    def kernels(self) -> list[str]:
        """Kernel names in the design's order."""
        return list(dict.fromkeys(work.kernel for work in self.designed))


def load(
    run_root: Path, designed: Iterable[Work] | None = None, in_flight: Collection[Work] = ()
) -> RunReport:
    """Read ``<run_root>/results.db``; the design comes from the caller, else plan.json, else the rows."""
    facts = episode_facts(run_root / "results.db")
    work = tuple(designed) if designed is not None else designed_work(run_root)
    if not work:
        work = tuple(sorted({episode.work for episode in facts}))
    found = answers(facts)
    return RunReport(run_root, work, found, plan(work, facts, in_flight), tuple(summarise(work, found)))


def designed_work(run_root: Path) -> tuple[Work, ...]:
    """The designed work that ``plan.json`` lists under ``designed``; none when it lists none."""
    try:
        told = json.loads((run_root / "plan.json").read_text())
        listed = told.get("designed", []) if isinstance(told, dict) else []
        return tuple(dict.fromkeys(_work(item) for item in listed))
    except (OSError, ValueError, TypeError, KeyError):
        return ()


def _work(item: Any) -> Work:
    if isinstance(item, dict):
        return Work(str(item["setup"]), str(item["kernel"]), int(item.get("slot", 1)))
    setup, kernel, *slot = item
    return Work(str(setup), str(kernel), int(slot[0]) if slot else 1)
