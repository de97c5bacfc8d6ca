"""Command lines that start grading children: bubblewrap, the launcher that binds and limits, the runner."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hpcagent_bench import paths, seal
from hpcagent_bench.harness.child_process import ChildProcess
from hpcagent_bench.harness.runner import build
from hpcagent_bench.toolchain.tool_cache import cached, digest

if TYPE_CHECKING:
    from hpcagent_bench.toolchain.abi import Binding

FILE_BYTES = 16 << 20
"""Largest file a child may write."""
INSIDE = Path("/grading")
PYTHON_RUNNER = Path(__file__).resolve().parent / "python_runner.py"


def thread_environment(cores: Sequence[int], stack_mb: int) -> dict[str, str]:
    """OpenMP pinned to exactly these cores, one thread each, sleeping when idle."""
    return {
        "OMP_NUM_THREADS": str(len(cores)),
        "OMP_PROC_BIND": "close",
        "OMP_PLACES": ",".join(f"{{{core}}}" for core in cores),
        "OMP_WAIT_POLICY": "passive",
        "OMP_DYNAMIC": "false",
        "OMP_STACKSIZE": f"{stack_mb}M",
        "LC_ALL": "C.UTF-8",
        "HOME": "/tmp",
        "PATH": "/usr/bin:/bin",
    }


def _library_path() -> dict[str, str]:
    """Where run-time libraries of a compiler outside the system folders lie."""
    folders = [f"{folder}/{lib}" for folder in seal.toolchain_folders() for lib in ("lib64", "lib")]
    return {"LD_LIBRARY_PATH": ":".join(folders)} if folders else {}


def _launch(runner: str, cores: Sequence[int], *, stack: int, data: int, file: int) -> list[str]:
    """The launcher's part of the command line."""
    return [runner, "launch", ",".join(map(str, cores)), str(stack), str(data), str(file), "--"]


def _environment_command(env: Mapping[str, str]) -> list[str]:
    """For a child without bubblewrap: the same cleared environment."""
    return ["/usr/bin/env", "-i", *(f"{key}={value}" for key, value in sorted(env.items()))]


def native(
    library: Path,
    binding: Binding,
    *,
    cores: Sequence[int],
    memory_bytes: int | None,
    stack_mb: int,
    sealed: bool,
) -> ChildProcess:
    """Start the native runner on ``library``; see ``native_call.Child.native``."""
    files = {"runner": build.runner(), "shim.so": build.shim(binding), "kernel.so": library.resolve()}
    env = thread_environment(cores, stack_mb) | _library_path()
    stack = stack_mb << 20
    data = 0 if memory_bytes is None else memory_bytes + stack * (len(cores) + 1)

    def command(control: int, info: int | None) -> list[str]:
        place = {name: str(INSIDE / name) if sealed else str(path) for name, path in files.items()}
        prefix = _environment_command(env)
        if sealed:
            binds = [seal.Bind(path, INSIDE / name) for name, path in files.items()]
            binds += [seal.Bind(folder, folder) for folder in seal.toolchain_folders()]
            prefix = seal.grader(ro=binds, env=env, info_fd=info)
        launch = _launch(place["runner"], cores, stack=stack, data=data, file=FILE_BYTES)
        serve = [place["runner"], "serve", str(control), place["shim.so"], place["kernel.so"], binding.symbol]
        return [*prefix, *launch, *serve, str(int(sealed))]

    return ChildProcess(command, sealed=sealed)


def numba(
    source: str, function: str, arg_order: Sequence[str], *, cores: Sequence[int], sealed: bool
) -> ChildProcess:
    """Start the Python runner on a trusted numba module; see ``native_call.Child.numba``."""
    runner = build.runner()
    module = cached("numba", digest([source]), f"{function}.py", lambda side: _write(side, source))
    compiled = paths.cache_root() / "numba-compiled"
    compiled.mkdir(parents=True, exist_ok=True)
    env = thread_environment(cores, 8) | {
        "NUMBA_NUM_THREADS": str(len(cores)),
        "NUMBA_CACHE_DIR": str(compiled),
        "NUMBA_THREADING_LAYER": "omp",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
    }

    def command(control: int, info: int | None) -> list[str]:
        prefix = _environment_command(env)
        place = str(runner)
        script = str(PYTHON_RUNNER)
        if sealed:
            place, script = str(INSIDE / "runner"), str(INSIDE / "python_runner.py")
            ro = [seal.Bind(folder, folder) for folder in seal.interpreter_folders()]
            ro += [seal.Bind(runner, Path(place)), seal.Bind(PYTHON_RUNNER, Path(script))]
            ro += [seal.Bind(module.parent, module.parent)]
            prefix = seal.grader(ro=ro, rw=[seal.Bind(compiled, compiled)], env=env, info_fd=info)
        launch = _launch(place, cores, stack=0, data=0, file=0)
        serve = [sys.executable, script, str(control), str(module), function, ",".join(arg_order)]
        return [*prefix, *launch, *serve]

    return ChildProcess(command, sealed=sealed)


def _write(side: Path, text: str) -> None:
    side.write_text(text)
