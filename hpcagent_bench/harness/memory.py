"""Memory that judge and grading child both see: draws going in, output buffers coming back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpcagent_bench.corpus import datatypes
from hpcagent_bench.harness.blocks import PAGE, Block, Pool

if TYPE_CHECKING:
    from hpcagent_bench.toolchain.abi import Binding

GUARD = 0xA5
"""What every byte between the end of an output array and the next array holds."""


@dataclass(frozen=True)
class Layout:
    """Where each array lies in one block of memory, each at a page of its own."""

    names: tuple[str, ...]
    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, np.dtype[np.generic]]
    offsets: Mapping[str, int]
    total: int
    """Bytes of the block, a whole number of pages, never 0."""

    def nbytes(self, name: str) -> int:
        """Bytes of one array."""
        count = 1
        for extent in self.shapes[name]:
            count *= extent
        return count * self.dtypes[name].itemsize

    def part(self, names: Iterable[str]) -> Layout:
        """The layout of some of the arrays in a block of their own."""
        return pack({n: self.shapes[n] for n in names}, self.dtypes)


def pack(
    shapes: Mapping[str, tuple[int, ...]],
    dtypes: Mapping[str, str] | Mapping[str, np.dtype[np.generic]],
    *,
    gap: int = 0,
) -> Layout:
    """A layout of the arrays of ``shapes``, in that order, at least ``gap`` bytes behind each unused."""
    offsets: dict[str, int] = {}
    kinds = {name: _stored(dtypes[name]) for name in shapes}
    end = 0
    for name, shape in shapes.items():
        offsets[name] = end
        size = kinds[name].itemsize
        for extent in shape:
            size *= extent
        end += _pages(size + gap)
    return Layout(
        tuple(shapes), {n: tuple(map(int, s)) for n, s in shapes.items()}, kinds, offsets, max(end, PAGE)
    )


def _pages(nbytes: int) -> int:
    """``nbytes`` rounded up to whole pages."""
    return -(-nbytes // PAGE) * PAGE


def _stored(dtype: str | np.dtype[np.generic]) -> np.dtype[np.generic]:
    return datatypes.numpy_dtype(dtype) if isinstance(dtype, str) else dtype


def layout_for(binding: Binding, shapes: Mapping[str, tuple[int, ...]], dtypes: Mapping[str, str]) -> Layout:
    """The layout of every pointer of ``binding``: inputs first, since only they are mapped by a child.

    ``shapes`` maps array name to extents, ``dtypes`` array name to element type; names the binding does
    not pass by pointer are ignored. KeyError when a pointer's shape or dtype is missing.
    """
    ordered = sorted(binding.pointers, key=lambda arg: arg.role == "output")
    return pack({arg.name: shapes[arg.name] for arg in ordered}, dtypes)


def _views(block: Block, layout: Layout, *, writable: bool) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    for name in layout.names:
        view = block.array(layout.shapes[name], layout.dtypes[name], layout.offsets[name])
        view.flags.writeable = writable
        arrays[name] = view
    return arrays


@dataclass(frozen=True)
class Start:
    """What a child's output buffers hold when a call begins: their layout, and what writes it into them."""

    layout: Layout
    write: Callable[[dict[str, np.ndarray]], None]


class Draw:
    """One input set, filled by the judge and then handed to children, who can only read it.

    Output buffers are a child's own: ``start`` writes their first values into them. Without it the draw
    holds those values as well, and they are copied.

    No process but the judge can ever write, grow or shrink it, whatever it does with the descriptor. A
    pooled block holds one draw after the other: a child stands still (frozen, and unable to fork) from the
    end of one call to the loading of the next, so it never sees a draw before its time.
    """

    def __init__(self, layout: Layout, block: Block, pool: Pool | None, start: Start | None) -> None:
        self.layout = layout
        self.block = block
        self._start = start
        self.arrays: dict[str, np.ndarray] = _views(block, layout, writable=True)
        self.sealed = False
        self._pool = pool

    @classmethod
    def allocate(cls, layout: Layout, pool: Pool | None = None, start: Start | None = None) -> Draw:
        """Memory for one input set; its contents are undefined. OSError when there is no memory left."""
        if pool is None:
            return cls(layout, Block("draw", layout.total, only_here=True), None, start)
        return cls(layout, pool.take("draw", layout.total), pool, start)

    def start(self, outputs: Iterable[str]) -> Start:
        """How the output buffers ``outputs`` begin."""
        return self._start or Start(self.layout.part(outputs), self._copy)

    def _copy(self, outputs: dict[str, np.ndarray]) -> None:
        for name, array in outputs.items():
            array[...] = self.arrays[name]

    @property
    def fd(self) -> int:
        """The memfd's descriptor, -1 once closed."""
        return self.block.fd

    def seal(self) -> None:
        """From here on the judge does not write it either."""
        for view in self.arrays.values():
            view.flags.writeable = False
        self.sealed = True

    def close(self) -> None:
        """Give the draw up, its block back to the pool it came from."""
        if not self.arrays:
            return
        self.arrays = {}
        if self._pool is None:
            self.block.close()
        else:
            self._pool.give("draw", self.block)


