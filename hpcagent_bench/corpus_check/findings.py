"""What a check found, as plain data that survives a process boundary and a cache file."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Status = Literal["ok", "failed", "n/a", "note"]


@dataclass(frozen=True)
class Finding:
    """One check of one kernel: its name, how it ended, what was seen and what to do about it.

    ``share`` is a measured error as a share of the band (accept fixtures only).
    """

    check: str
    status: Status
    detail: str = ""
    hint: str = ""
    share: float | None = None


@dataclass
class Report:
    """Everything the gate says about a kernel. ``draws`` counts the inputs NumPy answered."""

    kernel: str
    findings: list[Finding] = field(default_factory=list)
    languages: tuple[str, ...] = ()
    draws: int = 0
    seconds: float = 0.0
    cached: bool = False

    @property
    def ok(self) -> bool:
        return not self.failures

    @property
    def failures(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.status == "failed"]

    def under(self, prefix: str) -> list[Finding]:
        """The findings of the checks whose name starts with ``prefix``."""
        return [finding for finding in self.findings if finding.check.startswith(prefix)]

    def add(
        self, check: str, status: Status, detail: str = "", hint: str = "", share: float | None = None
    ) -> None:
        self.findings.append(Finding(check, status, detail, hint, share))

    def to_json(self) -> dict[str, Any]:
        """Plain data; an infinite share becomes None, which JSON can say."""
        findings = [asdict(finding) for finding in self.findings]
        for finding in findings:
            if finding["share"] is not None and not math.isfinite(finding["share"]):
                finding["share"] = None
        return {**vars(self), "findings": findings, "ok": self.ok}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Report:
        findings = [Finding(**item) for item in data["findings"]]
        return cls(
            data["kernel"], findings, tuple(data["languages"]), data["draws"], data["seconds"], data["cached"]
        )
