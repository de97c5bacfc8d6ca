"""Kernels: a folder found by its manifest, with its NumPy reference, arguments, sizes and configurations."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from hpcagent_bench import paths
from hpcagent_bench.corpus import consistency, datatypes, expressions, manifest, reference
from hpcagent_bench.corpus.datatypes import DATATYPES
from hpcagent_bench.corpus.fingerprint import task_fingerprint
from hpcagent_bench.corpus.manifest import ArrayDecl, Manifest
from hpcagent_bench.errors import UserError, did_you_mean

__all__ = ["DATATYPES", "ArrayDecl", "Kernel", "Manifest", "discover", "load", "task_fingerprint"]

TRACKS = ("loop_level_reasoning", "scientific_computing", "machine_learning")
_SYMBOL_LENGTH = 63  # Fortran's limit for a name
Number = int | float


@dataclass(frozen=True)
class Kernel:
    """One kernel of the corpus.

    ``symbol`` is the entry point of every compiled delivery (one name for every precision). ``arg_order`` is
    the NumPy reference's own parameter order; ``size_symbols`` are the sizes that scale, sorted. A parameter
    set (``params``) gives every size symbol, and may override knobs; what it leaves out comes from XL and the
    first configuration. ``initializer`` is the file of the custom initialisation, None where every array is
    drawn as declared.
    """

    name: str
    track: str
    folder: Path
    manifest: Manifest = field(hash=False)
    symbol: str
    numpy_source: Path
    function: str
    arg_order: tuple[str, ...]
    size_symbols: tuple[str, ...]
    configs: tuple[dict[str, Number], ...] = field(hash=False)
    initializer: Path | None = None

    @property
    def level(self) -> int:
        return self.manifest.level

    @property
    def arrays(self) -> dict[str, ArrayDecl]:
        """Array arguments, sorted by name."""
        declared = self.manifest.init.arrays
        return {name: declared[name] for name in sorted(declared)}

    @property
    def outputs(self) -> tuple[str, ...]:
        """The graded buffers, as the manifest orders them."""
        return tuple(self.manifest.output_args)

    @property
    def presets(self) -> dict[str, dict[str, int]]:
        """Every symbol of every preset, preset-constant ones included."""
        return {preset: dict(self.manifest.sizes[preset]) for preset in manifest.PRESETS}

    @cached_property
    def _defaults(self) -> dict[str, Number]:
        return {**self.presets["XL"], **self.manifest.init.scalars, **self.configs[0]}

    def scalars(self, params: Mapping[str, Number]) -> dict[str, Number]:
        """Every scalar argument, sizes included, by name (sorted); an undeclared name is a UserError."""
        for name in params:
            if name not in self._defaults:
                raise UserError(
                    f"kernel {self.name}: '{name}' is no parameter", did_you_mean(name, self._defaults)
                )
        merged = {**self._defaults, **params}
        return {name: merged[name] for name in sorted(merged)}

    def shapes(self, params: Mapping[str, Number]) -> dict[str, tuple[int, ...]]:
        """Array name to extents under ``params``; a negative extent is a UserError."""
        return dict(_shapes(self, tuple(params.items())))

    def interval(self, name: str, params: Mapping[str, Number]) -> tuple[Number, Number] | None:
        """The declared interval of an array under ``params``, or None; an empty one is a UserError."""
        domain = self.manifest.init.arrays[name].domain
        if not isinstance(domain, tuple):
            return None
        values = self.scalars(params)
        lo, hi = (expressions.number(end, values) if isinstance(end, str) else end for end in domain)
        if lo > hi:
            raise UserError(
                f"kernel {self.name}: array {name} has the empty domain [{lo}, {hi}] under {dict(params)}"
            )
        return lo, hi

    @property
    def precisions(self) -> tuple[str, ...]:
        """Datatypes the kernel is checked in: the manifest's, none below its floor."""
        floor = self.manifest.min_precision
        named = [datatypes.PRECISIONS[p] for p in self.manifest.precisions]
        return tuple(p for p in named if floor is None or self.precise_enough(p))

    def precise_enough(self, datatype: str) -> bool:
        """Whether a run of that precision is at or above the manifest's ``min_precision``."""
        floor = self.manifest.min_precision
        return floor is None or DATATYPES.index(datatype) <= DATATYPES.index(datatypes.PRECISIONS[floor])

    def dtypes(self, datatype: str = "float64") -> dict[str, str]:
        """Argument name (arrays and scalars) to element type (datatypes.py) in a run of that precision."""
        datatype = datatypes.parse(datatype)
        if not self.precise_enough(datatype):
            raise UserError(
                f"kernel {self.name} needs {self.manifest.min_precision} at least, not {datatype}",
                f"run it in {self.manifest.min_precision}",
            )
        result = {}
        for name, declared in self.arrays.items():
            result[name] = declared.dtype or ("int64" if declared.index_array else datatype)
        for name, value in self._defaults.items():
            result[name] = datatype if isinstance(value, float) else "int64"
        return {**result, **self.manifest.init.scalar_dtypes}

    def broken_constraint(self, params: Mapping[str, Number]) -> str | None:
        """The first constraint of the manifest that does not hold under ``params``, or None."""
        if not self.manifest.constraints:
            return None
        values = self.scalars(params)
        return next((c for c in self.manifest.constraints if not expressions.truth(c, values)), None)

    def input_bytes(self, params: Mapping[str, Number], datatype: str = "float64") -> int:
        """Bytes of all declared arrays under ``params``."""
        dtypes, shapes = self.dtypes(datatype), self.shapes(params)
        return sum(
            math.prod(extents) * datatypes.numpy_dtype(dtypes[name]).itemsize
            for name, extents in shapes.items()
        )

    def workspace_floor(self, params: Mapping[str, Number]) -> int:
        """Bytes of scratch memory every call gets under ``params`` at least."""
        declared = self.manifest.init.workspace
        if declared is None:
            return 0
        if isinstance(declared.bytes, int):
            return declared.bytes
        return expressions.integer(declared.bytes, self.scalars(params))

    def load_numpy(self) -> Callable[..., None]:
        """Execute the reference file and return its function, called with ``arg_order``."""
        return reference.load_function(self.numpy_source, self.function)

    def load_initializer(self) -> Callable[..., Any]:
        """Execute the file of the custom initialisation and return its function."""
        assert self.initializer is not None
        return reference.load_function(self.initializer, self.manifest.init.func_name or "")


