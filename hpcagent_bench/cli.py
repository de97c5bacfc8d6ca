"""The command line of operators and of people trying things out: ``hpcagent-bench VERB``."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Annotated

import typer

from hpcagent_bench import cli_calibrate, cli_grade, cli_grade_under, cli_kernels, paths
from hpcagent_bench.cli_options import core_list
from hpcagent_bench.errors import UserError

app = typer.Typer(
    name="hpcagent-bench",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Measure whether a model, prompt, skill or tool makes code faster. "
    "Studies are launched with: python -m experiments.launch +study=quickstart\n\n"
    "Example: hpcagent-bench status --follow",
)
seeds_app = typer.Typer(
    no_args_is_help=True,
    help="The secret seeds of a judge.\n\nExample: hpcagent-bench seeds new secret_seeds.json",
)
owed_app = typer.Typer(
    no_args_is_help=True, help="What a study still owes.\n\nExample: hpcagent-bench owed collect"
)
app.add_typer(seeds_app, name="seeds")
app.add_typer(owed_app, name="owed")
app.add_typer(cli_kernels.app, name="kernels")
app.add_typer(cli_grade_under.app, name="grade-under")
app.command()(cli_calibrate.calibrate)
app.command()(cli_grade.grade)


@functools.cache
def _mount_devcluster() -> None:
    from slurm.devcluster import app as devcluster_app

    app.add_typer(devcluster_app, name="devcluster")


@app.command()
def serve(
    run_dir: Annotated[Path | None, typer.Option(help="Folder of the job; default runs/serve.")] = None,
    rank: Annotated[int, typer.Option(min=0, help="This judge's rank; requests must carry it.")] = 0,
    config: Annotated[Path | None, typer.Option(help="Frozen configuration of a run (config.yaml).")] = None,
    judge: Annotated[
        str, typer.Option(help="Judge settings, from conf/judge, without --config.")
    ] = "default",
    sizes: Annotated[str, typer.Option(help="Timed rung, from conf/sizes, without --config.")] = "laptop",
    cores: Annotated[str, typer.Option(help="Timed cores, like 1,2; default the last one granted.")] = "",
    seeds: Annotated[Path | None, typer.Option(help="Secret seeds file.")] = None,
    tokens: Annotated[
        Path | None, typer.Option(help="Folder of workers' tokens; without it everybody is adhoc.")
    ] = None,
    record: Annotated[bool, typer.Option("--record", help="Write every grade to the shard.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 lets the kernel choose.")] = 0,
    with_parent: Annotated[
        bool, typer.Option("--with-parent", help="End when the process that started this one ends.")
    ] = False,
) -> None:
    """Serve a judge on loopback.

    Example: hpcagent-bench serve --sizes tiny, then
    curl -s URL/score -d '{"kernel": "tsvc_2_s311", "language": "c", "rank": 0, "source": "..."}'
    """
    from experiments import compose
    from hpcagent_bench.cluster import serve as service

    judge_settings, size_settings = compose.judge_and_sizes(config, judge, sizes)
    options = service.ServeOptions(
        run_dir or paths.runs_root() / "serve",
        rank,
        core_list(cores),
        seeds,
        tokens,
        record,
        port=port,
        with_parent=with_parent,
    )
    service.serve(options, judge_settings, size_settings)


@seeds_app.command("new")
def seeds_new(path: Annotated[Path, typer.Argument(help="Where to write them; never overwritten.")]) -> None:
    """Draw secret seeds for a judge and write them readable by you alone.

    Example: hpcagent-bench seeds new secret_seeds.json
    """
    if path.exists():
        raise UserError(f"{path} exists", "name another file: replacing seeds makes grades incomparable")
    from hpcagent_bench.harness.seeds import new_seeds

    try:
        new_seeds(path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", "name a file that you can write") from None
    print(f"wrote {path}")


@owed_app.command("collect")
def owed_collect(
    runs: Annotated[
        list[Path] | None, typer.Option(help="A run root, may be repeated; default the latest below runs/.")
    ] = None,
    regrades: Annotated[
        list[Path] | None,
        typer.Option(help="An --out-dir of grade-under run that counts as applied; may be repeated."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """Merge what the jobs recorded and say per setup what is done and what is owed, and why.

    Example: hpcagent-bench owed collect
    """
    from experiments import status as operator

    operator.owed_collect(runs or [], json_, regrades or [])


@app.command()
def status(
    run: Annotated[Path | None, typer.Argument(help="Run root; default the latest below runs/.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Keep showing until it ends.")] = False,
) -> None:
    """Show a running study: queued, running, graded, owed, lost.

    Example: hpcagent-bench status --follow
    """
    from experiments import status as operator

    operator.status(run, json_, follow)


def main() -> None:
    """Entry point: a mistake in what was typed is one line and exit code 2."""
    _mount_devcluster()
    try:
        code = app(standalone_mode=False)
    except UserError as error:
        print(f"hpcagent-bench: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except typer.TyperException as error:
        print(_usage(error), file=sys.stderr, end="")
        raise SystemExit(2) from None
    except typer.Abort:
        raise SystemExit(130) from None
    raise SystemExit(code if isinstance(code, int) else 0)


def _usage(error: typer.TyperException) -> str:
    """One line for a mistyped command; the help of a group that was typed without a verb stays as it is."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "hpcagent-bench"
    message = error.format_message()
    if "\n" in message or not message:
        return message
    return f"{command}: {message.rstrip('.')}; see: {command} --help\n"


if __name__ == "__main__":
    main()