class Outputs:
    """Output buffers and workspace that a child writes and the judge reads; their size is fixed.

    ``asked`` is the layout of the arrays alone. In memory a guard of a page and more lies behind each array
    and behind the workspace, so that writing past an end is seen.
    """

    def __init__(self, asked: Layout, pool: Pool | None = None, workspace_bytes: int = 0) -> None:
        self._pool = pool
        self._lay(asked, workspace_bytes)
        if pool is None:
            self._block = Block("outputs", self.total, only_here=False)
        else:
            self._block = pool.take("outputs", self.total)
        self._show()

    def _lay(self, asked: Layout, workspace_bytes: int) -> None:
        """Decide where everything lies; nothing is touched yet."""
        self.asked = asked
        self.layout = pack(asked.shapes, asked.dtypes, gap=PAGE)
        self.workspace_offset = self.layout.total
        self.room = workspace_bytes
        self.total = self.workspace_offset + (_pages(workspace_bytes + PAGE) if workspace_bytes else 0)
        self._workspace_bytes = 0

    def _show(self) -> None:
        """Views of the arrays as laid, and guards behind them."""
        self.arrays = _views(self._block, self.layout, writable=False)
        self._guards = self._find_guards()
        for start, end in self._guards.values():
            self._block.fill(start, end - start, GUARD)

    def lay_again(self, asked: Layout, workspace_bytes: int) -> bool:
        """Other arrays in the same memory, for the same child, which must stand still; False when too small.

        Memory of another shape would be held beside this until the child that maps it is gone.
        """
        before = self.asked, self.room
        self._lay(asked, workspace_bytes)
        if self.total > self._block.total:
            self._lay(*before)
            return False
        self._show()
        return True

    def _find_guards(self) -> dict[str, tuple[int, int]]:
        """(start, end) of the unused bytes behind each array, in the order of the layout."""
        ends = [*(self.layout.offsets[name] for name in self.layout.names[1:]), self.layout.total]
        return {
            name: (self.layout.offsets[name] + self.layout.nbytes(name), end)
            for name, end in zip(self.layout.names, ends, strict=True)
        }

    @property
    def fd(self) -> int:
        """The memfd's descriptor, to hand to the child."""
        return self._block.fd

    def begin(self, start: Start, workspace_bytes: int = 0) -> None:
        """Write the values a call begins with and zero the workspace; the child must stand still."""
        start.write(_views(self._block, self.layout, writable=True))
        self._workspace_bytes = workspace_bytes
        if workspace_bytes:
            self._block.fill(self.workspace_offset, workspace_bytes)
            self._guards["workspace"] = (self.workspace_offset + workspace_bytes, self.total)
            self._block.fill(*_span(self._guards["workspace"]), GUARD)

    def overrun(self) -> str:
        """The first array (or ``workspace``) past whose end something was written, empty when none was."""
        for name, span in self._guards.items():
            start, nbytes = _span(span)
            if self._block.read(start, nbytes) != bytes([GUARD]) * nbytes:
                return name
        return ""

    def close(self) -> None:
        """Give the buffers back, once the child that wrote them has ended."""
        if not self.arrays:
            return
        self.arrays = {}
        if self._pool is None:
            self._block.close()
        else:
            self._pool.give("outputs", self._block)


def _span(guard: tuple[int, int]) -> tuple[int, int]:
    """(start, length) of a guard."""
    return guard[0], guard[1] - guard[0]
