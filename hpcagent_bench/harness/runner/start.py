"""Command lines that start grading children: bubblewrap, the launcher that binds and limits, the runner."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hpcagent_bench import paths, seal
from hpcagent_bench.harness.child_process import ChildProcess
from hpcagent_bench.harness.runner import build
from hpcagent_bench.harness.runner.environment import (
    library_path,
    numba_threads,
    sanitizer_options,
    thread_environment,
)
from hpcagent_bench.harness.runner.proc import Budget
from hpcagent_bench.toolchain.tool_cache import cached, digest

if TYPE_CHECKING:
    from hpcagent_bench.toolchain.abi import Binding

FILE_BYTES = 16 << 20
"""Largest file a child may write."""
PYTHON_BYTES = 1 << 30
"""Memory that Python, NumPy and numba's compiler may take beside what a kernel is granted."""
SANITIZER_BYTES = 1 << 30
"""Memory of the sanitizer's own (shadow, red zones, quarantine) beside what a kernel is granted."""
RESIDENT_SLACK = 256 << 20
THREADS = 64
"""Threads a child may have beside four for each of its cores."""
INSIDE = Path("/grading")
PYTHON_RUNNER = Path(__file__).resolve().parent / "python_runner.py"


def _memory(cores: Sequence[int], memory_bytes: int | None, stack_mb: int, own: int = 0) -> int:
    """Bytes a child may ask for: its grant, its threads' stacks and ``own`` of the runner; 0 for no limit."""
    return 0 if memory_bytes is None else memory_bytes + own + (stack_mb << 20) * (len(cores) + 1)


def _budget(cores: Sequence[int], data: int) -> Budget:
    """What a child may hold while it runs; RLIMIT_DATA already bounds what it may ask for."""
    return Budget(THREADS + 4 * len(cores), data + RESIDENT_SLACK if data else None)


def _launch(
    runner: str, cores: Sequence[int], *, stack: int, data: int, file: int, kind: str = ""
) -> list[str]:
    """The launcher's part of the command line."""
    return [runner, f"launch{kind}", ",".join(map(str, cores)), str(stack), str(data), str(file), "--"]


def _environment_command(env: dict[str, str]) -> list[str]:
    """For a child without bubblewrap: the same cleared environment."""
    return ["/usr/bin/env", "-i", *(f"{key}={value}" for key, value in sorted(env.items()))]


def _inside_name(stem: str, file: Path) -> str:
    """A name of this file's contents' own, so that no two submissions are ever loaded under one name."""
    sums = hashlib.blake2b(file.read_bytes(), digest_size=8).hexdigest()
    return f"{stem}_{sums}{file.suffix}"


def sanitizer_family(library: Path) -> str:
    """Whose sanitizers a library was built with: gcc links its run-time library by name, clang none."""
    return "gcc" if b"\0libasan.so." in library.read_bytes() else "llvm"


def native(
    library: Path,
    binding: Binding,
    *,
    cores: Sequence[int],
    memory_bytes: int | None,
    stack_mb: int,
    sealed: bool,
    sanitizer: str = "",
) -> ChildProcess:
    """Start the native runner on ``library``; see ``native_call.Child.native``.

    ``sanitizer`` names the compiler family whose sanitizers the library was built with.
    """
    library = library.resolve()
    server = build.sanitized_runner(sanitizer) if sanitizer else build.runner()
    files = {"runner": build.runner(), "server": server, "shim.so": build.shim(binding)}
    kernel = _inside_name("kernel", library)
    env = thread_environment(cores, stack_mb) | library_path()
    data = _memory(cores, memory_bytes, stack_mb, SANITIZER_BYTES if sanitizer else 0)
    budget = _budget(cores, data)
    if sanitizer:
        # the shadow's reservation would exceed any RLIMIT_DATA; what is resident is watched instead
        env |= sanitizer_options(sanitizer)
        data = 0

    def command(control: int, info: int | None) -> list[str]:
        bound = files | {kernel: library}
        place = {name: str(INSIDE / name) if sealed else str(path) for name, path in bound.items()}
        prefix = _environment_command(env)
        if sealed:
            binds = [seal.Bind(path, INSIDE / name) for name, path in bound.items()]
            binds += [seal.Bind(folder, folder) for folder in seal.toolchain_folders()]
            prefix = seal.grader(ro=binds, env=env, info_fd=info, proc=bool(sanitizer))
        kind = "-sanitized" if sanitizer else ""
        launch = _launch(place["runner"], cores, stack=stack_mb << 20, data=data, file=FILE_BYTES, kind=kind)
        serve = [place["server"], "serve", str(control), place["shim.so"], place[kernel], binding.symbol]
        return [*prefix, *launch, *serve, str(int(sealed))]

    return ChildProcess(command, sealed=sealed, budget=budget)


