"""``hpcagent-bench kernels``: what is in the corpus, what a reference becomes, and whether it is right."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from hpcagent_bench import paths
from hpcagent_bench.errors import UserError, did_you_mean

app = typer.Typer(
    no_args_is_help=True,
    help="The kernels: list, show, emit, new, check.\n\nExample: hpcagent-bench kernels list",
)
Corpus = Annotated[
    Path | None, typer.Option("--corpus", help="Folder of kernels; default the benchmark's own.")
]
Json = Annotated[bool, typer.Option("--json", help="For scripts.")]


def fixtures_folder() -> Path | None:
    """Hand-written accept fixtures; they come with a checkout, not with an installed package."""
    folder = paths.project_root() / "tests" / "corpus" / "fixtures"
    return folder if folder.is_dir() else None


@app.command()
def check(
    kernels: Annotated[list[str] | None, typer.Argument(help="Kernels; default all.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Kernels checked at a time.")] = len(
        os.sched_getaffinity(0)
    ),
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print every check, not only failures.")
    ] = False,
    corpus: Corpus = None,
    json_: Json = False,
) -> None:
    """Pass kernels through the corpus gate: every language, input, right and wrong answer.

    Example: hpcagent-bench kernels check tsvc_2_s311
    """
    from hpcagent_bench.corpus_check import pool
    from hpcagent_bench.report import kernel_check

    names = _names(kernels, corpus)
    reports = []
    with kernel_check.Printer(len(names), quiet=json_, verbose=verbose) as printer:
        for report in pool.check(names, jobs=min(jobs, len(names)), root=corpus, fixtures=fixtures_folder()):
            reports.append(report)
            printer.add(report)
    if json_:
        data: list[dict[str, Any]] = [report.to_json() for report in sorted(reports, key=lambda r: r.kernel)]
        print(json.dumps(data, indent=1))
    raise typer.Exit(0 if all(report.ok for report in reports) else 1)


def _names(kernels: list[str] | None, corpus: Path | None) -> list[str]:
    """The kernels asked for, bare; all of them when none is."""
    from hpcagent_bench.corpus import spec

    if corpus is not None and not corpus.is_dir():
        raise UserError(f"--corpus {corpus}: no such folder")
    known = spec.discover(corpus)
    if not known:
        raise UserError(f"{corpus}: no kernels below it")
    if not kernels:
        return sorted(known)
    names = [kernel.rstrip("/").rpartition("/")[2] for kernel in kernels]
    for name in names:
        if name not in known:
            raise UserError(f"kernel '{name}' does not exist", did_you_mean(name, known))
    return list(dict.fromkeys(names))
