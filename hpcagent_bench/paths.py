"""Where things lie on disk, and how a file is written so that no reader ever sees half of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def project_root() -> Path:
    """The folder that holds the package ``hpcagent_bench``: a checkout, a snapshot or site-packages."""
    return Path(__file__).resolve().parent.parent


def package_root() -> Path:
    """The folder of the ``hpcagent_bench`` package itself."""
    return Path(__file__).resolve().parent


def benchmarks_root() -> Path:
    """The kernel corpus."""
    return package_root() / "benchmarks"


def conf_root() -> Path:
    """The Hydra configuration tree: beside the packages in a checkout, inside this one when installed."""
    installed = package_root() / "conf"
    return installed if installed.is_dir() else project_root() / "conf"


def cache_root() -> Path:
    """Compiled helpers and reference builds; safe to delete. ``HPCAGENT_BENCH_CACHE`` moves it."""
    chosen = os.environ.get("HPCAGENT_BENCH_CACHE")
    base = Path(chosen) if chosen else Path.home() / ".cache" / "hpcagent-bench"
    base.mkdir(parents=True, exist_ok=True)
    return base


def runs_root() -> Path:
    """Default folder of run trees: ``runs/`` where the command is typed."""
    return Path.cwd() / "runs"


def write_atomic(path: Path, data: str | bytes, mode: int | None = None) -> None:
    """Write ``data`` to a side file, fsync it, rename it over ``path`` and fsync the folder."""
    raw = data.encode() if isinstance(data, str) else data
    path.parent.mkdir(parents=True, exist_ok=True)
    fd, side = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as handle:
            handle.write(raw)
            handle.flush()
            os.fchmod(handle.fileno(), 0o644 if mode is None else mode)
            os.fsync(handle.fileno())
        Path(side).replace(path)
    except BaseException:
        Path(side).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
