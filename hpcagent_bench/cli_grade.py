"""``hpcagent-bench grade``: one file graded once, for whoever wrote it."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcagent_bench import config
from hpcagent_bench.cli_options import core_list
from hpcagent_bench.errors import UserError

if TYPE_CHECKING:
    from hpcagent_bench.cluster.requests import Request
    from hpcagent_bench.harness.context import GradingContext
    from hpcagent_bench.harness.scoring import Verdict

LIBRARY = ".so"


def grade(
    kernel: Annotated[str, typer.Argument(help="Name of the kernel.")],
    file: Annotated[Path, typer.Argument(help="Source (.c .cpp .f90 .py) or shared library (.so).")],
    language: Annotated[str, typer.Option(help="Default what the file's name says; c for a library.")] = "",
    preview: Annotated[
        bool, typer.Option("--preview", help="As /score: two inputs, no held-out cases, no further gates.")
    ] = False,
    sizes: Annotated[str, typer.Option(help="Timed rung, from conf/sizes.")] = "laptop",
    judge: Annotated[str, typer.Option(help="Judge settings, from conf/judge.")] = "default",
    build: Annotated[
        list[str] | None, typer.Option(help="-I, -D, -l or -L for the build, may be repeated.")
    ] = None,
    workspace: Annotated[str, typer.Option(help="Workspace in bytes, or an expression over sizes.")] = "",
    family: Annotated[str, typer.Option(help="Compiler family: gcc or llvm.")] = "",
    cores: Annotated[str, typer.Option(help="Timed cores, like 1,2; default the last one granted.")] = "",
    seeds: Annotated[Path | None, typer.Option(help="Seeds file; default the public ones.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """Grade a file as the judge would: verdict, every input, every gate. Nothing is recorded or credited.

    Ends with 0 when the file is accepted and with 1 when it is not.

    Example: hpcagent-bench grade tsvc_2_s311 mine.c --sizes tiny
    """
    from experiments import compose
    from hpcagent_bench.report import grade_page

    settings, rung = compose.judge_and_sizes(None, judge, sizes)
    settings.service.input_mode = "any"
    settings.measurement.node_check = "off"  # nothing is credited here, so no node needs to be proved
    asked = {"kernel": kernel, "language": language or _language(file), "rank": 0}
    asked |= {"build": build, "compiler": family or None, "workspace_bytes": _bytes(workspace)}
    with tempfile.TemporaryDirectory(prefix="hpcagent-bench-") as work:
        wanted = _read(asked, file, settings, Path(work))
        with grade_page.progress(quiet=json_) as progress:
            context = _context(settings, rung, core_list(cores), seeds, progress, Path(work))
            try:
                verdict = _graded(context, wanted, preview)
            finally:
                context.close()
    facts = grade_page.facts(verdict)
    if json_:
        print(json.dumps(facts, indent=1))
    else:
        grade_page.show(facts)
    sys.exit(0 if verdict.correct else 1)


def _language(file: Path) -> str:
    """The language a file's name stands for."""
    from hpcagent_bench.toolchain import languages

    if file.suffix == LIBRARY:
        return "c"
    known = {entry.extension: name for name, entry in languages.REGISTRY.items()}
    if file.suffix not in known:
        raise UserError(
            f"{file}: the name does not tell its language", f"end it in {' '.join(known)}, or say --language"
        )
    return known[file.suffix]


def _bytes(text: str) -> int | str | None:
    return int(text) if text.isdecimal() else text or None


def _read(asked: dict[str, object], file: Path, settings: config.Judge, work: Path) -> Request:
    """The request this file would be; what the judge would refuse is a UserError."""
    from hpcagent_bench.cluster import requests
    from hpcagent_bench.cluster.identity import ADHOC
    from hpcagent_bench.cluster.refusals import Refused

    if not file.is_file():
        raise UserError(f"{file}: no such file", "name the source to grade")
    if file.suffix == LIBRARY:
        asked = {**asked, "library": file.name}
    else:
        try:
            asked = {**asked, "source": file.read_text(encoding="utf-8")}
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{file}: cannot be read as UTF-8 text", str(error)) from None
    place = requests.Place(settings, 0, file.resolve().parent, work)
    try:
        return requests.read(asked, ADHOC, place)
    except Refused as refused:
        raise UserError(str(refused)) from None


def _context(
    settings: config.Judge,
    sizes: config.Sizes,
    cores: tuple[int, ...],
    seeds: Path | None,
    progress: Callable[..., None],
    work: Path,
) -> GradingContext:
    from hpcagent_bench import seal
    from hpcagent_bench.cluster.serve import timed_cores
    from hpcagent_bench.harness.context import GradingContext
    from hpcagent_bench.harness.seeds import load_seeds

    if settings.grading.seal:
        seal.require_user_namespaces()
    timed = timed_cores(cores, settings.measurement.pin_threads)
    folder = work / "grade"
    folder.mkdir()
    return GradingContext(settings, sizes, timed, load_seeds(seeds), progress, folder)


def _graded(context: GradingContext, wanted: Request, preview: bool) -> Verdict:
    from hpcagent_bench.harness import grade_under

    if preview:
        return grade_under.score_grade(context, wanted.submission)
    return grade_under.submit_grade(context, wanted.submission)
