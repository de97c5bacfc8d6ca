"""Which orders of execution the data allow.

Every question is put as "can two instances touch the same element while executed in the wrong order?" and
answered by ``affine.feasible``; whatever is unknown counts as yes. Pointer parameters are ``restrict`` and
local buffers are their own, so different arrays never overlap. A scalar is an array without axes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from . import ir
from .affine import INTEGER_TYPES, Poly, feasible, split, to_poly
from .parse import parse_expression

ANYTHING = "*"
_PURE = (
    "fabs fabsf sqrt sqrtf fmax fmin fmaxf fminf exp expf log logf log2 log10 sin cos tan sinh cosh tanh "
    "asin acos atan atan2 pow powf floor ceil trunc round rint fmod hypot cbrt abs labs llabs copysign "
    "isnan isinf signbit floor_div floor_mod"
)
PURE = frozenset(_PURE.split())
Loops = tuple[ir.Loop, ...]


@dataclass(frozen=True)
class Access:
    """One read or write. ``loops`` are those between the analysed statements and the access."""

    array: str
    flat: Poly | None
    dims: tuple[Poly, ...] | None
    write: bool
    loops: Loops


class Analysis:
    """Questions about one function. ``shapes``: an expression per axis of each array, as in the binding."""

    def __init__(self, fn: ir.Function, shapes: Mapping[str, Sequence[str]]) -> None:
        self.fn = fn
        assigned = ir.writes(fn.body)
        ints = {name for name, kind in fn.scalars.items() if kind in INTEGER_TYPES}
        decls = [s for s in fn.body if isinstance(s, ir.Decl)]
        ints |= {s.name for s in decls if s.type.removeprefix("const ") in INTEGER_TYPES}
        self._constant = frozenset(ints - assigned)
        self._strides = {name: self._suffix_products(dims) for name, dims in shapes.items()}
        symbols = {
            n for dims in shapes.values() for dim in dims for n in (self._shape(dim) or Poly(())).names()
        }
        self._sizes = [Poly.name(n) for n in sorted(symbols)]
        strange = any(
            isinstance(s, ir.Decl) and s.pointer and not ir.is_allocation(s) for s in ir.statements(fn.body)
        )
        self._may_overlap = strange or fn.signature.count("restrict") < len(fn.pointers)
        self._bounded = lru_cache(maxsize=None)(self._prove_bounds)

    def _shape(self, text: str) -> Poly | None:
        return to_poly(parse_expression(text), lambda name: name in self._constant)

    def _suffix_products(self, dims: Sequence[str]) -> list[tuple[Poly, Poly]] | None:
        """(extent, stride) of every axis but the first, outermost first; None when a shape is not affine."""
        extents = [self._shape(dim) for dim in dims[1:]]
        found: list[tuple[Poly, Poly]] = []
        stride = Poly.const(1)
        for extent in reversed(extents):
            if extent is None:
                return None
            found.insert(0, (extent, stride))
            stride = stride * extent
        return found

    def poly(self, expr: ir.Expr, loops: Iterable[ir.Loop]) -> Poly | None:
        """The polynomial of an integer expression over constants and the counters of ``loops``."""
        counters = {loop.var for loop in loops}
        return to_poly(expr, lambda name: name in counters or name in self._constant)

    # -- accesses -------------------------------------------------------------------------------------

    def accesses(self, body: ir.Body, outer: Loops, inside: Loops = ()) -> list[Access]:
        """Every read and write in the statements, in textual order."""
        found: list[Access] = []
        for stmt in body:
            for expr in ir.expressions(stmt):
                found += self._reads(expr, outer, inside)
            match stmt:
                case ir.Assign(target):
                    found.append(self._access(target, True, outer, inside))
                case ir.Loop():
                    found += self.accesses(stmt.body, outer, (*inside, stmt))
                case ir.If(_, then, orelse):
                    found += self.accesses((*then, *orelse), outer, inside)
                case ir.Raw():
                    found.append(Access(ANYTHING, None, None, True, inside))
                case _:
                    pass
        return found

    def _reads(self, expr: ir.Expr, outer: Loops, inside: Loops) -> list[Access]:
        counters = {loop.var for loop in (*outer, *inside)}
        found: list[Access] = []
        for node in ir.walk(expr):
            if isinstance(node, ir.Sub) or (isinstance(node, ir.Name) and node.id not in counters):
                found.append(self._access(node, False, outer, inside))
            elif isinstance(node, ir.Call) and node.fn not in PURE:
                found.append(Access(ANYTHING, None, None, True, inside))
        return found

    def _access(self, node: ir.Name | ir.Sub, write: bool, outer: Loops, inside: Loops) -> Access:
        if isinstance(node, ir.Name):
            return Access(node.id, Poly.const(0), (), write, inside)
        flat = self.poly(node.index, (*outer, *inside))
        dims = None if flat is None else self.axes(node.array, flat, (*outer, *inside))
        return Access(node.array, flat, dims, write, inside)

    def axes(self, array: str, flat: Poly, loops: Loops) -> tuple[Poly, ...] | None:
        """The subscript per axis; None unless each is proved to lie inside its axis."""
        strides = self._strides.get(array, [])
        if strides is None:
            return None
        dims = self._nested(flat, strides)
        inner = list(zip(dims[1:], (extent for extent, _ in strides), strict=True))
        return tuple(dims) if all(self._bounded(dim, extent, loops) for dim, extent in inner) else None

    @staticmethod
    def _nested(flat: Poly, strides: list[tuple[Poly, Poly]]) -> list[Poly]:
        dims: list[Poly] = []
        rest = flat
        for extent, stride in strides:
            quotient, rest = split(rest, stride * extent)
            dims.append(quotient)
        return [*dims, rest]

    def _prove_bounds(self, dim: Poly, extent: Poly, loops: Loops) -> bool:
        domain = self.domain(loops, {})
        return not feasible([*domain, dim * -1 - 1]) and not feasible([*domain, dim - extent])

    # -- constraints ----------------------------------------------------------------------------------

    def domain(self, loops: Loops, names: Mapping[str, str] | None = None) -> list[Poly]:
        """Polynomials that are >= 0 in every iteration, counters renamed by ``names``."""
        found = list(self._sizes)
        for position, loop in enumerate(loops):
            var = Poly.name(loop.var)
            known = loops[:position]
            lows = self._bounds(loop.lo, ">", known) or self._bounds(loop.floor, ">", known)
            highs = self._bounds(loop.hi, "<", known)
            if loop.step > 0:
                rows = [var - low for low in lows] + [high - var - 1 for high in highs]
            else:
                rows = [low - var for low in self._bounds(loop.lo, "", known)]
                rows += [var - high - 1 for high in self._bounds(loop.hi, "", known)]
            found += [row.rename(names or {}) for row in rows]
        return found

    def _strides_of(self, loops: Loops, names: Mapping[str, str]) -> list[Poly]:
        """Polynomials that are 0 in every iteration: ``var = lo + step * count``."""
        found = []
        for position, loop in enumerate(loops):
            low = self.poly(loop.lo, loops[:position])
            if abs(loop.step) > 1 and low is not None:
                count = Poly.name(f"#{names.get(loop.var, loop.var)}")
                found.append((Poly.name(loop.var) - low).rename(names) - count * loop.step)
        return found

    def _bounds(self, expr: ir.Expr | None, compare: str, loops: Loops) -> list[Poly]:
        """The bounds an expression stands for: both operands of a min (``<``) or max (``>``), else itself."""
        if expr is None:
            return []
        if isinstance(expr, ir.Sel) and compare and expr.cond == ir.Bin(compare, expr.yes, expr.no):
            return self._bounds(expr.yes, compare, loops) + self._bounds(expr.no, compare, loops)
        found = self.poly(expr, loops)
        return [] if found is None else [found]

    # -- questions ------------------------------------------------------------------------------------

    def conflict(
        self, one: Access, two: Access, outer: Loops, order: Callable[[Poly, Poly], list[Poly]] | None = None
    ) -> bool:
        """Whether ``one`` and ``two`` may touch the same element in the same iteration of ``outer``.

        ``order`` gets the counter of the outermost own loop of either side and adds conditions (>= 0).
        """
        if self._may_overlap or ANYTHING in (one.array, two.array):
            return True
        if one.array != two.array or not (one.write or two.write):
            return False
        first, second = _suffix(one.loops, "'1"), _suffix(two.loops, "'2")
        rows = self.domain((*outer, *one.loops), first) + self.domain((*outer, *two.loops), second)
        equal = self._strides_of((*outer, *one.loops), first) + self._strides_of((*outer, *two.loops), second)
        if one.dims is not None and two.dims is not None and len(one.dims) == len(two.dims):
            pairs = list(zip(one.dims, two.dims, strict=True))
        elif one.flat is not None and two.flat is not None:
            pairs = [(one.flat, two.flat)]
        else:
            pairs = []
        equal += [left.rename(first) - right.rename(second) for left, right in pairs]
        if order is not None:
            v1, v2 = Poly.name(f"{one.loops[0].var}'1"), Poly.name(f"{two.loops[0].var}'2")
            rows += order(v1, v2)
        return feasible(rows, equal)

    def carries(self, loop: ir.Loop, outer: Loops, ignore: Collection[str] = ()) -> bool:
        """Whether an iteration of the loop needs an earlier one (``ignore``: scalars known as reductions)."""
        return bool(self.carried(loop, outer, ignore))

    def carried(
        self, loop: ir.Loop, outer: Loops, ignore: Collection[str] = ()
    ) -> list[tuple[Access, Access]]:
        """The pairs of accesses that tie iterations of the loop together."""
        body = self._shared((loop,), outer, {*ir.declared(loop.body), *ignore})
        later = _later(loop)
        return [(x, y) for x in body for y in body if self.conflict(x, y, outer, later)]

    def blocks_interchange(self, loop: ir.Loop, inner: ir.Loop, outer: Loops) -> bool:
        """Whether the perfect nest ``loop``/``inner`` may not be swapped."""
        return self._turned(loop, inner, outer, set(ir.declared(inner.body)), None)

    def blocks_jam(self, loop: ir.Loop, inner: ir.Loop, outer: Loops, reach: int) -> bool:
        """Whether ``reach`` iterations of the loop may not advance together through ``inner``.

        What the body of the loop declares is private: every iteration gets its own.
        """
        return self._turned(loop, inner, outer, set(ir.declared(loop.body)), reach)

    def _turned(
        self, loop: ir.Loop, inner: ir.Loop, outer: Loops, private: set[str], reach: int | None
    ) -> bool:
        """Whether instances ``v1 < v2`` of the loop (nearer than ``reach``) with ``w1 > w2`` conflict."""

        def backwards(v1: Poly, v2: Poly) -> list[Poly]:
            w1, w2 = Poly.name(f"{inner.var}'1"), Poly.name(f"{inner.var}'2")
            near = [] if reach is None else [v1 - v2 + (reach - 1)]
            return [*_later(loop)(v1, v2), *_later(inner)(w2, w1), *near]

        body = self._shared((loop,), outer, private)
        inside = [x for x in body if inner in x.loops or x.array == ANYTHING]
        return any(self.conflict(x, y, outer, backwards) for x in inside for y in inside)

    def blocks_fusion(self, first: ir.Loop, second: ir.Loop, outer: Loops) -> bool:
        """Whether ``second`` needs, or overwrites what is needed by, a later iteration of ``first``."""
        ones = self._shared((first,), outer, set(ir.declared(first.body)))
        twos = self._shared((second,), outer, set(ir.declared(second.body)))
        later = _later(first)
        return any(self.conflict(x, y, outer, lambda v1, v2: later(v2, v1)) for x in ones for y in twos)

    def blocks_split(self, loop: ir.Loop, head: ir.Body, tail: ir.Body, outer: Loops) -> bool:
        """Whether ``head`` needs ``tail`` of an earlier iteration, or shares a private scalar with it."""
        private = set(ir.declared(loop.body))
        if set(ir.declared(head)) & (ir.reads(tail) | ir.writes(tail)):
            return True
        heads = [x for x in self.accesses(head, outer, (loop,)) if x.array not in private]
        tails = [x for x in self.accesses(tail, outer, (loop,)) if x.array not in private]
        return any(self.conflict(x, y, outer, _later(loop)) for x in tails for y in heads)

    def _shared(self, body: ir.Body, outer: Loops, private: Collection[str]) -> list[Access]:
        """Accesses of the loops' bodies to what is not private; bounds of the outermost loop are left out."""
        found = [access for access in self.accesses(body, outer) if access.loops or access.array == ANYTHING]
        return [access for access in found if access.array not in private]


def _suffix(loops: Loops, mark: str) -> dict[str, str]:
    return {loop.var: loop.var + mark for loop in loops}


def _later(loop: ir.Loop) -> Callable[[Poly, Poly], list[Poly]]:
    """The condition that the second counter belongs to a later iteration of the loop than the first."""
    sign = 1 if loop.step > 0 else -1
    return lambda v1, v2: [(v2 - v1) * sign - 1]
