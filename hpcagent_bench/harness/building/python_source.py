"""Python deliveries: nothing is compiled, but what is no module with the wanted function is told so early."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
import time
from pathlib import Path

from hpcagent_bench import seal
from hpcagent_bench.harness import sandbox
from hpcagent_bench.harness.sandbox import Build

_CHECK = """
import symtable, sys, traceback, warnings
name, function = sys.argv[1:]
warnings.simplefilter("ignore")
try:
    text = open(name, "rb").read()
    compile(text, name, "exec", dont_inherit=True)
    table = symtable.symtable(text, name, "exec")
except SyntaxError as error:
    _, *shown, told = traceback.format_exception_only(error)
    print(f"{name}:{error.lineno}: error: {told}" + "".join(shown), end="")
    sys.exit(1)
except (ValueError, RecursionError, MemoryError, OverflowError) as error:
    print(f"{name}: error: {type(error).__name__}: {error}")
    sys.exit(1)
try:
    symbol = table.lookup(function)
    found = symbol.is_assigned() or symbol.is_imported()
except KeyError:
    found = False
if not found:
    print(f"{name}: error: the module defines no function {function} at its top level")
    sys.exit(1)
"""
"""Parses the text and never runs it; under the seal all the same, since parsers have limits of their own."""


def module_name(symbol: str) -> str:
    """File name a module is kept under."""
    return sandbox.source_name(symbol, "python")


def check(
    source: str, symbol: str, function: str, folder: Path, *, timeout_s: float, sealed: bool = True
) -> Build:
    """Write ``source`` to ``folder`` and see whether it is a module that defines ``function``."""
    started = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    module = folder / module_name(symbol)
    data = source.encode(errors="replace")
    module.write_bytes(data)
    argv = [sys.executable, "-I", "-S", "-c", _CHECK, module.name, function]
    shown = seal.interpreter_folders()
    ran = sandbox.run(argv, folder, timeout_s=timeout_s, sealed=sealed, shown=shown)
    ok = ran.status == 0
    return Build(
        ok=ok,
        library=module if ok else None,
        log="" if ok else sandbox.reason(ran, timeout_s) + ran.output,
        commands=versions(),
        digest=sandbox.digest(data) if ok else "",
        seconds=time.perf_counter() - started,
        timed_out=ran.status is None,
    )


def versions() -> tuple[tuple[str, ...], ...]:
    """What runs a module: the interpreter and the libraries it may import, each with its version."""
    packages = [(name, importlib.metadata.version(name)) for name in ("numpy", "numba")]
    return (("python", platform.python_version()), *packages)