@lru_cache(maxsize=512)
def _shapes(
    kernel: Kernel, params: tuple[tuple[str, Number], ...]
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Name and extents of every array; remembered, since a grade asks for the same many times."""
    values = kernel.scalars(dict(params))
    result = []
    for name, declared in kernel.arrays.items():
        extents = tuple(expressions.integer(axis, values) for axis in expressions.axes(declared.shape))
        if any(extent < 0 for extent in extents):
            raise UserError(f"kernel {kernel.name}: array {name} has shape {extents} under {dict(params)}")
        result.append((name, extents))
    return tuple(result)


def entry_symbol(name: str) -> str:
    """``<stem>_fp64``, lower-cased; a name too long for Fortran is folded with a digest."""
    symbol = f"{name.lower()}_fp64"
    if len(symbol) <= _SYMBOL_LENGTH:
        return symbol
    digest = hashlib.sha256(symbol.encode()).hexdigest()[:8]
    return f"{symbol[: _SYMBOL_LENGTH - len(digest) - 1]}_{digest}"


def discover(root: Path | None = None) -> dict[str, Path]:
    """Kernel name to folder for every manifest under ``root`` (default: the corpus); duplicates refused."""
    base = root or paths.benchmarks_root()
    found: dict[str, Path] = {}
    for path in _manifests(base):
        name = path.stem
        if path.parent.name != name:
            raise UserError(f"{path}: the folder must be called '{name}' like the manifest")
        if not name.isidentifier():
            raise UserError(f"{path}: '{name}' is not a valid identifier")
        if name in found:
            raise UserError(f"kernel '{name}' exists twice: {found[name]} and {path.parent}", "rename one")
        found[name] = path.parent
    return found


def _manifests(base: Path) -> list[Path]:
    """Every YAML file below a track's folder, sorted. A walk: pathlib's globbing takes ten times as long."""
    return sorted(
        Path(folder, file)
        for folder, _, files in os.walk(base)
        for file in files
        if file.endswith(".yaml") and Path(folder) != base
    )


def load(name: str, root: Path | None = None) -> Kernel:
    """The kernel called ``name`` (bare, or a path key ``track/.../name``); unknown is a UserError."""
    base = root or paths.benchmarks_root()
    folders = discover(base)
    bare = name.rstrip("/").rpartition("/")[2]
    folder = folders.get(bare)
    if folder is None:
        raise UserError(f"kernel '{name}' does not exist", did_you_mean(bare, folders))
    key = folder.relative_to(base).as_posix()
    if "/" in name and name.rstrip("/") != key:
        raise UserError(f"kernel '{name}' does not exist", f"did you mean '{key}'?")
    return _build(bare, folder, base)


def _build(name: str, folder: Path, base: Path) -> Kernel:
    path = folder / f"{name}.yaml"
    declared = manifest.read(path)
    track = folder.relative_to(base).parts[0]
    if track not in TRACKS:
        raise UserError(f"{path}: track '{track}' is not known", did_you_mean(track, TRACKS))
    source = folder / f"{name}_numpy.py"
    function, arg_order = reference.entry(source, declared.func_name or name)
    sizes = declared.sizes
    free = sorted(s for s in sizes["XL"] if len({sizes[preset][s] for preset in sizes}) > 1)
    kernel = Kernel(
        name=name,
        track=track,
        folder=folder,
        manifest=declared,
        symbol=entry_symbol(name),
        numpy_source=source,
        function=function,
        arg_order=arg_order,
        size_symbols=tuple(free),
        configs=_configs(declared, path),
        initializer=folder / f"{name}.py" if declared.init.func_name else None,
    )
    consistency.check(kernel, path)
    return kernel


def _configs(declared: Manifest, path: Path) -> tuple[dict[str, Number], ...]:
    """All configurations that satisfy the constraints; a curated row that violates one is refused."""
    curated = isinstance(declared.config, list)
    if isinstance(declared.config, list):
        rows = [dict(row) for row in declared.config] or [{}]
        if any(set(row) != set(rows[0]) for row in rows):
            raise UserError(f"{path}: config: every row must set the same keys")
    else:
        knobs = list(declared.config)
        products = itertools.product(*(declared.config[knob].values for knob in knobs))
        rows = [dict(zip(knobs, values, strict=True)) for values in products]
    clash = set(rows[0]) & set(declared.sizes["XL"])
    if clash:
        raise UserError(f"{path}: '{min(clash)}' is a size and a knob", "keep one of the two")
    kept, broken = [], None
    for row in rows:
        try:
            broken = _violated(declared, row)
        except UserError as error:
            raise UserError(f"{path}: constraints: {error}") from None
        if broken and curated:
            raise UserError(f"{path}: config row {row} violates constraint {broken}")
        if not broken:
            kept.append(row)
    if not kept:
        raise UserError(f"{path}: no configuration satisfies constraint {broken}")
    return tuple(kept)


def _violated(declared: Manifest, row: Mapping[str, Number]) -> str | None:
    """The constraint, and the preset, that a configuration breaks."""
    for constraint in declared.constraints:
        for preset in manifest.PRESETS:
            values = {**declared.init.scalars, **declared.sizes[preset], **row}
            if not expressions.truth(constraint, values):
                return f"'{constraint}' at preset {preset}"
    return None
