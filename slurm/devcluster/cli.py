"""``hpcagent-bench devcluster up|down|status``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from slurm.devcluster.down import down as take_down
from slurm.devcluster.layout import Shape
from slurm.devcluster.status import Status
from slurm.devcluster.status import status as look
from slurm.devcluster.system import DevclusterError
from slurm.devcluster.up import up as bring_up

app = typer.Typer(
    no_args_is_help=True,
    help="A real Slurm on this one machine: controller, nodes, accounting.\n\n"
    "Example: hpcagent-bench devcluster up",
)

Root = Annotated[
    Path | None, typer.Option(help="Folder of the cluster; default /run/hpcagent-devcluster for root.")
]
Json = Annotated[bool, typer.Option("--json", help="For scripts.")]


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except DevclusterError as error:
        print(f"hpcagent-bench: {error}", file=sys.stderr)
        raise SystemExit(1) from None


def _show(state: Status, as_json: bool) -> None:
    if as_json:
        print(json.dumps(state.to_dict()))
        return
    if not state.exists:
        print(f"no cluster under {state.root}; start one with: hpcagent-bench devcluster up")
        return
    dead = [name for name, runs in state.daemons.items() if not runs]
    print(f"{'up' if state.up else 'NOT WELL'}: {state.root}")
    print("nodes: " + " ".join(f"{node}={slurm_state}" for node, slurm_state in state.nodes.items()))
    if dead:
        print(f"not running: {' '.join(dead)}; start again with: hpcagent-bench devcluster up")
    print(f"to use it, type: {state.export_line}")


@app.command()
def up(
    root: Root = None,
    spr: Annotated[int | None, typer.Option(help="Nodes in partition spr (default 4).")] = None,
    h20: Annotated[int | None, typer.Option(help="Nodes in partition h20 (default 2).")] = None,
    cpus: Annotated[int | None, typer.Option(help="CPUs each node claims (default 8).")] = None,
    json_: Json = False,
) -> None:
    """Bring the cluster up; if it is up, start what died. A few seconds.

    Example: hpcagent-bench devcluster up
    """
    given = {name: value for name, value in (("spr", spr), ("h20", h20), ("cpus", cpus)) if value is not None}
    with _failures():
        state = bring_up(
            root, Shape(**given) if given else None, say=lambda line: print(line, file=sys.stderr)
        )
    _show(state, json_)


@app.command()
def down(root: Root = None, json_: Json = False) -> None:
    """End the cluster and its jobs and remove everything of it.

    Example: hpcagent-bench devcluster down
    """
    with _failures():
        there_was = take_down(root)
    if json_:
        print(json.dumps({"down": True, "was_there": there_was}))
    else:
        print("down" if there_was else "nothing was up")


@app.command()
def status(root: Root = None, json_: Json = False) -> None:
    """Say what runs; the exit code is 0 when all is well, else 1.

    Example: hpcagent-bench devcluster status
    """
    with _failures():
        state = look(root)
    _show(state, json_)
    raise SystemExit(0 if state.up else 1)
