"""Reading of a shared library what the judge must know before a child opens it, without opening it itself.

The file may be hostile: everything is bounded by its size, and whatever does not fit together is a reason to
refuse it. Layouts: System V ABI, chapters 4 and 5 (ELF-64, little-endian).
"""

from __future__ import annotations

import platform
import struct

import numpy as np

MACHINES = {"x86_64": 62, "aarch64": 183}
SHARED = 3
LOADED, DYNAMIC = 1, 2
STRINGS, SYMBOLS, STRINGS_SIZE = 5, 6, 10
FUNCTION_TYPES = (0, 2, 10)
"""Symbols that may be called: without a type (assembly), functions, and functions chosen when loaded."""

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)


class NotLoadable(Exception):
    """The file is no shared library of this machine; ``str`` says why."""


def check(data: bytes, symbol: str) -> str:
    """Why ``data`` is no shared library that exports the function ``symbol``, or an empty string."""
    try:
        return "" if exports(data, symbol) else f"the library does not define {symbol}"
    except NotLoadable as problem:
        return str(problem)


def exports(data: bytes, symbol: str) -> bool:
    """Whether the shared library ``data`` defines ``symbol`` for others to call. Raises NotLoadable."""
    segments = _segments(data)
    tags = _dynamic(data, segments)
    if not {STRINGS, SYMBOLS, STRINGS_SIZE} <= set(tags):
        raise NotLoadable("the library has no table of symbols")
    strings, symbols = _offset(tags[STRINGS], segments), _offset(tags[SYMBOLS], segments)
    names = data[strings : strings + tags[STRINGS_SIZE]]
    # the table's length is not written down; linkers put the strings behind it
    end = strings if strings > symbols else len(data)
    count = max(0, min(end, len(data)) - symbols) // _SYMBOL.itemsize
    table = np.frombuffer(data, _SYMBOL, count, min(symbols, len(data)))
    defined = (table["section"] != 0) & (table["info"] >> 4 != 0) & (table["other"] & 3 == 0)
    callable_ = np.isin(table["info"] & 15, FUNCTION_TYPES)
    wanted = _places(names, symbol.encode())
    return bool((defined & callable_ & np.isin(table["name"], wanted)).any())


def _segments(data: bytes) -> list[tuple[int, int, int, int]]:
    """(type, offset, address, bytes in the file) of every segment."""
    if len(data) < _HEADER.size or data[:4] != b"\x7fELF":
        raise NotLoadable("not an ELF file")
    ident, kind, machine, _, _, start, _, _, _, size, count, *_ = _HEADER.unpack_from(data)
    if ident[4:6] != b"\x02\x01" or machine != MACHINES.get(platform.machine()):
        raise NotLoadable(f"not built for this machine ({platform.machine()})")
    if kind != SHARED:
        raise NotLoadable("not a shared library")
    if size != _SEGMENT.size or start + count * size > len(data):
        raise NotLoadable("the library's segments lie outside the file")
    found = (_SEGMENT.unpack_from(data, start + i * size) for i in range(count))
    return [(kind, offset, address, length) for kind, _, offset, address, _, length, _, _ in found]


def _dynamic(data: bytes, segments: list[tuple[int, int, int, int]]) -> dict[int, int]:
    """Tag -> value of the dynamic section."""
    for kind, offset, _, length in segments:
        if kind == DYNAMIC:
            part = data[offset : offset + min(length, 1 << 16)]
            return dict(struct.iter_unpack("<QQ", part[: len(part) // 16 * 16]))
    raise NotLoadable("not a shared library (no dynamic section)")


def _offset(address: int, segments: list[tuple[int, int, int, int]]) -> int:
    """Where in the file a loaded address lies."""
    for kind, offset, first, length in segments:
        if kind == LOADED and first <= address < first + length:
            return offset + address - first
    raise NotLoadable("the library's tables lie outside the file")


def _places(names: bytes, symbol: bytes) -> list[int]:
    """Offsets in a table of strings at which ``symbol`` can be read; linkers share common endings."""
    found, at = [], -1
    while (at := names.find(symbol + b"\0", at + 1)) >= 0:
        found.append(at)
    return found
