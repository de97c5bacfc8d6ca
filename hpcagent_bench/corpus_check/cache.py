"""Reports of kernels that passed, kept until anything that could change them changes."""

from __future__ import annotations

import functools
import json
import platform
from importlib import metadata
from pathlib import Path

from hpcagent_bench import paths
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.corpus_check.findings import Report
from hpcagent_bench.toolchain import languages, tool_cache

_ROOMS = ("corpus", "corpus_check", "support", "toolchain", "translators")
_SUFFIXES = (".py", ".c", ".h")


def key(kernel: Kernel, fixtures: list[Path], clash: str) -> str:
    """Content of the kernel, its hand-written fixtures, our own code, and the compilers and processor."""
    own = [path for path in sorted(kernel.folder.iterdir()) if path.is_file()]
    files = [part for path in (*own, *fixtures) for part in (path.name, path.read_bytes())]
    return tool_cache.digest([_tools(), clash, *files])


@functools.cache
def _tools() -> str:
    """One digest of everything that is the same for all kernels."""
    parts: list[str | bytes] = [tool_cache.cpu_model(), platform.python_version()]
    parts += [metadata.version(name) for name in ("numpy", "numba")]
    drivers = sorted({driver for entry in languages.REGISTRY.values() for driver in entry.compilers.values()})
    parts += [tool_cache.compiler_version(driver) for driver in drivers]
    parts.append((paths.conf_root() / "sizes" / "laptop.yaml").read_bytes())
    for room in _ROOMS:
        for path in sorted((paths.package_root() / room).rglob("*")):
            if path.suffix in _SUFFIXES:
                parts += [path.name, path.read_bytes()]
    return tool_cache.digest(parts)


def _path(digest: str) -> Path:
    return paths.cache_root() / "kernel-check" / "passed" / f"{digest}.json"


def load(digest: str) -> Report | None:
    """The report kept under this key, if there is one."""
    try:
        report = Report.from_json(json.loads(_path(digest).read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    report.cached = True
    return report


def keep(digest: str, report: Report) -> None:
    """Remember a report; only one that passed, so that a failure is always looked at afresh."""
    if report.ok:
        paths.write_atomic(_path(digest), json.dumps(report.to_json()))
