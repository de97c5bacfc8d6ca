"""``a[...]``: integers, slices, new axes, index arrays and masks, as array values over the same elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.frontend.arrays import (
    STILL,
    Array,
    Axis,
    Index,
    Maker,
    Place,
    at_place,
    broadcast,
    moved,
    narrowed,
)
from hpcagent_bench.translators.frontend.knowledge import Knowledge
from hpcagent_bench.translators.frontend.promotion import Mismatch, Operand, convert
from hpcagent_bench.translators.frontend.sums import ONE, ZERO, divided, known, minus, number, plus, times


@dataclass(frozen=True)
class Slice:
    """``start:stop:step`` with None for what is left out."""

    start: ir.Expr | None
    stop: ir.Expr | None
    step: int = 1


NEW_AXIS = None
Part = Operand | Array | Slice | None
"""An integer, an index array or mask, a slice, or a new axis."""


def subscript(base: Array, parts: Sequence[Part], facts: Knowledge) -> Array:
    """``base[parts]``; an array without axes when one element is left."""
    parts = _complete(base, list(parts))
    if any(isinstance(part, Array) for part in parts):
        return _gathered(base, parts, facts)
    axes: list[Axis] = []
    steps: list[Callable[[Index], ir.Expr]] = []
    source = iter(base.axes)
    for part in parts:
        if part is None:
            axes.append(Axis(ONE, ONE))
            continue
        axis = next(source)
        if isinstance(part, Slice):
            steps.append(_along(len(axes), axis, part, axes, facts))
        else:
            assert isinstance(part, Operand)
            steps.append(_fixed(position(part, axis, facts)))
    return moved(base, tuple(axes), lambda index: tuple(step(index) for step in steps))


def _complete(base: Array, parts: list[Part]) -> list[Part]:
    used = 0
    for part in parts:
        used += 0 if part is None else part.rank if isinstance(part, Array) and part.dtype == "bool" else 1
    if used > base.rank:
        raise Mismatch("more indices than axes")
    return parts + [Slice(None, None)] * (base.rank - used)


def _fixed(index: ir.Expr) -> Callable[[Index], ir.Expr]:
    return lambda _: index


def position(index: Operand, axis: Axis, facts: Knowledge) -> ir.Expr:
    """An integer index; one that is certainly below zero counts from the end."""
    if not ir.is_integer(index.dtype):
        raise Mismatch(f"an index of dtype {index.dtype}")
    place = convert(index, "int64")
    value = known(place)
    if value is not None:
        return place if value >= 0 else plus(axis.extent, place)
    negated = isinstance(place, ir.Unary) and place.op == "-"
    return plus(axis.extent, place) if negated and facts.nonnegative(minus(number(-1), place)) else place


def _along(k: int, axis: Axis, part: Slice, axes: list[Axis], facts: Knowledge) -> Callable[[Index], ir.Expr]:
    """Append the axis that a slice leaves, and give the index under it as it follows from axis ``k``'s."""
    if part.start is None and part.stop is None and part.step == 1:
        axes.append(axis)
        return lambda index: index[k]
    extent, step = axis.extent, part.step
    if step > 0:
        start = ZERO if part.start is None else _first(part.start, extent, facts)
        stop = extent if part.stop is None else _end(part.stop, extent, facts)
        count = divided(plus(minus(stop, start), number(step - 1)), step)
        origin = start if step == 1 else ZERO
    else:
        start = (
            minus(extent, ONE) if part.start is None else _end(part.start, minus(extent, ONE), facts, extent)
        )
        stop = number(-1) if part.stop is None else _first(part.stop, extent, facts, number(-1))
        count = divided(plus(minus(start, stop), number(-step - 1)), -step)
        origin = ZERO
    limit = count if known(count) is not None else axis.limit
    axes.append(Axis(count, limit, origin, facts.expanded(count)))
    return lambda index: plus(start, times(index[k], number(step)))