def python(
    module: Path,
    function: str,
    arg_order: Sequence[str],
    *,
    cores: Sequence[int],
    memory_bytes: int | None,
    stack_mb: int,
    sealed: bool,
) -> ChildProcess:
    """Start the Python runner on an untrusted module; see ``native_call.Child.python``.

    What it compiles is cached in a folder of its own, which ends with it.
    """
    module = module.resolve()
    data = _memory(cores, memory_bytes, stack_mb, PYTHON_BYTES)
    env = thread_environment(cores, stack_mb) | numba_threads(cores)
    scratch = None if sealed else tempfile.TemporaryDirectory(prefix="hpcagent-numba-")
    env["NUMBA_CACHE_DIR"] = "/tmp/numba" if scratch is None else scratch.name
    place = INSIDE / _inside_name("submission", module) if sealed else module
    return _python(
        [seal.Bind(module, place)],
        [],
        [str(place), function, ",".join(arg_order), "untrusted", str(int(sealed))],
        env,
        cores,
        stack=stack_mb << 20,
        data=data,
        sealed=sealed,
        budget=_budget(cores, data),
        scratch=scratch,
    )


def numba(
    source: str, function: str, arg_order: Sequence[str], *, cores: Sequence[int], sealed: bool
) -> ChildProcess:
    """Start the Python runner on a trusted numba module; see ``native_call.Child.numba``.

    It alone has the cache of compiled code that outlives a process.
    """
    # what numba keeps on disk knows the module by the name the runner gave it
    key = digest([source, PYTHON_RUNNER.read_bytes()])
    module = cached("numba", key, f"{function}.py", lambda side: _write(side, source))
    compiled = paths.cache_root() / "numba-compiled"
    compiled.mkdir(parents=True, exist_ok=True)
    env = thread_environment(cores, 8) | numba_threads(cores) | {"NUMBA_CACHE_DIR": str(compiled)}
    return _python(
        [seal.Bind(module, module)],
        [seal.Bind(compiled, compiled)],
        [str(module), function, ",".join(arg_order), "trusted", str(int(sealed))],
        env,
        cores,
        sealed=sealed,
        budget=None,
    )


def _python(
    ro: Sequence[seal.Bind],
    rw: Sequence[seal.Bind],
    arguments: Sequence[str],
    env: dict[str, str],
    cores: Sequence[int],
    *,
    stack: int = 0,
    data: int = 0,
    sealed: bool,
    budget: Budget | None,
    scratch: tempfile.TemporaryDirectory[str] | None = None,
) -> ChildProcess:
    """Start the Python runner with ``arguments`` behind its control descriptor and its guard."""
    files = {"runner": build.runner(), "guard.so": build.guard(), "python_runner.py": PYTHON_RUNNER}
    place = {name: str(INSIDE / name) if sealed else str(path) for name, path in files.items()}

    def command(control: int, info: int | None) -> list[str]:
        prefix = _environment_command(env)
        if sealed:
            binds = [seal.Bind(folder, folder) for folder in seal.interpreter_folders()]
            binds += [seal.Bind(path, INSIDE / name) for name, path in files.items()]
            prefix = seal.grader(ro=[*binds, *ro], rw=rw, env=env, info_fd=info)
        # a limit on memory is a submission's; the judge's own compiler may write what it likes
        file = FILE_BYTES if data else 0
        launch = _launch(place["runner"], cores, stack=stack, data=data, file=file)
        serve = [sys.executable, place["python_runner.py"], str(control), place["guard.so"]]
        return [*prefix, *launch, *serve, *arguments]

    return ChildProcess(command, sealed=sealed, budget=budget, scratch=scratch)


def _write(side: Path, text: str) -> None:
    side.write_text(text)
