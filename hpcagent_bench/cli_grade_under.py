"""``hpcagent-bench grade-under``: final grades of recorded submissions, made later, on one node or many."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcagent_bench.cli_options import core_list
from hpcagent_bench.errors import UserError

if TYPE_CHECKING:
    from hpcagent_bench import config as settings
    from hpcagent_bench.harness.context import GradingContext
    from hpcagent_bench.regrade.items import Item

app = typer.Typer(
    no_args_is_help=True,
    help="Grade recorded submissions again: worklist, run, apply.\n\n"
    "Example: hpcagent-bench grade-under worklist --db runs/RUN/results.db --out worklist.jsonl",
)
Config = Annotated[
    Path | None,
    typer.Option("--config", help="Frozen configuration (config.yaml); default that beside the database."),
]
JudgeName = Annotated[
    str, typer.Option("--judge", help="Judge settings from conf/judge, where no configuration is.")
]
Stamp = Annotated[
    str, typer.Option("--protocol", help="Another final protocol than the credited one, like mwp4x5.")
]
Json = Annotated[bool, typer.Option("--json", help="For scripts.")]


@app.command()
def worklist(
    db: Annotated[list[Path], typer.Option("--db", help="A results database, may be repeated.")],
    out: Annotated[Path, typer.Option("--out", help="Worklist to write (JSON Lines).")],
    protocol: Stamp = "",
    config: Config = None,
    judge: JudgeName = "default",
    all_: Annotated[
        bool, typer.Option("--all", help="Also accepted submissions that a later one of theirs supersedes.")
    ] = False,
    json_: Json = False,
) -> None:
    """List what is owed a final grade: stale, faulted, missing and foreign ones, and what to promote.

    A submission is owed one when it has none, or only one under another protocol or denominator, without the
    seal, older than a cut in grading_cuts.yaml, or spoilt by a fault of the judge. An episode that ended
    without a submission has its last correct preview promoted to one. Nothing is graded here.

    Example: hpcagent-bench grade-under worklist --db runs/RUN/results.db --out worklist.jsonl
    """
    from hpcagent_bench.regrade import items
    from hpcagent_bench.regrade import worklist as lists

    found = lists.build(db, lambda path: _judge(config, judge, path), protocol or None, every=all_)
    items.write(out, found.items)
    for line in lists.left_out(found):
        print(line, file=sys.stderr)
    print(json.dumps(lists.summary(found, out)) if json_ else "\n".join(lists.told(found, out)))


@app.command()
def run(
    worklist: Annotated[Path, typer.Option("--worklist", help="What grade-under worklist wrote.")],
    out_dir: Annotated[Path, typer.Option("--out-dir", help="Folder of the grades; shards may share it.")],
    shard: Annotated[
        int | None, typer.Option("--shard", min=0, help="Take items[i::n]; default SLURM_PROCID, else 0.")
    ] = None,
    shards: Annotated[
        int | None, typer.Option("--shards", min=1, help="n; default SLURM_NTASKS, else 1.")
    ] = None,
    aa: Annotated[
        bool, typer.Option("--aa", help="Time the baseline against itself; such rows are never credited.")
    ] = False,
    protocol: Stamp = "",
    config: Config = None,
    judge: JudgeName = "default",
    sizes: Annotated[
        str, typer.Option(help="Timed rung from conf/sizes; default the one the items were graded at.")
    ] = "",
    seeds: Annotated[Path | None, typer.Option(help="Secret seeds file; default the judge's own.")] = None,
    cores: Annotated[str, typer.Option(help="Timed cores, like 1,2; default the last one granted.")] = "",
    json_: Json = False,
) -> None:
    """Grade a worklist, or one shard of it. The same command goes on where it was stopped.

    Every grade is committed before the next one begins: final grades to regrade-cells-I.db, promoted
    submissions to regrade-I.db, calibrations (--aa) to regrade-aa-I.db of the folder. What any shard holds
    there is not graded again, faults of the judge excepted. Shards on one host take turns at timing. Exit
    code 1: something is left.

    Example: srun -n 8 hpcagent-bench grade-under run --worklist worklist.jsonl --out-dir out --seeds FILE
    """
    from hpcagent_bench.regrade import items
    from hpcagent_bench.regrade import run as grades

    shard, shards = _place(shard, shards)
    options = grades.Options(worklist, out_dir, shard, shards, aa)
    listed = items.read(worklist)
    context = _context(listed, protocol, config, judge, sizes, seeds, cores, out_dir)
    report = grades.run(options, context, lambda line: print(line, file=sys.stderr, flush=True))
    if json_:
        print(json.dumps({"shard": shard, "shards": shards, "out_dir": str(out_dir), **report.to_json()}))
    else:
        print(f"shard {shard} of {shards}: {report.line()}")
        if report.complete and not aa:
            print(f"when every shard is done: hpcagent-bench grade-under apply --into DB {out_dir}")
    raise typer.Exit(0 if report.complete else 1)


@app.command()
def apply(
    outputs: Annotated[list[Path], typer.Argument(help="Folders or databases that run wrote.")],
    into: Annotated[Path, typer.Option("--into", help="Results database that gets the grades.")],
    on_protocol_change: Annotated[
        str,
        typer.Option(
            "--on-protocol-change",
            help="new-row keeps a final grade under another protocol beside the new one, replace deletes it.",
        ),
    ] = "new-row",
    json_: Json = False,
) -> None:
    """Put grades into a results database: one final row per submission and protocol.

    A final grade under the protocol of the row that is there rewrites that row. Applying again changes
    nothing; calibrations stay out.

    Example: hpcagent-bench grade-under apply --into runs/RUN/results.db regrades
    """
    from hpcagent_bench.regrade import apply as applying

    done = applying.apply(into, outputs, applying.protocol_change(on_protocol_change))
    for path, reason in done.skipped:
        print(f"not applied: {path}: {reason}", file=sys.stderr)
    if done.strangers:
        print(f"left out: {done.strangers} grades of episodes that {into} does not hold", file=sys.stderr)
    print(json.dumps(done.to_json()) if json_ else done.line())
    raise typer.Exit(1 if done.skipped else 0)


def _place(shard: int | None, shards: int | None) -> tuple[int, int]:
    """Which shard of how many: as typed, else as Slurm says, else the only one."""
    told = [
        _slurm("SLURM_PROCID", 0) if shard is None else shard,
        _slurm("SLURM_NTASKS", 1) if shards is None else shards,
    ]
    return told[0], told[1]


def _slurm(name: str, otherwise: int) -> int:
    text = os.environ.get(name, "")
    try:
        return int(text) if text else otherwise
    except ValueError:
        raise UserError(f"{name}={text} is no number", "type --shard and --shards") from None


def _beside(dbs: Iterable[Path]) -> Path | None:
    """The one configuration that lies beside all of these databases."""
    from hpcagent_bench.harness.final_rule import CONFIG

    found = {path.parent / CONFIG for path in dbs}
    one = found.pop() if len(found) == 1 else None
    return one if one is not None and one.is_file() else None


def _judge(config: Path | None, judge: str, db: Path) -> settings.Judge:
    """The judge settings a database's grades are held against."""
    from experiments import compose
    from hpcagent_bench.harness import final_rule

    frozen = config or _beside([db])
    return final_rule.frozen_judge(frozen) if frozen else compose.judge_and_sizes(None, judge, "xl")[0]


