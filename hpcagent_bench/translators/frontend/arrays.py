"""Array values that are not computed yet: a shape, and how an element follows from its index.

Nothing here makes statements. An element that takes a loop of its own (a sum along an axis, say) is asked of
the ``Maker`` at hand, which writes that loop where it belongs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.frontend.promotion import Mismatch, Operand
from hpcagent_bench.translators.frontend.sums import ONE, ZERO, divided, known, plus, same, times

Index = tuple[ir.Expr, ...]


@dataclass(frozen=True)
class Axis:
    """``extent`` elements, never more than ``limit`` (an expression over scalar arguments).

    An extent below zero means none. ``origin`` is where a loop along the axis would start for indices to read
    best; it means nothing. ``spelled`` is the extent with named sizes written out, to compare it with others.
    """

    extent: ir.Expr
    limit: ir.Expr
    origin: ir.Expr = ZERO
    spelled: ir.Expr | None = None

    @property
    def single(self) -> bool:
        """Whether the extent is one, so that it stretches to any other."""
        return known(self.extent) == 1

    def like(self, other: Axis) -> bool:
        """Whether both extents are certainly equal."""
        return same(self.spelled or self.extent, other.spelled or other.extent)


@dataclass(frozen=True)
class Place:
    """Where elements live: an array and the index there of each element."""

    array: str
    locate: Callable[[Index], Index]


@dataclass(frozen=True)
class Fold:
    """A reduction: ``kind`` over the elements of ``term``, whose axes are those kept and then those gone.

    ``scaled``, of a sum of products, gives the sum with a factor taken into its first operand.
    """

    kind: str
    term: Array
    gone: int
    scaled: Callable[[Operand], Fold] | None = None

    @property
    def kept(self) -> int:
        return len(self.term.axes) - self.gone


class Maker(Protocol):
    """Writes the loops that elements need."""

    def held(self, array: Array, index: Index) -> Operand: ...

    def folded(self, fold: Fold, index: Index) -> Operand: ...

    def scanned(self, scan: Scan, index: Index) -> Operand: ...


Element = Callable[[Index, Maker], Operand]


@dataclass(frozen=True, eq=False)
class Array:
    """An array value. ``element`` gives what stands at an index.

    ``place`` is set while the elements are those of one array in memory; ``copied`` says that NumPy would
    have made a copy all the same. ``guard`` (of truth values) says which elements there are: the value stands
    for the flat array of those. ``fold`` and ``scan`` are set when it is one reduction or running sum as a
    whole; ``start`` and ``sign`` when it is ``start`` plus or minus that reduction, ``after`` when it is
    computed from each of its elements, ``factor`` when it is just multiplied by that. ``costly`` says that
    elements take loops. ``stored_as`` is the dtype that a copy has in memory, when that is not ``dtype``.
    """

    axes: tuple[Axis, ...]
    dtype: str
    element: Element
    place: Place | None = None
    copied: bool = False
    guard: Array | None = None
    fold: Fold | None = None
    scan: Scan | None = None
    start: Array | None = None
    sign: str = "+"
    after: Callable[[Operand], Operand] | None = None
    factor: Operand | None = None
    costly: bool = False
    stored_as: str = ""

    @property
    def rank(self) -> int:
        return len(self.axes)

    @property
    def sample(self) -> Operand:
        """A stand-in for an element, to learn dtypes from."""
        return Operand(ir.Name("element", self.dtype))


@dataclass(frozen=True)
class Scan:
    """A running sum or product (``kind``) of ``term`` along ``axis``."""

    kind: str
    term: Array
    axis: int


Value = Operand | Array


def stored(array: ir.Array) -> Array:
    """The whole of an array in memory."""
    place = Place(array.name, lambda index: index)
    axes = tuple(Axis(extent, extent) for extent in array.shape)
    return at_place(axes, place, ir.computes_in(array.dtype))


def at_place(axes: tuple[Axis, ...], place: Place, dtype: str, copied: bool = False) -> Array:
    def element(index: Index, _: Maker) -> Operand:
        return Operand(ir.Load(place.array, place.locate(index), dtype))

    return Array(axes, dtype, element, place, copied)


def moved(array: Array, axes: tuple[Axis, ...], back: Callable[[Index], Index]) -> Array:
    """An array with other axes whose element at an index is ``array``'s at ``back(index)``."""
    place = array.place
    if place is not None:
        old = place
        return at_place(
            axes, Place(old.array, lambda index: old.locate(back(index))), array.dtype, array.copied
        )
    guard = None if array.guard is None else moved(array.guard, axes, back)

    def element(index: Index, maker: Maker) -> Operand:
        return array.element(back(index), maker)

    return Array(axes, array.dtype, element, guard=guard, costly=array.costly)


