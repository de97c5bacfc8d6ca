"""A new kernel: two files that pass the gate as they stand, to be edited."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from string import Template

from hpcagent_bench import paths
from hpcagent_bench.corpus import spec
from hpcagent_bench.corpus_check.static import corpus_titles
from hpcagent_bench.errors import UserError, did_you_mean

TRACKS = ("loop_level_reasoning", "scientific_computing")
DWARFS = (
    *("dense_linear_algebra", "sparse_linear_algebra", "spectral_methods", "n_body", "structured_grids"),
    *("unstructured_grids", "dynamic_programming", "graph_traversal", "monte_carlo", "combinational_logic"),
    *("finite_state_machines", "branch_and_bound", "graphical_models"),
)
_TITLE, _SHORT = 30, 14


def create(name: str, track: str, dwarf: str, level: int, root: Path | None = None) -> tuple[Path, Path]:
    """Write manifest and reference of kernel ``name``; what exists, or cannot be, is a UserError."""
    base = root or paths.benchmarks_root()
    _check(name, track, dwarf, base)
    folder = base / track / dwarf / name if track == "scientific_computing" else base / track / name
    if folder.exists():
        raise UserError(f"{folder} exists", "choose another name")
    title, short = _free_titles(name, base)
    values = {
        "name": name,
        "title": title,
        "short": f"\nshort-name: {short}" if short else "",
        "level": level,
        "taxonomy": f"dwarf: {dwarf}, source: TODO" if dwarf else "source: TODO",
    }
    manifest, reference = folder / f"{name}.yaml", folder / f"{name}_numpy.py"
    for path, suffix in ((reference, "py"), (manifest, "yaml")):  # a folder counts once its manifest is there
        text = (Path(__file__).parent / "templates" / f"{track}.{suffix}.txt").read_text(encoding="utf-8")
        paths.write_atomic(path, Template(text).substitute(values))
    return manifest, reference


def _check(name: str, track: str, dwarf: str, base: Path) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise UserError(f"'{name}' cannot be a kernel's name", "use lower-case letters, digits and _")
    if track not in TRACKS:
        raise UserError(f"--track {track}: no kernels can be added there", did_you_mean(track, TRACKS))
    if dwarf and dwarf not in DWARFS:
        raise UserError(f"--dwarf {dwarf}: not known", did_you_mean(dwarf, DWARFS))
    if track == "scientific_computing" and not dwarf:
        raise UserError("a kernel of scientific_computing needs --dwarf", f"one of {', '.join(DWARFS)}")
    known = spec.discover(base)
    if name in known:
        raise UserError(f"kernel '{name}' exists: {known[name]}", "choose another name")


def _free_titles(name: str, base: Path) -> tuple[str, str]:
    """A title and, where that is long, a short name that no other kernel has."""
    taken = {text.casefold() for pair in corpus_titles(base).values() for text in pair}
    words = name.replace("_", " ")
    title = _numbered(words.title(), _TITLE, taken)
    return title, _numbered(words, _SHORT, taken) if len(title) > _SHORT else ""


def _numbered(text: str, length: int, taken: set[str]) -> str:
    """``text`` cut to ``length``, with a number where that is taken."""
    shortened = text[:length].strip()
    number = 2
    while shortened.casefold() in taken:
        shortened = f"{text[: length - len(str(number)) - 1].strip()} {number}"
        number += 1
    return shortened
