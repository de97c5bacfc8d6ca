"""Starting one judge: its settings, its shard, a loopback port chosen by the kernel, and its files."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import uvicorn

from hpcagent_bench import config, paths, protocols, results_db, seal
from hpcagent_bench.cluster.desk import Desk
from hpcagent_bench.cluster.judge_service import Office, create_app, warm_corpus
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness import pinning
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.machine.node import LookFile
from hpcagent_bench.harness.seeds import load_seeds

GRACE_S = 5
"""How long a stopping judge lets open answers finish."""

PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class ServeOptions:
    """One judge. ``run_dir`` is the job's folder; ``cores`` are the timed ones, empty for the last core.

    ``tokens`` is the folder of workers' tokens: only their holders are served. None serves everybody, as a
    person trying things out, and files their grades under ``adhoc``.
    """

    run_dir: Path
    rank: int = 0
    cores: tuple[int, ...] = ()
    seeds: Path | None = None
    tokens: Path | None = None
    record: bool = False
    host: str = "127.0.0.1"
    port: int = 0
    with_parent: bool = False

    @property
    def folder(self) -> Path:
        """The judge's own folder in the job's."""
        return self.run_dir / "judge" / f"rank-{self.rank}"

    @property
    def work(self) -> Path:
        """Where grades build; emptied by the next judge of this rank should this one be killed."""
        return self.folder / "work"

    @property
    def shard(self) -> Path:
        """The database this rank alone writes."""
        return self.folder / f"hpcagent_bench{self.rank}.db"


class ProgressFile:
    """Says in ``progress.json`` what the judge is doing; a reader never sees half of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._facts: dict[str, object] = {}
        self._guard = threading.Lock()

    def __call__(self, phase: str, **facts: object) -> None:
        """Note a phase. ``grading`` starts a new set of facts; ``idle`` clears them."""
        with self._guard:
            if phase in ("grading", "idle"):
                self._facts = {}
            self._facts.update(facts)
            body = {"phase": phase, **self._facts, "ts": time.time()}
            side = self.path.with_suffix(".tmp")
            try:
                side.write_text(json.dumps(body))
                side.replace(self.path)
            except OSError:
                return  # a full disk must not spoil a grade for want of a progress line


class JudgeServer(uvicorn.Server):
    """Tells where it listens once it really does, and the desk at once when it is told to stop."""

    def __init__(
        self, settings: uvicorn.Config, announce: Callable[[], None], stop: Callable[[], None]
    ) -> None:
        super().__init__(settings)
        self._announce = announce
        self._stop = stop

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The handler of SIGTERM and SIGINT."""
        self._stop()
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then announce."""
        await super().startup(sockets)
        self._announce()


def timed_cores(asked: tuple[int, ...], pin_threads: bool) -> tuple[int, ...]:
    """The cores grading children are pinned to; they must be in this process's real affinity mask.

    ``pin_threads`` leaves one hardware thread per physical core (measurement.pin_threads).
    """
    granted = sorted(os.sched_getaffinity(0))
    if not asked:
        return (granted[-1],)
    missing = [core for core in asked if core not in granted]
    if missing:
        raise UserError(
            f"--cores {','.join(map(str, asked))}: core {missing[0]} is not granted to this process",
            f"granted are {','.join(map(str, granted))}",
        )
    return pinning.one_per_physical_core(asked) if pin_threads else asked


def leave_timed_cores(cores: Iterable[int]) -> None:
    """Keep this thread, and those it starts, off the timed cores where the process was granted others.

    What agents ask for meanwhile must not disturb what is timed; the desk's own thread takes all cores back.
    """
    others = pinning.granted() - set(cores)
    quiet = others - {sibling for core in cores for sibling in pinning.siblings(core)}
    if others:
        os.sched_setaffinity(0, quiet or others)


def end_with_parent() -> None:
    """Have the kernel send SIGTERM when the process that started this one dies."""
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def fresh_folder(path: Path) -> Path:
    """An empty folder at ``path``: what a killed judge left there is gone."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def make_office(options: ServeOptions, settings: config.Judge, sizes: config.Sizes) -> Office:
    """Check everything a judge needs before it serves: tokens, seal, protocol, seeds, corpus, shard."""
    if options.tokens is not None and not options.tokens.is_dir():
        raise UserError(
            f"--tokens {options.tokens}: no such folder", "name the job's fused-tokens, or leave it out"
        )
    if settings.grading.seal:
        seal.require_user_namespaces()
    protocols.credited(settings.measurement.credited_protocol)
    warm_corpus()
    options.folder.mkdir(parents=True, exist_ok=True)
    seeds = load_seeds(options.seeds)
    progress = ProgressFile(options.folder / "progress.json")
    cores = timed_cores(options.cores, settings.measurement.pin_threads)
    context = GradingContext(settings, sizes, cores, seeds, progress, fresh_folder(options.work))
    context.node.keep = LookFile(options.folder / "node.jsonl")
    if options.record and not options.shard.exists():
        results_db.create(options.shard)
    shared = options.run_dir / "shared"
    return Office(
        Desk(context, options.shard if options.record else None),
        options.rank,
        settings,
        options.tokens,
        shared if shared.is_dir() else None,
    )


def serve(options: ServeOptions, settings: config.Judge, sizes: config.Sizes) -> None:
    """Serve until SIGTERM or SIGINT. Prints the address and writes it to ``service.json``."""
    if options.with_parent:
        end_with_parent()
    office = make_office(options, settings, sizes)
    leave_timed_cores(office.desk.context.cores)
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((options.host, options.port))
    url = f"http://{options.host}:{listener.getsockname()[1]}"

    def announce() -> None:
        body = {"url": url, "pid": os.getpid(), "rank": options.rank}
        office.desk.context.progress("idle")
        paths.write_atomic(options.folder / "service.json", json.dumps(body))
        print(f"judge rank {options.rank} serves at {url}", flush=True)

    server = JudgeServer(
        uvicorn.Config(
            create_app(office),
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=GRACE_S,
        ),
        announce,
        office.desk.stop,
    )
    try:
        server.run(sockets=[listener])
    finally:
        office.desk.close()  # also where an impatient second signal skipped the application's own end
