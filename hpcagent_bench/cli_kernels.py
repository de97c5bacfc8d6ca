"""``hpcagent-bench kernels``: what is in the corpus, what a reference becomes, and whether it is right."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, cast

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


@app.command("list")
def list_(
    track: Annotated[str, typer.Option(help="Only this track.")] = "",
    level: Annotated[int, typer.Option(min=0, max=3, help="Only this level; 0 is every one.")] = 0,
    dwarf: Annotated[str, typer.Option(help="Only this dwarf.")] = "",
    tag: Annotated[str, typer.Option(help="Only the kernels of this roster.")] = "",
    corpus: Corpus = None,
    json_: Json = False,
) -> None:
    """List kernels, filtered.

    Example: hpcagent-bench kernels list --track scientific_computing --level 2
    """
    from hpcagent_bench.corpus import spec
    from hpcagent_bench.corpus_check import facts
    from hpcagent_bench.report import kernel_pages

    tags = _tags(corpus)
    rows = [facts.summary(spec.load(name, corpus), tags) for name in _names(None, corpus)]
    for key, wanted in (("track", track), ("dwarf", dwarf.replace(" ", "_")), ("level", level)):
        rows = _only(rows, key, wanted)
    if tag:
        _known("tag", tag, tags)
        rows = [row for row in rows if tag in row["tags"]]
    rows.sort(
        key=lambda row: (row["track"], row["dwarf"] if "scientific" in row["track"] else "", row["kernel"])
    )
    if json_:
        print(json.dumps(rows, indent=1))
    else:
        kernel_pages.print_list(rows, kernel_pages.console())


def _only(rows: list[dict[str, Any]], key: str, wanted: str | int) -> list[dict[str, Any]]:
    """The rows that have ``wanted`` under ``key``; a word that no kernel has is a UserError."""
    if not wanted:
        return rows
    if isinstance(wanted, str):
        _known(key, wanted, {row[key] for row in rows if row[key]})
    return [row for row in rows if row[key] == wanted]


def _known(key: str, wanted: str, known: Iterable[str]) -> None:
    names = sorted(known)
    if wanted not in names:
        raise UserError(f"--{key} {wanted}: no kernel has it", did_you_mean(wanted, names))


def _tags(corpus: Path | None) -> dict[str, tuple[str, ...]]:
    """The rosters of the benchmark's own corpus; another one has none."""
    from hpcagent_bench import study_tags

    if corpus is not None:
        return {}
    return {name: study_tags.load_tag(name) for name in study_tags.known_tags()}


@app.command()
def show(
    kernel: Annotated[str, typer.Argument(help="Its name.")], corpus: Corpus = None, json_: Json = False
) -> None:
    """Show one kernel: mathematics, sizes, bytes and flops, binding, loops, references, tolerances.

    Example: hpcagent-bench kernels show tsvc_2_s311
    """
    from hpcagent_bench.corpus import spec
    from hpcagent_bench.corpus_check import facts
    from hpcagent_bench.report import kernel_pages

    page = facts.page(spec.load(kernel, corpus), _tags(corpus))
    if json_:
        print(json.dumps(page, indent=1))
    else:
        kernel_pages.print_page(page, kernel_pages.console())


@app.command()
def emit(
    kernel: Annotated[str, typer.Argument(help="Its name.")],
    language: Annotated[str, typer.Option(help="c, cpp, fortran or numba.")],
    parallel: Annotated[
        bool | None, typer.Option("--parallel/--sequential", help="Default as the judge's references.")
    ] = None,
    datatype: Annotated[str, typer.Option(help="The run's precision.")] = "float64",
    out: Annotated[Path | None, typer.Option(help="File to write; default standard output.")] = None,
    corpus: Corpus = None,
) -> None:
    """Print a kernel's reference in another language.

    Example: hpcagent-bench kernels emit tsvc_2_s311 --language fortran --parallel
    """
    from hpcagent_bench import translators
    from hpcagent_bench.corpus import datatypes, spec

    if language not in translators.LANGUAGES:
        raise UserError(
            f"--language {language}: not supported", did_you_mean(language, translators.LANGUAGES)
        )
    source = translators.emit(
        spec.load(kernel, corpus),
        cast(translators.Language, language),
        datatypes.parse(datatype),
        parallel=parallel,
    )
    if out is None:
        print(source, end="" if source.endswith("\n") else "\n")
        return
    try:
        paths.write_atomic(out, source)
    except OSError as error:
        raise UserError(f"--out {out}: {error.strerror}", "name a file that you can write") from None
    print(f"wrote {out}")


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Lower-case letters, digits and _.")],
    track: Annotated[str, typer.Option(help="loop_level_reasoning or scientific_computing.")] = "",
    dwarf: Annotated[str, typer.Option(help="Its dwarf, like structured_grids.")] = "",
    level: Annotated[int, typer.Option(min=1, max=3, help="1 to 3; loop kernels have 1 and 2.")] = 1,
    corpus: Corpus = None,
) -> None:
    """Begin a kernel: two files that pass the check as they stand, for you to edit.

    Example: hpcagent-bench kernels new damped_wave --dwarf structured_grids --level 2
    """
    from hpcagent_bench.corpus_check import scaffold

    if not track:
        track = "scientific_computing" if dwarf else "loop_level_reasoning"
    manifest, reference = scaffold.create(name, track, dwarf, level, corpus)
    option = f" --corpus {corpus}" if corpus is not None else ""
    print(f"wrote {reference}\nwrote {manifest}")
    print(f"edit both, then: hpcagent-bench kernels check {name}{option}")


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
