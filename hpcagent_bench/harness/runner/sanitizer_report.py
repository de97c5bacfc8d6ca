"""What sanitizers print, in short: the head of a memory error, the lines about undefined behaviour."""

from __future__ import annotations

import re

LINES_MAX = 20
_ERROR = re.compile(r"ERROR: AddressSanitizer:? (?P<what>[A-Za-z-]+)")
_ACCESS = re.compile(r"^(?P<access>(READ|WRITE) of size \d+)", re.MULTILINE)
_FRAME = re.compile(r"^ +#\d+ \S+ in \S+ (?P<path>\S+:\d+)", re.MULTILINE)
_OWN_FRAMES = ("libsanitizer/", "/runner.c:", "/shim.c:")
_UNDEFINED = re.compile(r"^(?:\S*/)?(?P<line>[^/\s]+:\d+:\d+: runtime error: .*)$", re.MULTILINE)
_ADDRESS = re.compile(r"0x[0-9a-f]+")


def memory_error(printed: str) -> str:
    """``sanitizer: heap-buffer-overflow (WRITE of size 8) at axpy.c:12``, say; empty without a report."""
    error = _ERROR.search(printed)
    if error is None:
        return ""
    rest = printed[error.end() :]
    access = _ACCESS.search(rest)
    frames = (found["path"] for found in _FRAME.finditer(rest.partition("\n\n")[0]))
    line = next((path for path in frames if not any(own in path for own in _OWN_FRAMES)), "")
    said = f" ({access['access']})" if access else ""
    return f"sanitizer: {error['what']}{said}" + (f" at {line.rpartition('/')[2]}" if line else "")


def undefined(printed: str) -> str:
    """At most LINES_MAX lines ``file:line:column: runtime error: what``, without folders and addresses."""
    lines = (_ADDRESS.sub("an address", found["line"]).strip() for found in _UNDEFINED.finditer(printed))
    kept = ["".join(c for c in line if c.isprintable()) for line in lines]
    return "\n".join(kept[:LINES_MAX])
