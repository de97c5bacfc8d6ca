"""Kernels: a folder found by its manifest, with its NumPy reference, arguments, sizes and configurations."""

from __future__ import annotations

import ast
import hashlib
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hpcagent_bench import paths
from hpcagent_bench.corpus import expressions, manifest
from hpcagent_bench.corpus.manifest import ArrayDecl, Manifest
from hpcagent_bench.errors import UserError, did_you_mean

__all__ = ["ArrayDecl", "Kernel", "Manifest", "discover", "load", "task_fingerprint"]

TRACKS = ("loop_level_reasoning", "scientific_computing", "machine_learning")
DATATYPES = ("float64", "float32")
RESERVED = ("workspace", "workspace_size")
_SYMBOL_LENGTH = 63  # Fortran's limit for a name
Number = int | float


@dataclass(frozen=True)
class Kernel:
    """One kernel of the corpus.

    ``symbol`` is the entry point of every compiled delivery (one name for every precision). ``arg_order`` is
    the NumPy reference's own parameter order; ``size_symbols`` are the sizes that scale, sorted. A parameter
    set (``params``) gives every size symbol, and may override knobs; what it leaves out comes from XL and the
    first configuration.
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
        values = self.scalars(params)
        result = {}
        for name, declared in self.arrays.items():
            extents = tuple(expressions.integer(axis, values) for axis in expressions.axes(declared.shape))
            if any(extent < 0 for extent in extents):
                raise UserError(f"kernel {self.name}: array {name} has shape {extents} under {dict(params)}")
            result[name] = extents
        return result

    def dtypes(self, datatype: str = "float64") -> dict[str, str]:
        """Argument name (arrays and scalars) to NumPy dtype name in a run of that precision."""
        if datatype not in DATATYPES:
            raise UserError(f"datatype '{datatype}' is not supported", did_you_mean(datatype, DATATYPES))
        result = {}
        for name, declared in self.arrays.items():
            result[name] = declared.dtype or ("int64" if declared.index_array else datatype)
        for name, value in self._defaults.items():
            result[name] = datatype if isinstance(value, float) else "int64"
        return result

    def input_bytes(self, params: Mapping[str, Number], datatype: str = "float64") -> int:
        """Bytes of all declared arrays under ``params``."""
        dtypes = self.dtypes(datatype)
        total = 0
        for name, extents in self.shapes(params).items():
            count = 1
            for extent in extents:
                count *= extent
            total += count * np.dtype(dtypes[name]).itemsize
        return total

    def load_numpy(self) -> Callable[..., None]:
        """Execute the reference file and return its function, called with ``arg_order``."""
        code = compile(self.numpy_source.read_text(encoding="utf-8"), str(self.numpy_source), "exec")
        namespace: dict[str, Any] = {"__name__": self.numpy_source.stem}
        exec(code, namespace)
        function: Callable[..., None] = namespace[self.function]
        return function


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
    for path in sorted(base.glob("*/**/*.yaml")):
        name = path.stem
        if path.parent.name != name:
            raise UserError(f"{path}: the folder must be called '{name}' like the manifest")
        if not name.isidentifier():
            raise UserError(f"{path}: '{name}' is not a valid identifier")
        if name in found:
            raise UserError(f"kernel '{name}' exists twice: {found[name]} and {path.parent}", "rename one")
        found[name] = path.parent
    return found


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
    function, arg_order = _entry(source, declared.func_name or name)
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
    )
    _check(kernel, path)
    return kernel


def _entry(source: Path, wanted: str) -> tuple[str, tuple[str, ...]]:
    """Name and parameters of the reference: the only top-level def, or the one called ``wanted``."""
    try:
        tree = ast.parse(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{source}: the NumPy reference cannot be read", error.strerror or "") from None
    except SyntaxError as error:
        raise UserError(f"{source}:{error.lineno}: not valid Python", error.msg) from None
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    named = [node for node in functions if node.name == wanted]
    chosen = named or functions
    if len(chosen) != 1:
        raise UserError(
            f"{source}: {len(functions)} functions and none is called '{wanted}'", "set func_name"
        )
    args = chosen[0].args
    if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs or args.defaults:
        raise UserError(f"{source}:{chosen[0].lineno}: parameters must be plain names")
    return chosen[0].name, tuple(arg.arg for arg in args.args)


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
    kept = []
    for row in rows:
        try:
            broken = _violated(declared, row)
        except UserError as error:
            raise UserError(f"{path}: constraints: {error}") from None
        if broken and curated:
            raise UserError(f"{path}: config row {row} violates constraint '{broken}'")
        if not broken:
            kept.append(row)
    if not kept:
        raise UserError(f"{path}: no configuration satisfies the constraints")
    return tuple(kept)


def _violated(declared: Manifest, row: Mapping[str, Number]) -> str | None:
    for constraint in declared.constraints:
        for sizes in declared.sizes.values():
            if not expressions.truth(constraint, {**declared.init.scalars, **sizes, **row}):
                return constraint
    return None


def _check(kernel: Kernel, path: Path) -> None:
    """Arguments of manifest and reference agree, names are usable, every preset gives shapes."""
    scalars = kernel.scalars({})
    arguments = {*kernel.arrays, *scalars}
    clash = set(kernel.arrays) & set(scalars)
    if clash:
        raise UserError(f"{path}: '{min(clash)}' is an array and a scalar", "rename one")
    for name in sorted(arguments):
        if name in RESERVED:
            raise UserError(f"{path}: argument name '{name}' is reserved", "rename it")
        if not name.isidentifier():
            raise UserError(f"{path}: argument name '{name}' is not an identifier")
    for name in kernel.arg_order:
        if name not in arguments:
            raise UserError(
                f"{kernel.numpy_source}: parameter '{name}' is not declared in {path.name}",
                did_you_mean(name, arguments),
            )
    unused = sorted(set(kernel.arrays) - set(kernel.arg_order))
    if unused:
        raise UserError(f"{path}: array '{unused[0]}' is no parameter of {kernel.numpy_source.name}")
    declared = kernel.manifest
    for key, names in (("input_args", declared.input_args), ("array_args", declared.array_args)):
        expected = list(kernel.arg_order) if key == "input_args" else sorted(kernel.arrays)
        if names is not None and sorted(names) != sorted(expected):
            raise UserError(f"{path}: {key} is {names}", f"the reference takes {expected}")
    for preset, sizes in kernel.presets.items():
        try:
            kernel.shapes(sizes)
        except UserError as error:
            raise UserError(f"{path}: preset {preset}: {error}") from None


def task_fingerprint(kernel: Kernel) -> str:
    """SHA-256 of what the kernel asks for (scoring.md 1.1).

    Covers the reference's syntax tree without docstrings and comments, how its arguments are declared and
    filled, the configurations and the entry symbol. Sizes are excluded: a new rung is the same task.
    """
    tree = ast.parse(kernel.numpy_source.read_text(encoding="utf-8"))
    declared = kernel.manifest
    task = {
        "reference": _canonical(tree),
        "arrays": {name: declaration.model_dump() for name, declaration in kernel.arrays.items()},
        "scalars": dict(sorted(declared.init.scalars.items())),
        "parameters": list(kernel.arg_order),
        "outputs": sorted(kernel.outputs),
        "configs": [dict(sorted(row.items())) for row in kernel.configs],
        "symbol": kernel.symbol,
    }
    return hashlib.sha256(json.dumps(task, sort_keys=True).encode()).hexdigest()


def _canonical(node: Any) -> Any:
    """A syntax tree as plain lists that do not change with the Python version: empty fields are left out."""
    if isinstance(node, list):
        return [_canonical(item) for item in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = []
    for name in sorted(node._fields):
        value = getattr(node, name, None)
        if name in ("type_comment", "kind", "ctx") or value is None or value == []:
            continue
        if (
            name == "body"
            and isinstance(node, (ast.Module, ast.FunctionDef))
            and ast.get_docstring(node) is not None
        ):
            value = value[1:]
        fields.append([name, _canonical(value)])
    return [type(node).__name__, fields]
