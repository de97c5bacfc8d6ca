"""Memory that judge and grading child both see: sealed draws going in, output buffers coming back."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from hpcagent_bench.toolchain.abi import Binding

PAGE = 4096
HUGE_PAGE = 2 << 20
MAP_FIXED = 0x10
MADV_HUGEPAGE = getattr(mmap, "MADV_HUGEPAGE", 14)
F_SEAL_SIZE = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
F_SEAL_ALL = F_SEAL_SIZE | fcntl.F_SEAL_WRITE


@dataclass(frozen=True)
class Layout:
    """Where each array lies in one block of memory: page-aligned, in the binding's pointer order."""

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
    shapes: Mapping[str, tuple[int, ...]], dtypes: Mapping[str, str] | Mapping[str, np.dtype[np.generic]]
) -> Layout:
    """A layout of the arrays of ``shapes``, in that order."""
    offsets: dict[str, int] = {}
    kinds = {name: np.dtype(dtypes[name]) for name in shapes}
    end = 0
    for name, shape in shapes.items():
        offsets[name] = end
        size = kinds[name].itemsize
        for extent in shape:
            size *= extent
        end += -(-size // PAGE) * PAGE
    return Layout(
        tuple(shapes), {n: tuple(map(int, s)) for n, s in shapes.items()}, kinds, offsets, max(end, PAGE)
    )


def layout_for(binding: Binding, shapes: Mapping[str, tuple[int, ...]], dtypes: Mapping[str, str]) -> Layout:
    """The layout of every pointer of ``binding``, in call order.

    ``shapes`` maps array name to extents, ``dtypes`` array name to NumPy dtype name; names the binding does
    not pass by pointer are ignored. KeyError when a pointer's shape or dtype is missing.
    """
    return pack({arg.name: shapes[arg.name] for arg in binding.pointers}, dtypes)


class Block:
    """One memfd, mapped here at a huge-page boundary.

    The mapping lives as long as any array made from it: ``close`` gives up the descriptor at once and the
    memory with the last array, so a view kept too long reads old values instead of crashing the judge.
    """

    def __init__(self, name: str, total: int, *, writable: bool) -> None:
        self.total = total
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.fd, total)
            self._reserved = mmap.mmap(-1, total + HUGE_PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            start = ctypes.addressof(ctypes.c_char.from_buffer(self._reserved))
            self._shift = -start % HUGE_PAGE
            self._address = start + self._shift
            protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
            self._map(protection, mmap.MAP_SHARED)
            _libc().madvise(self._address, total, MADV_HUGEPAGE)
        except BaseException:
            os.close(self.fd)
            raise

    def _map(self, protection: int, flags: int) -> None:
        """Lay the memfd over the reserved range, replacing what was mapped there."""
        at = _libc().mmap(self._address, self.total, protection, flags | MAP_FIXED, self.fd, 0)
        if at != self._address:
            error = ctypes.get_errno()
            raise OSError(error, f"cannot map {self.total} bytes: {os.strerror(error)}")

    def array(self, shape: tuple[int, ...], dtype: np.dtype[np.generic], offset: int) -> np.ndarray:
        """A view of the block at ``offset``."""
        return np.ndarray(shape, dtype, buffer=self._reserved, offset=self._shift + offset)

    def seal(self, seals: int, *, private: bool) -> None:
        """Add memfd seals; ``private`` first turns the mapping into a read-only one at the same address."""
        if private:
            self._map(mmap.PROT_READ, mmap.MAP_PRIVATE)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, seals)

    def close(self) -> None:
        """Give up the descriptor; the memory follows when the last array is gone."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _views(block: Block, layout: Layout, *, writable: bool) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    for name in layout.names:
        view = block.array(layout.shapes[name], layout.dtypes[name], layout.offsets[name])
        view.flags.writeable = writable
        arrays[name] = view
    return arrays


class Draw:
    """One input set in one memfd: filled by the judge, sealed, then handed to children.

    Arrays start as zeros. After ``seal`` no process can write, grow or shrink it, whatever it does with the
    descriptor, and ``arrays`` are read-only.
    """

    def __init__(self, layout: Layout, block: Block) -> None:
        self.layout = layout
        self.arrays: dict[str, np.ndarray] = _views(block, layout, writable=True)
        self.sealed = False
        self._block = block

    @classmethod
    def allocate(cls, layout: Layout) -> Draw:
        """Memory for one input set; OSError when the machine has none left."""
        return cls(layout, Block("draw", layout.total, writable=True))

    @property
    def fd(self) -> int:
        """The memfd's descriptor, -1 once closed."""
        return self._block.fd

    def seal(self) -> None:
        """Make the draw immutable for everyone."""
        if self.sealed:
            return
        for view in self.arrays.values():
            view.flags.writeable = False
        self._block.seal(F_SEAL_ALL, private=True)
        self.sealed = True

    def close(self) -> None:
        """Give the draw up. Children that hold it keep it until their next call or end."""
        self.arrays = {}
        self._block.close()


class Outputs:
    """Output buffers a child writes and the judge reads; of fixed size, so no child can pull them away."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._block = Block("outputs", layout.total, writable=False)
        self.arrays = _views(self._block, layout, writable=False)
        self._block.seal(F_SEAL_SIZE, private=False)

    @property
    def fd(self) -> int:
        """The memfd's descriptor, to hand to the child."""
        return self._block.fd

    def close(self) -> None:
        """Give the buffers up; views still held keep their memory."""
        self.arrays = {}
        self._block.close()


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
