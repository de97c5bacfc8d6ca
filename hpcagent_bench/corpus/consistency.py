"""Checks of a whole kernel: its files agree, sizes fit, every preset can be drawn."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hpcagent_bench.corpus import expressions, reference
from hpcagent_bench.corpus.size_forms import GENERATED, Constructed, Derived
from hpcagent_bench.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from hpcagent_bench.corpus.spec import Kernel

RESERVED = ("workspace", "workspace_size")
_LOOPS = "loop_level_reasoning"
_GIB = 2**30
XL_CEILING = 12 * _GIB
XL_CEILING_LOOPS = 4 * _GIB
"""Bytes of one XL input in double precision, and that of a loop-level kernel."""


def check(kernel: Kernel, path: Path) -> None:
    """Refuse a kernel whose parts contradict one another; every mistake is a UserError naming the file."""
    _names(kernel, path)
    _reference(kernel, path)
    _declared_arguments(kernel, path)
    _initializer(kernel, path)
    _blocks(kernel, path)
    _fuzzed(kernel, path)
    _presets(kernel, path)


def ceiling(track: str) -> int:
    """The most bytes the arrays of one XL input may take."""
    return XL_CEILING_LOOPS if track == _LOOPS else XL_CEILING


def _names(kernel: Kernel, path: Path) -> None:
    scalars = kernel.scalars({})
    clash = set(kernel.arrays) & set(scalars)
    if clash:
        raise UserError(f"{path}: '{min(clash)}' is an array and a scalar", "rename one")
    for name in sorted({*kernel.arrays, *scalars}):
        if name in RESERVED:
            raise UserError(f"{path}: argument name '{name}' is reserved", "rename it")
        if not name.isidentifier():
            raise UserError(f"{path}: argument name '{name}' is not an identifier")


def _reference(kernel: Kernel, path: Path) -> None:
    arguments = {*kernel.arrays, *kernel.scalars({})}
    for name in kernel.arg_order:
        if name in kernel.manifest.init.constants:
            raise UserError(
                f"{kernel.numpy_source}: parameter '{name}' is a constant in {path.name}",
                "constants are never passed; write its value",
            )
        if name not in arguments:
            raise UserError(
                f"{kernel.numpy_source}: parameter '{name}' is not declared in {path.name}",
                did_you_mean(name, arguments),
            )
    unused = sorted(set(kernel.arrays) - set(kernel.arg_order))
    if unused:
        raise UserError(f"{path}: array '{unused[0]}' is no parameter of {kernel.numpy_source.name}")


def _declared_arguments(kernel: Kernel, path: Path) -> None:
    declared = kernel.manifest
    for key, names in (("input_args", declared.input_args), ("array_args", declared.array_args)):
        expected = list(kernel.arg_order) if key == "input_args" else sorted(kernel.arrays)
        if names is not None and sorted(names) != sorted(expected):
            raise UserError(f"{path}: {key} is {names}", f"the reference takes {expected}")


def _initializer(kernel: Kernel, path: Path) -> None:
    init = kernel.manifest.init
    if kernel.initializer is None or init.func_name is None:
        return
    for name in init.input_args:
        _known(name, kernel.scalars({}), f"{path}: init.input_args")
    reference.initializer(kernel.initializer, init.func_name, init.input_args)


def _blocks(kernel: Kernel, path: Path) -> None:
    """``baseline`` and ``mpi`` name things that exist; a loop kernel is no whole application."""
    declared = kernel.manifest
    if kernel.track == _LOOPS and declared.level == 3:
        raise UserError(f"{path}: level = 3: a loop-level kernel is no whole application", "write 1 or 2")
    if declared.baseline is not None and not (kernel.folder / declared.baseline.source).is_file():
        raise UserError(f"{path}: baseline.source: no file '{declared.baseline.source}' beside the manifest")
    if declared.mpi is None:
        return
    sizes = kernel.presets["XL"]
    for symbol in [*declared.mpi.decomposition.axis, *declared.mpi.symbol_axes]:
        _known(symbol, sizes, f"{path}: mpi")
    named = [array for array, _ in declared.mpi.symbol_axes.values()]
    for name in [*declared.mpi.arrays, *declared.mpi.location, *named]:
        _known(name, kernel.arrays, f"{path}: mpi")


def _known(name: str, choices: Iterable[str], where: str) -> None:
    if name not in choices:
        raise UserError(f"{where}: '{name}' is not declared", did_you_mean(name, choices))


def _fuzzed(kernel: Kernel, path: Path) -> None:
    known = {*kernel.scalars({}), GENERATED}
    for symbol, form in kernel.manifest.fuzzed.items():
        if isinstance(form, (Derived, Constructed)):
            for name in sorted(expressions.symbols(form.expression)):
                _known(name, known, f"{path}: fuzzed.{symbol}: '{form.expression}'")


def _presets(kernel: Kernel, path: Path) -> None:
    for preset, sizes in kernel.presets.items():
        try:
            kernel.shapes(sizes)
            kernel.workspace_floor(sizes)
            for name in kernel.arrays:
                kernel.interval(name, sizes)
        except UserError as error:
            raise UserError(f"{path}: preset {preset}: {error}") from None
    taken, most = kernel.input_bytes(kernel.presets["XL"], kernel.precisions[0]), ceiling(kernel.track)
    if taken > most:
        raise UserError(
            f"{path}: preset XL takes {taken / _GIB:.2f} GiB of arrays",
            f"at most {most // _GIB} GiB are allowed",
        )