def _from_end(bound: ir.Expr, extent: ir.Expr, facts: Knowledge) -> ir.Expr:
    """A bound as a place from the front: one below zero counts from the end."""
    value = known(bound)
    if value is not None:
        return bound if value >= 0 else plus(extent, bound)
    if facts.nonnegative(bound):
        return bound
    if facts.nonnegative(minus(number(-1), bound)):
        return plus(extent, bound)
    below = ir.Compare("<", bound, ZERO)
    return ir.Select(below, plus(extent, bound), bound, "int64")


# Only ends that would add elements are kept within the array. One beyond on the other side leaves an
# extent below zero, which means no elements as well.


def _first(bound: ir.Expr, extent: ir.Expr, facts: Knowledge, least: ir.Expr = ZERO) -> ir.Expr:
    """The lower end of a slice, not below the first element."""
    place = _from_end(bound, extent, facts)
    return place if facts.at_least(place, least) else ir.Call("max", (place, least), "int64")


def _end(bound: ir.Expr, most: ir.Expr, facts: Knowledge, extent: ir.Expr | None = None) -> ir.Expr:
    """The upper end of a slice, not beyond ``most``."""
    place = _from_end(bound, most if extent is None else extent, facts)
    return place if facts.at_least(most, place) else ir.Call("min", (place, most), "int64")


# ---- index arrays and masks


def _gathered(base: Array, parts: list[Part], facts: Knowledge) -> Array:
    masks = [part for part in parts if isinstance(part, Array) and part.dtype == "bool"]
    if masks:
        return _selected(base, parts, masks[0])
    arrays = [part for part in parts if isinstance(part, (Array, Operand))]
    for part in arrays:
        if not ir.is_integer(part.dtype):
            raise Mismatch(f"an index of dtype {part.dtype}")
        if isinstance(part, Array) and part.guard is not None:
            raise Mismatch("an index array that a mask selects")
    shape = broadcast([part.axes for part in arrays if isinstance(part, Array)])
    where = [k for k, part in enumerate(parts) if isinstance(part, (Array, Operand))]
    together = where == list(range(where[0], where[-1] + 1))
    # NumPy's rule: the axes of the index arrays stand where these stood, or in front when slices part them
    plain = [Slice(None, None) if isinstance(part, (Array, Operand)) else part for part in parts]
    rest = subscript(base, plain, facts) if plain != parts else base
    front = where[0] if together else 0
    others = [axis for k, axis in enumerate(rest.axes) if k not in where]
    axes = (*others[:front], *shape, *others[front:])

    def back(index: Index, maker: Maker) -> Index:
        own = index[front : front + len(shape)]
        left = [*index[:front], *index[front + len(shape) :]]
        result: list[ir.Expr] = []
        for k, part in enumerate(parts):
            if isinstance(part, Array):
                result.append(convert(part.element(narrowed(own, part.axes, shape), maker), "int64"))
            elif isinstance(part, Operand):
                result.append(position(part, rest.axes[k], facts))
            else:
                result.append(left.pop(0))
        return tuple(result)

    still = all(isinstance(part, (Operand, Slice)) or _still(part) for part in parts)
    if rest.place is not None and still:
        place = rest.place
        return at_place(
            axes, Place(place.array, lambda i: place.locate(back(i, STILL))), base.dtype, copied=True
        )
    return Array(axes, base.dtype, lambda index, maker: rest.element(back(index, maker), maker))


def _still(part: Part) -> bool:
    """Whether elements of an index array need no loops."""
    if not isinstance(part, Array):
        return True
    try:
        part.element(tuple(ir.Name(f"at {k}", "int64") for k in range(part.rank)), STILL)
    except Mismatch:
        return False
    return True


def _selected(base: Array, parts: list[Part], mask: Array) -> Array:
    """``base[mask]``: the elements where it holds, one after the other."""
    if any(part is not mask and part != Slice(None, None) for part in parts) or mask.rank != base.rank:
        raise Mismatch("a mask together with other indices or of fewer axes than the array")
    if not all(mine.like(other) for mine, other in zip(mask.axes, base.axes, strict=True)):
        raise Mismatch("a mask whose shape is not certainly the array's")
    return replace(base, guard=mask, copied=True, fold=None, scan=None, start=None)
