"""What ``kernels check`` prints: one line a kernel as it is done, then why the others failed."""

from __future__ import annotations

import time
from dataclasses import replace
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from hpcagent_bench.corpus_check.findings import Finding, Report

_MARK = {"ok": "[green]ok    [/]", "failed": "[red]failed[/]", "n/a": "n/a   ", "note": "[yellow]note  [/]"}


class Printer:
    """Prints reports as they come; a progress bar on standard error where that is a terminal."""

    def __init__(self, total: int, *, quiet: bool, verbose: bool) -> None:
        self._out = Console(highlight=False, soft_wrap=True)
        self._quiet, self._verbose = quiet, verbose
        self._done: list[Report] = []
        self._started = time.monotonic()
        self._bar = Progress(
            TextColumn("checking"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not Console(stderr=True).is_terminal,
        )
        self._task = self._bar.add_task("kernels", total=total)

    def __enter__(self) -> Printer:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        if not self._quiet and kind is None:
            self._summary()

    def add(self, report: Report) -> None:
        self._done.append(report)
        self._bar.advance(self._task)
        if self._quiet:
            return
        console = self._bar.console if self._bar.live.is_started and not self._bar.disable else self._out
        console.print(line(report))
        wanted = ("ok", "n/a", "failed", "note") if self._verbose else ("failed", "note")
        for finding in merged([item for item in report.findings if item.status in wanted]):
            console.print(detail(finding))

    def _summary(self) -> None:
        failed = sorted(report.kernel for report in self._done if not report.ok)
        cached = sum(report.cached for report in self._done)
        seconds = time.monotonic() - self._started
        known = f", {cached} unchanged since they passed" if cached else ""
        self._out.print(
            f"{len(self._done) - len(failed)} of {len(self._done)} kernels pass{known} ({seconds:.1f} s)"
        )
        if failed:
            self._out.print(f"[red]failed: {', '.join(failed)}[/]")


def line(report: Report) -> str:
    """One kernel: verdict, languages, inputs, how near the band honest rewrites come, rejects, time."""
    accepts = report.under("accept:")
    rejects = report.under("reject:")
    shares = [finding.share for finding in accepts if finding.share is not None]
    parts = [f"{report.draws} inputs in {' '.join(report.languages) or 'no language'}"]
    if shares:
        parts.append(f"{len(shares)} rewrites use {share(max(shares))} of the band")
    if rejects:
        caught = sum(finding.status == "ok" for finding in rejects)
        asked = sum(finding.status != "n/a" for finding in rejects)
        parts.append(f"{caught}/{asked} wrong answers caught")
    parts.append("cached" if report.cached else f"{report.seconds:.1f} s")
    verdict = "[green]ok    [/]" if report.ok else "[red]failed[/]"
    return f"{verdict} {report.kernel:<28} {', '.join(parts)}"


def merged(findings: list[Finding]) -> list[Finding]:
    """Neighbours that failed in the same words are told once: a construct no language covers."""
    result: list[Finding] = []
    for finding in findings:
        last = result[-1] if result else None
        if last and finding.status == last.status == "failed" and finding.detail == last.detail:
            name = f"{last.check}, {finding.check.rpartition(': ')[2]}"
            result[-1] = replace(last, check=name)
        else:
            result.append(finding)
    return result


def detail(finding: Finding) -> str:
    """One check, indented below its kernel, with what to do next."""
    text = f"   {_MARK[finding.status]} {finding.check}"
    if finding.share is not None:
        text += f": {share(finding.share)} of the band"
    if finding.detail:
        text += f": {escape(finding.detail)}"
    if finding.hint:
        text += f"\n          -> {escape(finding.hint)}"
    return text


def share(value: float) -> str:
    """A share of the band, in percent with two digits."""
    if value == 0:
        return "0 %"
    return f"{100 * value:.2g} %" if value < 10 else f"{value:.2g} times"
