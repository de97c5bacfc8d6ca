"""Memory that judge and grading child both see: draws going in, output buffers coming back."""

from __future__ import annotations

import ctypes
import fcntl
import itertools
import mmap
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from hpcagent_bench.corpus import datatypes

if TYPE_CHECKING:
    from hpcagent_bench.toolchain.abi import Binding

PAGE = 4096
HUGE_PAGE = 2 << 20
GUARD = 0xA5
"""What every byte between the end of an output array and the next array holds."""
MAP_FIXED = 0x10
MADV_HUGEPAGE = getattr(mmap, "MADV_HUGEPAGE", 14)
MADV_REMOVE = getattr(mmap, "MADV_REMOVE", 9)
F_SEAL_SIZE = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
F_SEAL_FUTURE_WRITE = 0x10


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


class Block:
    """One memfd, mapped here at a huge-page boundary and of fixed size from the start.

    The mapping lives as long as any array made from it, so a view kept too long reads other values instead
    of crashing the judge. ``only_here`` lets nobody but this mapping ever write: later mappings and the
    descriptor, reopened or not, are read-only (F_SEAL_FUTURE_WRITE, Linux 5.1).
    """

    def __init__(self, name: str, total: int, *, only_here: bool) -> None:
        self.total = total
        self.serial = next(_SERIALS)
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.fd, total)
            self._reserved = mmap.mmap(-1, total + HUGE_PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            start = ctypes.addressof(ctypes.c_char.from_buffer(self._reserved))
            self._shift = -start % HUGE_PAGE
            self._address = start + self._shift
            self._map()
            _libc().madvise(self._address, total, MADV_HUGEPAGE)
            seals = F_SEAL_SIZE | (F_SEAL_FUTURE_WRITE if only_here else 0)
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, seals)
        except BaseException:
            os.close(self.fd)
            raise

    def _map(self) -> None:
        """Lay the memfd over the reserved range, replacing what was mapped there."""
        protection = mmap.PROT_READ | mmap.PROT_WRITE
        at = _libc().mmap(self._address, self.total, protection, mmap.MAP_SHARED | MAP_FIXED, self.fd, 0)
        if at != self._address:
            error = ctypes.get_errno()
            raise OSError(error, f"cannot map {self.total} bytes: {os.strerror(error)}")

    def array(self, shape: tuple[int, ...], dtype: np.dtype[np.generic], offset: int) -> np.ndarray:
        """A view of the block at ``offset``."""
        return np.ndarray(shape, dtype, buffer=self._reserved, offset=self._shift + offset)

    def clear(self, nbytes: int) -> None:
        """Let all of it read zero: the first ``nbytes`` will be used, pages behind them are given up."""
        used = min(-(-nbytes // PAGE) * PAGE, self.total)
        ctypes.memset(self._address, 0, used)
        if used < self.total and _libc().madvise(self._address + used, self.total - used, MADV_REMOVE) != 0:
            ctypes.memset(self._address + used, 0, self.total - used)

    def fill(self, start: int, nbytes: int, value: int = 0) -> None:
        """Set ``nbytes`` from ``start`` on to one value."""
        ctypes.memset(self._address + start, value, nbytes)

    def read(self, start: int, nbytes: int) -> bytes:
        """A copy of ``nbytes`` from ``start`` on."""
        return ctypes.string_at(self._address + start, nbytes)

    def close(self) -> None:
        """Give up the descriptor; the memory follows when the last array is gone."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
            del self._reserved


class Pool:
    """Blocks used again. Fresh memory costs many times what drawing into it costs: the kernel zeroes every
    page and takes a fault for it, some 75 ms for 64 MiB on a virtual machine, against 9 ms of drawing.

    Draws and outputs never change places: what a draw held was for every side to see, what an output held
    is zeroed before another child gets it.
    """

    KEEP = 2
    """Free blocks of a kind that are kept."""
    WASTE = 256 << 20
    """A block this much larger than what is asked for is given up instead of used, in bytes."""

    def __init__(self) -> None:
        self._free: dict[str, list[Block]] = {"draw": [], "outputs": []}
        self._lock = threading.Lock()

    def take(self, kind: Literal["draw", "outputs"], nbytes: int) -> Block:
        """A block of at least ``nbytes``, zeroed for outputs; OSError when the machine has no memory left.

        A new block takes the place of one that is too small, so that there are never more blocks than were
        in use at one time. Its slack is only reserved: memory is what has been written.
        """
        with self._lock:
            block = self._reuse(kind, nbytes)
        if block is None:
            return Block(kind, nbytes + nbytes // 3, only_here=kind == "draw")
        if kind == "outputs":
            block.clear(nbytes)
        return block

    def _reuse(self, kind: Literal["draw", "outputs"], nbytes: int) -> Block | None:
        """The smallest free block that fits; without one, the largest that does not is given up."""
        free = self._free[kind]
        for block in [b for b in free if b.total > self.WASTE + nbytes]:
            free.remove(block)
            block.close()
        fitting = [block for block in free if block.total >= nbytes]
        if fitting:
            block = min(fitting, key=lambda b: b.total)
            free.remove(block)
            return block
        if free:
            block = max(free, key=lambda b: b.total)
            free.remove(block)
            block.close()
        return None

    def give(self, kind: Literal["draw", "outputs"], block: Block) -> None:
        """Take a block back; the smallest beyond KEEP is given up."""
        with self._lock:
            free = self._free[kind]
            free.append(block)
            if len(free) > self.KEEP:
                least = min(free, key=lambda b: b.total)
                free.remove(least)
                least.close()

    def close(self) -> None:
        """Give up every free block."""
        with self._lock:
            for free in self._free.values():
                for block in free:
                    block.close()
                free.clear()


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


_SERIALS = itertools.count(1)
_LIBC: list[ctypes.CDLL] = []


def _libc() -> ctypes.CDLL:
    """The C library with the two calls Python does not offer at a chosen address."""
    if not _LIBC:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = (
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_long,
        )
        libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        _LIBC.append(libc)
    return _LIBC[0]