# ---- elementwise


def mapped(operation: Callable[..., Operand], *values: Value) -> Value:
    """``operation`` on every element, with NumPy's broadcasting."""
    arrays = [value for value in values if isinstance(value, Array)]
    if not arrays:
        return operation(*values)
    guard = _guard(arrays)
    axes = broadcast([array.axes for array in arrays])
    samples = [value.sample if isinstance(value, Array) else value for value in values]
    dtype = operation(*samples).dtype

    def element(index: Index, maker: Maker) -> Operand:
        parts = [_part(value, index, axes, maker) if isinstance(value, Array) else value for value in values]
        return operation(*parts)

    costly = any(array.costly for array in arrays)
    fold, after = None, None
    only = arrays[0]
    if len(arrays) == 1 and only.fold is not None and only.start is None:
        fold, after = only.fold, _composed(operation, values, only.after)
    return Array(axes, dtype, element, guard=guard, costly=costly, fold=fold, after=after)


def _part(value: Array, index: Index, axes: tuple[Axis, ...], maker: Maker) -> Operand:
    """An operand's element; what takes loops is computed once where broadcasting repeats it."""
    own = narrowed(index, value.axes, axes)
    repeated = len(value.axes) < len(axes) or any(
        mine.single and not wide.single for mine, wide in zip(value.axes, axes, strict=True)
    )
    return maker.held(value, own) if value.costly and repeated else value.element(own, maker)


def _composed(
    operation: Callable[..., Operand],
    values: Sequence[Value],
    before: Callable[[Operand], Operand] | None,
) -> Callable[[Operand], Operand]:
    """The operation as a function of the one operand that is an array."""

    def after(element: Operand) -> Operand:
        element = element if before is None else before(element)
        return operation(*(element if isinstance(value, Array) else value for value in values))

    return after


def narrowed(index: Index, axes: tuple[Axis, ...], wide: tuple[Axis, ...]) -> Index:
    """The index into an operand that was stretched from ``axes`` to ``wide``; where an extent may turn out to
    be one while the other is not, the index says so itself."""
    skipped = len(wide) - len(axes)
    return tuple(
        _narrowed(part, axis, other)
        for part, axis, other in zip(index[skipped:], axes, wide[skipped:], strict=True)
    )


def _narrowed(index: ir.Expr, axis: Axis, wide: Axis) -> ir.Expr:
    if axis.single:
        return ZERO
    if axis.like(wide) or known(axis.extent) is not None or index == ZERO:
        return index
    return ir.Select(ir.Compare("==", axis.extent, ONE), ZERO, index, "int64")


def broadcast(shapes: Sequence[tuple[Axis, ...]]) -> tuple[Axis, ...]:
    """The common shape; extents that are certainly different are refused."""
    rank = max(len(shape) for shape in shapes)
    result = []
    for k in range(-rank, 0):
        wide = [shape[k] for shape in shapes if len(shape) >= -k and not shape[k].single]
        if not wide:
            result.append(Axis(ONE, ONE))
            continue
        result.append(replace(_widest(wide), origin=wide[0].origin))
    return tuple(result)


def _widest(axes: list[Axis]) -> Axis:
    """The extent that operands of these extents have together."""
    numbers = {known(axis.extent) for axis in axes} - {None}
    if len(numbers) > 1:
        raise Mismatch("an operation on arrays of different shapes")
    result = next((axis for axis in axes if known(axis.extent) is not None), axes[0])
    for axis in axes:
        if not axis.like(result) and known(result.extent) is None:
            extent = ir.Select(ir.Compare("==", result.extent, ONE), axis.extent, result.extent, "int64")
            limit = result.limit
            if not same(limit, axis.limit):
                limit = ir.Call("max", (limit, axis.limit), "int64")
            result = Axis(extent, limit)
    return result


def _guard(arrays: list[Array]) -> Array | None:
    """The guard of operands that are selected by one mask; a mix is refused."""
    guards = [array.guard for array in arrays if array.guard is not None]
    if not guards:
        return None
    if len(guards) != len(arrays) or any(not _equal(guard, guards[0]) for guard in guards):
        raise Mismatch("arrays selected by different masks")
    return guards[0]


