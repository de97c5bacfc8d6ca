"""The run tree on disk: finding a study's run root, its lock, its frozen code and seeds, its waves."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import py_compile
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcagent_bench import paths
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness.seeds import new_seeds

PLAN = "plan.json"
CONFIG = "config.yaml"
SEEDS = "secret_seeds.json"
FROZEN = ("hpcagent_bench", "experiments", "slurm", "agent/hpcagent_agent", "conf")
_SKIPPED = shutil.ignore_patterns("__pycache__", "*.pyc", ".*", "secret_seeds.json")


@dataclass(frozen=True)
class RunRoot:
    """One run root, ``<runs>/<experiment>-<stamp>``."""

    path: Path

    @property
    def waves(self) -> Path:
        """Folder of wave records, node job specs and the jobs' pointers."""
        return self.path / "waves"

    @property
    def results(self) -> Path:
        """The merged database."""
        return self.path / "results.db"

    @property
    def seeds(self) -> Path:
        """The secret seeds, readable by the judge alone."""
        return self.path / SEEDS

    def plan(self) -> dict[str, Any]:
        """The last plan; a run root without a readable one is a UserError."""
        try:
            found = json.loads((self.path / PLAN).read_text())
        except (OSError, ValueError):
            raise UserError(f"{self.path} is no run root: {PLAN} is missing or broken") from None
        return dict(found)

    def wave_records(self) -> list[dict[str, Any]]:
        """The waves launched so far, oldest first."""
        files = [p for p in self.waves.glob("*.json") if p.stem.isdigit()]
        return [json.loads(p.read_text()) for p in sorted(files, key=lambda p: int(p.stem))]

    def save_wave(self, record: dict[str, Any]) -> None:
        """Write a wave's record; readers see the old or the new one."""
        paths.write_atomic(self.waves / f"{record['wave']}.json", json.dumps(record, indent=1))


def all_roots(runs: Path) -> list[RunRoot]:
    """The run roots below ``runs``, oldest first."""
    found = [p.parent for p in runs.glob(f"*/{PLAN}")] if runs.is_dir() else []
    return [RunRoot(p) for p in sorted(found, key=_age)]


def _age(root: Path) -> tuple[str, int, str]:
    """Roots sort by the stamp in their name, then by the number that tells twins of one second apart."""
    parts = root.name.split("-")
    stamp = next((i for i, p in enumerate(parts) if len(p) == 8 and p.isdigit()), len(parts))
    twin = parts[stamp + 2] if len(parts) > stamp + 2 else "1"
    return "-".join(parts[stamp : stamp + 2]), int(twin) if twin.isdigit() else 1, root.name


def newest(runs: Path) -> RunRoot:
    """The newest run root, else a UserError that says how to make one."""
    found = all_roots(runs)
    if not found:
        raise UserError(f"{runs} holds no run", "launch one: python -m experiments.launch +study=quickstart")
    return found[-1]


def find(runs: Path, identity: str) -> RunRoot | None:
    """The newest run root of the study with this identity."""
    for root in reversed(all_roots(runs)):
        with contextlib.suppress(UserError):
            if root.plan().get("identity") == identity:
                return root
    return None


def create(runs: Path, experiment: str) -> RunRoot:
    """A new run root with its seeds; two made in one second get two folders."""
    if "%" in str(runs.absolute()):
        raise UserError(
            f"runs={runs}: Slurm reads '%' in a log path as a pattern", "choose a folder without it"
        )
    stamp = time.strftime("%Y%m%d-%H%M%S")
    try:
        runs.mkdir(parents=True, exist_ok=True)
        path = _fresh_folder(runs, f"{experiment}-{stamp}")
    except OSError as error:
        raise UserError(f"runs={runs}: {error.strerror}", "name a folder you can write: runs=PATH") from None
    root = RunRoot(path)
    root.waves.mkdir()
    new_seeds(root.seeds)
    return root


def _fresh_folder(runs: Path, name: str) -> Path:
    number = 1
    while True:
        path = runs / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            number += 1
            continue
        return path.absolute()


@contextlib.contextmanager
def launch_lock(runs: Path, experiment: str) -> Iterator[None]:
    """Held while a launch plans and submits, so that two of them cannot submit the same work."""
    try:
        runs.mkdir(parents=True, exist_ok=True)
        handle = (runs / f".launch-{experiment}.lock").open("a+")
    except OSError as error:
        raise UserError(f"runs={runs}: {error.strerror}", "name a folder you can write: runs=PATH") from None
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            handle.seek(0)
            who = handle.read().strip() or "another process"
            raise UserError(f"{who} is launching {experiment} here", "wait until it has submitted") from None
        handle.truncate(0)
        handle.write(f"process {os.getpid()} on {socket.gethostname()}")
        handle.flush()
        yield


def snapshot(root: RunRoot, source: Path | None = None) -> Path:
    """Freeze the code and configuration that jobs run; the same content is stored once.

    Returns ``<run root>/code/<digest>``. Jobs read only that folder, so edits to the checkout reach none of
    them.
    """
    source = source or paths.project_root()
    code = root.path / "code"
    code.mkdir(exist_ok=True)
    side = Path(tempfile.mkdtemp(prefix=".", dir=code))
    try:
        for origin, name in _parts(source).items():
            shutil.copytree(source / origin, side / name, ignore=_SKIPPED, symlinks=True)
        target = code / tree_digest(side)
        if target.is_dir():
            shutil.rmtree(side)
        else:
            _compile(side, target)
            side.chmod(0o755)
            side.rename(target)
    except BaseException:
        shutil.rmtree(side, ignore_errors=True)
        raise
    return target


def _parts(source: Path) -> dict[str, str]:
    """Folders to freeze, with their places in a snapshot, which is laid out as a checkout is."""
    if (source / "hpcagent_bench" / "conf").is_dir():
        packages = {"hpcagent_bench": "hpcagent_bench", "experiments": "experiments", "slurm": "slurm"}
        return {**packages, "hpcagent_agent": "agent/hpcagent_agent"}
    return {name: name for name in FROZEN if (source / name).is_dir()}


def _compile(side: Path, target: Path) -> None:
    """Byte-compile for where the code will lie: jobs start faster, and broken code is refused early."""
    for path in sorted(side.rglob("*.py")):
        shown = target / path.relative_to(side)
        try:
            py_compile.compile(str(path), dfile=str(shown), doraise=True)
        except py_compile.PyCompileError as error:
            line = getattr(error.exc_value, "lineno", None) or 1
            raise UserError(
                f"{path.relative_to(side)}:{line}: {error.exc_value.args[0]}", "mend it first"
            ) from None


def tree_digest(folder: Path) -> str:
    """Digest over the names and contents of a folder's files."""
    total = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix != ".pyc"):
        body = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(folder)}\0{body}\n".encode())
    return total.hexdigest()[:16]