def _context(
    listed: Sequence[Item],
    protocol: str,
    config: Path | None,
    judge: str,
    sizes: str,
    seeds: Path | None,
    cores: str,
    out_dir: Path,
) -> GradingContext:
    """A judge's grading context for these items, with its seal and its seeds checked."""
    from experiments import compose
    from hpcagent_bench import protocols, seal
    from hpcagent_bench.cluster.serve import timed_cores
    from hpcagent_bench.harness.context import GradingContext
    from hpcagent_bench.harness.seeds import load_seeds

    frozen = config or _beside(Path(item.db) for item in listed)
    if frozen is not None and not sizes:
        chosen, rung = compose.judge_and_sizes(frozen, judge, "")
    else:
        chosen = compose.judge_and_sizes(frozen, judge, sizes or "xl")[0]
        rung = compose.judge_and_sizes(None, judge, sizes or _rung(listed))[1]
    if frozen is not None:
        print(f"configuration: {frozen}", file=sys.stderr)
    measurement = chosen.measurement
    if protocol:
        stamp = protocols.credited(protocol).stamp
        measurement = dataclasses.replace(measurement, credited_protocol=stamp)
    if not measurement.timing_lock:  # shards on one host must not time at once
        lock = out_dir.absolute() / f".timing-{platform.node()}.lock"
        measurement = dataclasses.replace(measurement, timing_lock=str(lock))
    chosen = dataclasses.replace(chosen, measurement=measurement)
    if chosen.grading.seal:
        seal.require_user_namespaces()
    granted = timed_cores(core_list(cores), chosen.measurement.pin_threads)
    return GradingContext(chosen, rung, granted, load_seeds(seeds))


def _rung(listed: Sequence[Item]) -> str:
    """The member of conf/sizes whose rung all items were graded at."""
    rungs = sorted({item.preset.lower() for item in listed if item.preset})
    if len(rungs) > 1:
        raise UserError(
            f"the worklist holds grades at the rungs {', '.join(rungs)}, which are never pooled",
            "make one worklist a rung, or name one with --sizes",
        )
    return rungs[0] if rungs else "xl"