class _Still:
    """A maker for elements that need no loops."""

    def held(self, array: Array, index: Index) -> Operand:
        return array.element(index, self)

    def folded(self, fold: Fold, index: Index) -> Operand:
        raise Mismatch("a mask that is computed by a reduction")

    def scanned(self, scan: Scan, index: Index) -> Operand:
        raise Mismatch("a mask that is computed by a running sum")


STILL = _Still()


def _equal(left: Array, right: Array) -> bool:
    index = tuple(ir.Name(f"at {k}", "int64") for k in range(left.rank))
    return left is right or (
        left.rank == right.rank and left.element(index, STILL) == right.element(index, STILL)
    )


def cast_to(array: Array, shape: tuple[Axis, ...]) -> Array:
    """The array stretched to a shape."""
    if array.rank > len(shape):
        raise Mismatch("an array of too many axes")
    for axis, wide in zip(reversed(array.axes), reversed(shape), strict=False):
        numbers = known(axis.extent), known(wide.extent)
        if None not in numbers and numbers[0] not in (1, numbers[1]):
            raise Mismatch("an array of another shape")
    return moved(array, shape, lambda index: narrowed(index, array.axes, shape))


# ---- shapes


def transposed(array: Array, order: tuple[int, ...]) -> Array:
    """Axes in another order: axis ``k`` of the result is axis ``order[k]``."""

    def back(index: Index) -> Index:
        return tuple(index[order.index(axis)] for axis in range(len(order)))

    return moved(array, tuple(array.axes[axis] for axis in order), back)


def flattened(array: Array, index: Index) -> ir.Expr:
    """The place of an index when rows follow one another."""
    flat: ir.Expr = ZERO
    for axis, part in zip(array.axes, index, strict=True):
        flat = plus(times(flat, axis.extent), part)
    return flat


def reshaped(array: Array, extents: Sequence[ir.Expr | None], limit: Callable[[ir.Expr], ir.Expr]) -> Array:
    """The same elements in row order under other extents; one of them may be None: what is left."""
    total: ir.Expr = ONE
    for axis in array.axes:
        total = times(total, axis.extent)
    given: ir.Expr = ONE
    for extent in extents:
        given = given if extent is None else times(given, extent)
    rest = _quotient(array, given, total)
    sizes = [rest if extent is None else extent for extent in extents]
    axes = tuple(Axis(extent, limit(extent)) for extent in sizes)

    def back(index: Index) -> Index:
        flat: ir.Expr = ZERO
        for axis, part in zip(axes, index, strict=True):
            flat = plus(times(flat, axis.extent), part)
        return _unravelled(flat, array.axes, axes, index)

    return moved(array, axes, back)


def _quotient(array: Array, given: ir.Expr, total: ir.Expr) -> ir.Expr:
    if known(given) == 1:
        return total
    for k, axis in enumerate(array.axes):  # one axis is what was given: the others are left
        if same(axis.extent, given):
            rest: ir.Expr = ONE
            for other in (*array.axes[:k], *array.axes[k + 1 :]):
                rest = times(rest, other.extent)
            return rest
    divisor = known(given)
    return divided(total, divisor) if divisor else ir.Binary("//", total, given, "int64")


def _unravelled(flat: ir.Expr, old: tuple[Axis, ...], new: tuple[Axis, ...], index: Index) -> Index:
    """The index under the old extents of a place in row order; axes that stayed keep their index."""
    kept = 0
    while kept < min(len(old), len(new)) and same(old[-1 - kept].extent, new[-1 - kept].extent):
        kept += 1
    if kept and kept < len(new):
        flat = ZERO
        for axis, part in zip(new[: len(new) - kept], index[: len(new) - kept], strict=True):
            flat = plus(times(flat, axis.extent), part)
    elif kept == len(new):
        flat = ZERO
    result: list[ir.Expr] = []
    rest = flat
    for axis in reversed(old[1 : len(old) - kept]):
        result.append(_remainder(rest, axis.extent))
        rest = _divide(rest, axis.extent)
    if len(old) > kept:
        result.append(rest)
    return (*reversed(result), *index[len(index) - kept :])


def _divide(value: ir.Expr, extent: ir.Expr) -> ir.Expr:
    divisor = known(extent)
    return divided(value, divisor) if divisor else ir.Binary("//", value, extent, "int64")


def _remainder(value: ir.Expr, extent: ir.Expr) -> ir.Expr:
    if known(extent) == 1:
        return ZERO
    return ir.Binary("%", value, extent, "int64")
