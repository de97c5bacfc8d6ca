"""What sanitizers print, in short: the head of a memory error, the lines about undefined behaviour."""

from __future__ import annotations

import re

LINES_MAX = 20
_ERROR = re.compile(r"ERROR: AddressSanitizer:? (?P<what>[A-Za-z-]+)")
_ACCESS = re.compile(r"^(?P<access>(READ|WRITE) of size \d+)", re.MULTILINE)
_UNDEFINED = re.compile(r"^(?:\S*/)?(?P<line>[^/\s]+:\d+:\d+: runtime error: .*)$", re.MULTILINE)
_ADDRESS = re.compile(r"0x[0-9a-f]+")


def memory_error(printed: str) -> str:
    """``sanitizer: heap-buffer-overflow (WRITE of size 8)`` and the like; empty without a report."""
    error = _ERROR.search(printed)
    if error is None:
        return ""
    access = _ACCESS.search(printed[error.end() :])
    return f"sanitizer: {error['what']}" + (f" ({access['access']})" if access else "")


def undefined(printed: str) -> str:
    """At most LINES_MAX lines ``file:line:column: runtime error: what``, without folders and addresses."""
    lines = (_ADDRESS.sub("an address", found["line"]).strip() for found in _UNDEFINED.finditer(printed))
    kept = ["".join(c for c in line if c.isprintable()) for line in lines]
    return "\n".join(kept[:LINES_MAX])
