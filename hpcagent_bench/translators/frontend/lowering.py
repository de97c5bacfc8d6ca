"""Loops for array values: element by element, straight into the target where nothing is read too late."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.frontend import folding, overlap, promotion
from hpcagent_bench.translators.frontend.arrays import (
    Array,
    Axis,
    Fold,
    Index,
    Place,
    Scan,
    Value,
    at_place,
    cast_to,
    moved,
)
from hpcagent_bench.translators.frontend.building import Builder
from hpcagent_bench.translators.frontend.knowledge import rewrite
from hpcagent_bench.translators.frontend.promotion import Mismatch, Operand
from hpcagent_bench.translators.frontend.sums import ONE, ZERO, known, minus, number, plus, same, times


@dataclass
class Lowering(Builder):
    """Writes the loops of array values, and keeps the memory these need."""

    # ---- reductions and running sums, as elements ask for them

    def folded(self, fold: Fold, index: Index) -> Operand:
        """The reduction at an index: in the outermost block where its index is known, or out of an array that
        is computed before all loops, when the loops would repeat it or read memory across."""
        if self.apart(fold):
            return self.whole(fold, folding.array_of(fold), folding.NAMES[fold.kind]).element(index, self)
        return self.once(fold, index, folding.array_of(fold), lambda: folding.inline(self, fold, index))

    def held(self, array: Array, index: Index) -> Operand:
        """An element that takes loops and that broadcasting repeats: computed once."""
        wanted = folding.NAMES.get(array.fold.kind, "factor") if array.fold is not None else "factor"
        if array.fold is not None and self.apart(array.fold):
            return self.whole(array, array, wanted).element(index, self)
        return self.once(array, index, array, lambda: self.keep(wanted, array.element(index, self)))

    def once(self, key: object, index: Index, array: Array, compute: Callable[[], Operand]) -> Operand:
        """A value in the outermost block where its index is known; an array of all values when loops further
        out would repeat it."""
        read = {name for part in index for name in ir.reads(part)}
        depths = [k for k, level in enumerate(self.nest) if level.var in read]
        if len(depths) != (depths[-1] + 1 if depths else 0):
            return self.whole(key, array, "total").element(index, self)
        ready = self.nest[len(depths) - 1].ready if depths else {}
        if (id(key), index) not in ready:
            with self.at_level(len(depths)):
                ready[id(key), index] = compute()
        return ready[id(key), index]

    def apart(self, fold: Fold) -> bool:
        """Whether a reduction is better computed as a whole, before the loops of the statement."""
        return fold.kept > 0 and id(fold) not in self.making and folding.across(fold)

    def scanned(self, scan: Scan, index: Index) -> Operand:
        dtype = folding.accumulator(scan.kind, scan.term.dtype)
        running = folding.value_of(scan, scan.term.axes, dtype)
        return self.whole(scan, running, folding.NAMES[scan.kind]).element(index, self)

    def whole(self, key: object, value: Array, wanted: str) -> Array:
        """An array of all elements of a value, computed before the loops of the statement."""
        if id(key) not in self.wholes:
            source = value.fold if value.fold is not None else key
            self.making.add(id(source))
            with self.at_level(0):
                target = self.temporary(value.axes, value.dtype, wanted)
                self.fill(target, value)
            self.making.discard(id(source))
            self.wholes[id(key)] = key, target
        return self.wholes[id(key)][1]

    # ---- memory

    def limit(self, extent: ir.Expr) -> ir.Expr:
        """An expression over scalar arguments that an extent never exceeds."""
        extent = self.known.expanded(extent)
        if self._of_arguments(extent):
            return extent
        last = {
            loop.var: loop.start if loop.descending else minus(loop.stop, ONE)
            for loop in self.known.ranges
            if loop.start is not None and loop.stop is not None
        }
        found = extent
        for _ in last:
            found = rewrite(found, last)
        shapes = (axis for array in self.arrays.values() if not array.local for axis in array.shape)
        for bound in (found, *shapes):
            if self._of_arguments(bound) and self.known.at_least(bound, extent):
                return bound
        raise Mismatch("an extent that no size bounds")

    def _of_arguments(self, expr: ir.Expr) -> bool:
        return all(
            not isinstance(node, ir.Load) and (not isinstance(node, ir.Name) or node.name in self.scalars)
            for node in ir.walk(expr)
        )

    def memory_dtype(self, value: Array) -> str:
        """The dtype that a copy of the array has in memory."""
        if value.stored_as:
            return value.stored_as
        return value.dtype if value.place is None else self.arrays[value.place.array].dtype

    def is_whole(self, value: Array) -> bool:
        """Whether the value is an array in memory from its first element to its last."""
        if value.place is None or value.copied:
            return False
        index = tuple(ir.Name(f"axis {k}", "int64") for k in range(value.rank))
        shape = self.arrays[value.place.array].shape
        return value.place.locate(index) == index and all(
            same(axis.extent, extent) for axis, extent in zip(value.axes, shape, strict=True)
        )

    def literal(self, axes: tuple[Axis, ...], values: list[ir.Expr], dtype: str) -> Array:
        """An array of listed values."""
        target = self.temporary(axes, dtype, self.naming or "values")
        extents = [range(int(known(axis.extent) or 0)) for axis in axes]
        for place, value in zip(itertools.product(*extents), values, strict=True):
            self.put(target, tuple(number(k) for k in place), Operand(value))
        return target

    def joined(self, values: list[Array], axis: int) -> Array:
        """Arrays one after the other along an axis, in memory of their own."""
        axes = list(values[0].axes)
        extent, limit = axes[axis].extent, axes[axis].limit
        for value in values[1:]:
            extent, limit = plus(extent, value.axes[axis].extent), plus(limit, value.axes[axis].limit)
        axes[axis] = Axis(extent, limit)
        dtype = promotion.common(*(value.sample for value in values))
        target = self.temporary(axes, dtype, "joined")
        offset: ir.Expr = ZERO
        for value in values:
            part = _offset(target, axis, offset, value.axes)
            self.store(part, value)
            offset = plus(offset, value.axes[axis].extent)
        return target

    def temporary(self, axes: Sequence[Axis], dtype: str, wanted: str) -> Array:
        """An array of its own, as large as these axes can get."""
        named = wanted == self.naming and wanted not in self.arrays
        name = wanted if named else self.fresh(wanted)
        shape = tuple(axis.limit for axis in axes)
        self.arrays[name] = ir.Array(name, dtype, shape, local=True)
        self.ahead.append(ir.Allocate(name, False, self.line))
        plain = tuple(replace(axis, origin=ZERO) for axis in axes)
        return at_place(plain, Place(name, lambda index: index), ir.computes_in(dtype))

    def materialised(self, value: Array, wanted: str, dtype: str | None = None) -> Array:
        """The elements in memory of their own."""
        if value.guard is not None:
            return self.packed(value, wanted)
        target = self.temporary(value.axes, dtype or self.memory_dtype(value), wanted)
        with self.statement_block() as block:
            self.fill(target, value)
        self.out.extend(block)
        return target

    def packed(self, value: Array, wanted: str) -> Array:
        """The elements that a mask selects, one after the other, and how many they are."""
        assert value.guard is not None
        guard = value.guard
        limit: ir.Expr = ONE
        for axis in value.axes:
            limit = times(limit, axis.limit)
        count_name = self.fresh(f"{wanted}_count")
        target = self.temporary((Axis(limit, limit),), value.dtype, wanted)
        with self.statement_block() as block:
            count = self.define(count_name, promotion.python(0))

            def write(index: Index) -> None:
                test = promotion.truth(guard.element(index, self))
                with self.branch(test):
                    self.put(target, (count.expr,), value.element(index, self))
                    self.define(count_name, promotion.binary("+", count, promotion.python(1)))

            self.over(value.axes, write)
        self.out.extend(block)
        return replace(target, axes=(Axis(count.expr, limit),))

    # ---- stores

    def put(self, target: Array, index: Index, value: Operand) -> None:
        """Store one element."""
        assert target.place is not None
        array = self.arrays[target.place.array]
        converted = promotion.convert(value, ir.computes_in(array.dtype))
        self.emit(ir.Store(array.name, target.place.locate(index), converted, self.line))

    def store(self, target: Array, value: Value) -> None:
        """``target[...] = value`` as NumPy does it: everything is read before anything is written."""
        assert target.place is not None
        value = self.fitted(target, value)
        name = target.place.array
        if isinstance(value, Operand) and name in ir.reads(value.expr):
            value = self.keep("value", value)
        with self.statement_block() as block:
            grown = self.fill(target, value)
        turn = not isinstance(value, Array) or value.scan is None
        body = tuple(block) if grown else overlap.ordered(tuple(block), name, self.known, turn)
        if body is None and target.guard is not None:
            target = replace(target, guard=self.materialised(target.guard, "chosen"))
        if body is None and isinstance(value, Array):
            value = self.materialised(value, f"{name}_new")
        if body is None:
            with self.statement_block() as block:
                self.fill(target, value)
            body = overlap.ordered(tuple(block), name, self.known)
        if body is None:
            raise Mismatch(f"an assignment to '{name}' at places that '{name}' itself gives")
        self.out.extend(body)

    def fitted(self, target: Array, value: Value) -> Value:
        """The value with the target's shape; elements that a mask selects are packed first."""
        if not isinstance(value, Array):
            return value
        if value.guard is not None and target.guard is None:
            value = self.packed(value, "selected")
        if target.guard is not None:
            return value
        while value.rank > target.rank and value.axes[0].single:
            value = folding.without_first_axis(value)
        if value.rank == target.rank and all(
            mine.like(wide) or (known(mine.extent) is not None and not mine.single)
            for mine, wide in zip(value.axes, target.axes, strict=True)
        ):
            return value
        return cast_to(value, target.axes)

    def fill(self, target: Array, value: Value) -> bool:
        """Loops that store ``value`` element by element; whether they are known to read nothing too late, as
        sums are that grow in the target."""
        if target.guard is not None:
            self.fill_selected(target, target.guard, value)
            return False
        if isinstance(value, Array) and value.scan is not None:
            return folding.scan_into(self, target, value.scan)
        if isinstance(value, Array) and value.fold is not None and folding.grows(self, target, value):
            folding.grow(self, target, value)
            return True

        def write(index: Index) -> None:
            self.put(target, index, value.element(index, self) if isinstance(value, Array) else value)

        self.over(target.axes, write)
        return False

    def fill_selected(self, target: Array, guard: Array, value: Value) -> None:
        """``a[mask] = value``: one value, values selected by the same mask, or one after the other."""
        sequence = isinstance(value, Array) and value.guard is None
        name = self.fresh("taken") if sequence else ""
        count = self.define(name, promotion.python(0)) if sequence else None

        def write(index: Index) -> None:
            with self.branch(promotion.truth(guard.element(index, self))):
                if not isinstance(value, Array):
                    self.put(target, index, value)
                elif count is None:
                    self.put(target, index, value.element(index, self))
                else:
                    at = ZERO if value.axes[0].single else count.expr
                    self.put(target, index, value.element((at,), self))
                    self.define(name, promotion.binary("+", count, promotion.python(1)))

        self.over(target.axes, write)


def _offset(target: Array, axis: int, offset: ir.Expr, axes: tuple[Axis, ...]) -> Array:
    """The part of an array that starts at an offset along one axis."""
    plain = tuple(replace(part, origin=ZERO) for part in axes)
    return moved(target, plain, lambda index: (*index[:axis], plus(index[axis], offset), *index[axis + 1 :]))
