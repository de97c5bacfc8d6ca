"""Blocks of memory that a judge maps and hands to its children by descriptor, and a pool of them."""

from __future__ import annotations

import ctypes
import fcntl
import itertools
import mmap
import os
import threading
from typing import Literal

import numpy as np

PAGE = 4096
HUGE_PAGE = 2 << 20
MAP_FIXED = 0x10
MADV_HUGEPAGE = getattr(mmap, "MADV_HUGEPAGE", 14)
MADV_REMOVE = getattr(mmap, "MADV_REMOVE", 9)
F_SEAL_SIZE = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
F_SEAL_FUTURE_WRITE = 0x10


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
