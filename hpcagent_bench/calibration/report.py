"""What an A/A study found: rate, bias and noise per protocol and condition; whether the machine is fit."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpcagent_bench import protocols
from hpcagent_bench.calibration import nominal, spread
from hpcagent_bench.calibration.store import Done
from hpcagent_bench.stats import summary

UNSTABLE_SHARE = 0.1
"""A cause seen in more than this share of the looks makes the machine unstable; one look may be chance."""


@dataclass(frozen=True)
class Finding:
    """One protocol in one condition. Spreads are standard deviations of log time, as fractions.

    ``false`` counts inputs credited, faster or slower, which a user would take for real: suspect ones are
    credited 1 and counted apart, by reason. ``ratio`` is the geometric mean of the plain ratios. ``within``,
    ``between`` and ``draws`` need several runs a process, ``run`` is one run's whole spread from its twin on
    the same draw. ``smallest`` is the smallest ratio a task of this protocol tells from 1.
    """

    stamp: str
    condition: str
    grades: int
    inputs: int
    false: nominal.Rate
    faster: int
    slower: int
    suspect: Mapping[str, int]
    unmeasured: int
    faults: tuple[str, ...]
    ratio: summary.Geomean | None
    within: float | None
    between: float | None
    draws: float | None
    run: float | None
    smallest: float | None

    @property
    def protocol(self) -> protocols.Protocol:
        """The calibration protocol."""
        return protocols.get(self.stamp)

    @property
    def final(self) -> str:
        """The credited protocol that this one calibrates."""
        return self.stamp.removesuffix("-aa")


@dataclass(frozen=True)
class Report:
    """All findings of a study, and what the looks at the node say."""

    facts: Mapping[str, Any]
    findings: tuple[Finding, ...]
    looks: int
    causes: Mapping[str, int]
    notes: tuple[str, ...]

    @property
    def unstable(self) -> tuple[str, ...]:
        """The causes that make this machine unfit, in words; empty on a quiet one."""
        often = {c: n for c, n in self.causes.items() if self.looks and n > UNSTABLE_SHARE * self.looks}
        return tuple(f"{cause} in {count} of {self.looks} looks" for cause, count in sorted(often.items()))

    @property
    def keeping(self) -> dict[str, list[str]]:
        """Condition -> the credited protocols that keep their nominal rate in it."""
        found: dict[str, list[str]] = {finding.condition: [] for finding in self.findings}
        for finding in self.findings:
            if finding.inputs and finding.false.kept:
                found[finding.condition].append(finding.final)
        return found

    def as_json(self) -> dict[str, Any]:
        """The report for scripts."""
        rows = []
        for finding in self.findings:
            row = dataclasses.asdict(finding)
            row["false"] |= {"share": finding.false.share, "kept": finding.false.kept}
            rows.append(row)
        return {
            "machine": dict(self.facts),
            "findings": rows,
            "keeping": self.keeping,
            "looks": self.looks,
            "causes": dict(self.causes),
            "unstable": list(self.unstable),
            "notes": list(self.notes),
        }


def finding(stamp: str, condition: str, done: Sequence[Done]) -> Finding:
    """Sum up the recorded steps of one protocol in one condition."""
    protocol = protocols.get(stamp)
    every = [pair for step in done for pair in step.pairs]
    measured = [pair for pair in every if pair.measured]
    credited = [pair for pair in measured if pair.credited and not pair.suspect]
    tables = [(pair.candidate, pair.baseline) for pair in measured]
    parts = spread.components(tables) if protocol.sampled == "input" else None
    expected = float(nominal.nominal_rate(protocol.runs, protocol.alpha))
    return Finding(
        stamp=stamp,
        condition=condition,
        grades=len(done),
        inputs=len(measured),
        false=nominal.rate(len(credited), len(measured), expected),
        faster=sum(pair.ratio > 1 for pair in credited),
        slower=sum(pair.ratio < 1 for pair in credited),
        suspect=Counter(pair.suspect for pair in measured if pair.suspect),
        unmeasured=len(every) - len(measured),
        faults=tuple(f"{step.step.kernel}: {step.fault}" for step in done if step.fault),
        ratio=summary.geomean_ci([pair.ratio for pair in measured]),
        within=parts.within if parts else None,
        between=parts.between if parts else None,
        draws=parts.draws if parts else None,
        run=spread.run_spread(tables),
        smallest=spread.smallest_ratio(tables, protocol.inputs, protocol.alpha),
    )


def report(
    facts: Mapping[str, Any],
    done: Iterable[Done],
    looks: Sequence[Mapping[str, Any]],
    cells: Sequence[tuple[str, str]],
) -> Report:
    """The report of a study; ``cells`` are the (stamp, condition) it was asked for, in order."""
    steps = list(done)
    findings = [
        finding(
            stamp, condition, [d for d in steps if (d.step.stamp, d.step.condition) == (stamp, condition)]
        )
        for stamp, condition in cells
    ]
    causes: Counter[str] = Counter()
    for look in looks:
        causes.update(_causes(look))
    notes = list(dict.fromkeys(_note(look) for look in looks if look.get("note")))
    return Report(facts, tuple(findings), len(looks), causes, tuple(notes[-3:]))


def _note(look: Mapping[str, Any]) -> str:
    """What was out of bounds in a look, and who was busy then."""
    who = ", ".join(look.get("neighbours", ()))
    return f"{look['note']} ({who})" if who else str(look["note"])


def _causes(look: Mapping[str, Any]) -> set[str]:
    """What a look finds wrong. A governor other than performance shifts clocks within all bounds."""
    found = set(look.get("causes", ()))
    governor = look.get("governor")
    if governor not in (None, "performance"):
        found.add(f"governor {governor}")
    return found
