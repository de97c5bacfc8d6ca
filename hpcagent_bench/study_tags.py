"""Tags: the rosters of kernels a study serves every setup, one text file each under ``tags/``."""

from __future__ import annotations

from pathlib import Path

from hpcagent_bench import paths
from hpcagent_bench.corpus import spec
from hpcagent_bench.errors import UserError, did_you_mean


def tags_root() -> Path:
    """The folder of the tag files."""
    return paths.package_root() / "tags"


def known_tags(root: Path | None = None) -> tuple[str, ...]:
    """Every tag there is, sorted."""
    return tuple(sorted(path.stem for path in (root or tags_root()).glob("*.txt")))


def load_tag(name: str, root: Path | None = None) -> tuple[str, ...]:
    """The kernels of a tag in file order: one a line, ``#`` starts a comment; ``root`` holds the tag files.

    An unknown tag, an unknown or repeated kernel and an empty roster are UserErrors with file and line.
    """
    path = (root or tags_root()) / f"{name}.txt"
    if name not in known_tags(root):
        raise UserError(f"tag '{name}' does not exist in {path.parent}", did_you_mean(name, known_tags(root)))
    corpus = spec.discover()
    first_seen: dict[str, int] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        kernel = line.partition("#")[0].strip()
        if not kernel:
            continue
        if kernel not in corpus:
            raise UserError(
                f"{path}:{number}: kernel '{kernel}' does not exist", did_you_mean(kernel, corpus)
            )
        if kernel in first_seen:
            raise UserError(
                f"{path}:{number}: kernel '{kernel}' is listed twice, first in line {first_seen[kernel]}"
            )
        first_seen[kernel] = number
    if not first_seen:
        raise UserError(f"{path}: the tag names no kernel", "write one kernel a line")
    return tuple(first_seen)
