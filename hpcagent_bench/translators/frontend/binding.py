"""Names for arrays: which array or view a name stands for, and what memory it gets when it is a new one."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.frontend.arrays import Array, Axis, Index, Place, at_place
from hpcagent_bench.translators.frontend.knowledge import rewrite
from hpcagent_bench.translators.frontend.promotion import Operand, kind
from hpcagent_bench.translators.frontend.reading import ExpressionReader, text
from hpcagent_bench.translators.frontend.sums import ZERO, same

_EMPTY = ("empty", "empty_like")
_ZEROED = ("zeros", "zeros_like")


@dataclass
class Binding(ExpressionReader):
    """Binds names to arrays as assignments do in Python."""

    own: dict[str, str] = field(default_factory=dict)  # the memory that belongs to a name
    stores: Counter[str] = field(default_factory=Counter)  # how often each name is assigned in the text

    def usable(self, name: str, node: ast.AST, again: bool = False) -> None:
        """Refuse names that mean something else and, unless ``again``, the index of a loop that has ended."""
        if name in ("workspace", "workspace_size", "np"):
            raise self.refusal(node, f"the name '{name}', which is reserved,", "rename it")
        if name in self.finished and not again:
            raise self.refusal(node, f"'{name}', an index of an earlier loop,", "give it a name of its own")

    def bind(self, name: str, value: Array, source: ast.expr, node: ast.AST) -> None:
        """``name = value``: another name for a view, memory of its own for anything computed."""
        self.usable(name, node)
        if name in self.locals or name in self.scalars:
            raise self.refusal(node, f"'{name}' as a scalar and an array", "rename one")
        if not value.axes:
            raise self.refusal(node, f"'{text(source)}', an array without axes,")
        if value.place is not None and not value.copied:
            value = self.frozen(value, name, node)
        else:
            value = self.copy_for(name, value, source)
        self.bound[name] = value
        self.unclear.pop(name, None)

    def copy_for(self, name: str, value: Array, source: ast.expr) -> Array:
        """The value in the memory that belongs to the name, or in new memory while that is in use."""
        if value.guard is not None:
            value = self.packed(value, f"{name}_values")
        value = replace(value, axes=tuple(self.frozen_axis(axis, name) for axis in value.axes))
        memory, dtype = self.own.get(name), self.memory_dtype(value)
        shape = tuple(axis.limit for axis in value.axes)
        function = source.func.attr if _is_numpy_call(source) else ""  # type: ignore[attr-defined]
        wanted = self.arrays.get(memory or "")
        fits = wanted is not None and wanted.dtype == dtype and wanted.shape == shape
        plain = tuple(replace(axis, origin=ZERO) for axis in value.axes)
        if memory is None or not fits or self.shared(memory, name):
            first = name not in self.own and name not in self.arrays
            memory = name if first else self.fresh(name)
            self.own[name] = memory
            self.arrays[memory] = ir.Array(memory, dtype, shape, local=True)
            zeroed = function in _ZEROED and self.depth == 0
            if self.depth == 0:
                self.emit(ir.Allocate(memory, zeroed, self.line))
            else:
                self.ahead.append(ir.Allocate(memory, False, self.line))
            target = at_place(plain, Place(memory, lambda index: index), ir.computes_in(dtype))
            if not zeroed and function not in _EMPTY:
                with self.statement_block() as block:
                    self.fill(target, value)
                self.out.extend(block)
            return target
        target = at_place(plain, Place(memory, lambda index: index), ir.computes_in(dtype))
        if function not in _EMPTY:
            self.store(target, value)
        return target

    def shared(self, memory: str, name: str) -> bool:
        """Whether another name stands for (part of) an array."""
        return any(
            other != name and value.place is not None and value.place.array == memory
            for other, value in self.bound.items()
        )

    # ---- what a view depends on

    def frozen(self, value: Array, name: str, node: ast.AST) -> Array:
        """A view whose place does not change when the scalars do that it was made with."""
        assert value.place is not None
        place, index = value.place, tuple(ir.Name(f"axis {k}", "int64") for k in range(value.rank))
        where = [*place.locate(index), *(axis.extent for axis in value.axes)]
        if any(
            isinstance(n, ir.Load) and not self.constant_argument(n.array)
            for part in where
            for n in ir.walk(part)
        ):
            raise self.refusal(
                node, f"'{name}', a view at places that are elements of an array that changes,"
            )
        kept = self.kept_scalars(where, name)
        if not kept:
            return value
        axes = tuple(
            Axis(rewrite(axis.extent, kept), axis.limit, rewrite(axis.origin, kept), axis.spelled)
            if not ir.reads(axis.extent) & kept.keys()
            else Axis(rewrite(axis.extent, kept), axis.limit, rewrite(axis.origin, kept))
            for axis in value.axes
        )

        def locate(index: Index) -> Index:
            return tuple(rewrite(part, kept) for part in place.locate(index))

        return at_place(axes, Place(place.array, locate), value.dtype)

    def frozen_axis(self, axis: Axis, name: str) -> Axis:
        kept = self.kept_scalars([axis.extent], name)
        extent = rewrite(axis.extent, kept) if kept else axis.extent
        axis = replace(axis, spelled=None if kept else axis.spelled)
        if any(isinstance(node, ir.Load) for node in ir.walk(extent)):
            extent = self.keep(f"{name}_size", Operand(extent, True)).expr
        return replace(axis, extent=extent)

    def kept_scalars(self, parts: list[ir.Expr], name: str) -> Mapping[str, ir.Expr]:
        """Copies of the locals in some expressions that may be assigned again."""
        read = sorted({scalar for part in parts for scalar in ir.reads(part)} & self.locals.keys())
        return {
            scalar: self.keep(f"{name}_{scalar}", Operand(ir.Name(scalar, self.locals[scalar][0]), True)).expr
            for scalar in read
            if self.stores.get(scalar, 0) > 1 and kind(self.locals[scalar][0]) == "int"
        }

    def constant_argument(self, array: str) -> bool:
        """Whether an array is an argument that the kernel only reads."""
        return array in self.kernel.arrays and array not in self.kernel.outputs

    # ---- where paths meet

    @contextmanager
    def repeated(self, node: ast.stmt, var: str | None = None) -> Iterator[None]:
        """The body of a loop: a name must stand for the same array at its start and at its end."""
        before = dict(self.bound)
        yield
        for name, value in list(self.bound.items()):
            old = before.get(name)
            if old is not None and not _alike(old, value):
                raise self.refusal(node, f"'{name}', another array from one iteration to the next,")
            if old is None and var is not None and _mentions(value, var):
                self.forget(name, "a view that belongs to a loop which has ended")

    def forget(self, name: str, why: str) -> None:
        self.bound.pop(name, None)
        self.unclear[name] = why

    def merge(self, first: dict[str, Array], second: dict[str, Array]) -> None:
        """What names stand for after one of two branches."""
        self.bound = dict(second)
        for name in {*first, *second}:
            a, b = first.get(name), second.get(name)
            if a is None or b is None or not _alike(a, b):
                self.forget(name, "another array in one branch than in the other")


def _alike(left: Array, right: Array) -> bool:
    """Whether two values are the same elements of the same array."""
    if left is right:
        return True
    if left.place is None or right.place is None or left.rank != right.rank:
        return False
    index = tuple(ir.Name(f"axis {k}", "int64") for k in range(left.rank))
    return (
        left.place.array == right.place.array
        and left.place.locate(index) == right.place.locate(index)
        and all(same(a.extent, b.extent) for a, b in zip(left.axes, right.axes, strict=True))
    )


def _mentions(value: Array, var: str) -> bool:
    index = tuple(ir.Name(f"axis {k}", "int64") for k in range(value.rank))
    parts = [axis.extent for axis in value.axes]
    if value.place is not None:
        parts += value.place.locate(index)
    return any(var in ir.reads(part) for part in parts)


def _is_numpy_call(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np"))):
            return True
        case _:
            return False
