"""Runs a command and counts one PAPI event in all of its processes.

    python papi_counter.py OUT EVENT -- PROGRAM ARGS...

Writes the count, or null, to OUT, and ends as the program did; 90 when PAPI does not initialise. Without an
EVENT it only tries that. It stands alone, since PAPI must not be part of the judge's own process.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import json
import subprocess
import sys
from pathlib import Path

VERSIONS = [(major << 24) | (minor << 16) for major in (7, 6, 5) for minor in range(8)]
NULL = -1
INHERIT = 28
INHERIT_ALL = 1
OPTION_BYTES = 4096
NO_PAPI = 90


class Inherit(ctypes.Structure):
    """PAPI_inherit_option_t."""

    _fields_ = [("eventset", ctypes.c_int), ("inherit", ctypes.c_int)]


class Option(ctypes.Union):
    """PAPI_option_t, of which only the part for inheritance is used."""

    _fields_ = [("inherit", Inherit), ("room", ctypes.c_char * OPTION_BYTES)]


def library() -> ctypes.CDLL | None:
    """PAPI, initialised; None when it cannot be."""
    name = ctypes.util.find_library("papi")
    if name is None:
        return None
    papi = ctypes.CDLL(name)
    if any(papi.PAPI_library_init(version) == version for version in VERSIONS):
        return papi
    return None


def counting(papi: ctypes.CDLL, event: str) -> ctypes.c_int | None:
    """A started event set that this process' children inherit; None when the host does not count it."""
    events = ctypes.c_int(NULL)
    option = Option()
    ready = (
        papi.PAPI_create_eventset(ctypes.byref(events)) == 0
        and papi.PAPI_assign_eventset_component(events, 0) == 0
    )
    option.inherit.eventset, option.inherit.inherit = events.value, INHERIT_ALL
    ready = (
        ready
        and papi.PAPI_set_opt(INHERIT, ctypes.byref(option)) == 0
        and papi.PAPI_add_named_event(events, event.encode()) == 0
        and papi.PAPI_start(events) == 0
    )
    return events if ready else None


def main() -> int:
    """Count, run, write."""
    out, event = sys.argv[1:3]
    argv = sys.argv[sys.argv.index("--") + 1 :]
    papi = library()
    if papi is None:
        return NO_PAPI
    events = counting(papi, event) if event else None
    status = subprocess.run(argv, close_fds=False, check=False).returncode
    value = ctypes.c_longlong(0)
    counted = events is not None and papi.PAPI_stop(events, ctypes.byref(value)) == 0
    if out:
        Path(out).write_text(json.dumps(value.value if counted else None))
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
