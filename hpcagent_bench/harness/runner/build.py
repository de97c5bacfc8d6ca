"""Builds the runner and the call shims: once per compiler and content, kept in the cache."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

from hpcagent_bench.errors import UserError
from hpcagent_bench.toolchain.abi import C_TYPES, Binding
from hpcagent_bench.toolchain.flags import Purpose, compile_command
from hpcagent_bench.toolchain.tool_cache import cached, compiler_version, cpu_model, digest

FOLDER = Path(__file__).resolve().parent
PLAIN = ("-fno-openmp", "-Wl,--as-needed", "-Wl,-z,relro,-z,now")
"""The runner itself uses no threads, and its relocations are read-only before anything else is loaded."""


def _compile(
    kind: str,
    name: str,
    sources: dict[str, str],
    main: str,
    *,
    shared: bool,
    family: str = "gcc",
    purpose: Purpose = "runner",
    extra: tuple[str, ...] = (),
) -> Path:
    """Compile ``sources[main]`` (others are headers beside it) to a cached file ``name``."""
    options = (*PLAIN, *extra) if shared else (*PLAIN, *extra, "-fPIE", "-pie")

    def command(folder: Path) -> list[str]:
        out = folder / name
        return compile_command(
            "c", folder / main, out, family=family, extra=options, purpose=purpose, shared=shared
        )

    argv = command(Path("/"))
    key = digest([*sources.values(), compiler_version(argv[0]), cpu_model(), *argv])

    def make(side: Path) -> None:
        for file, text in sources.items():
            (side.parent / file).write_text(text)
        try:
            done = subprocess.run(command(side.parent), capture_output=True, text=True, check=False)
        except FileNotFoundError as missing:
            raise UserError(f"{argv[0]} is not installed", f"apt-get install {argv[0]}") from missing
        if done.returncode != 0:
            raise UserError(f"{argv[0]} cannot build {main}: {done.stderr.strip()[-400:]}", "mend it")

    return cached(kind, key, name, make)


def _sources(main: str) -> dict[str, str]:
    """A C file of this folder and the headers it may use."""
    headers = sorted(FOLDER.glob("*.h"))
    return {path.name: path.read_text() for path in [FOLDER / main, *headers]}


def runner() -> Path:
    """The native runner's program file."""
    return _compile("runner", "runner", _sources("runner.c"), "runner.c", shared=False)


def sanitized_runner(family: str = "gcc") -> Path:
    """The native runner under the sanitizers of a compiler family, for libraries built by the same one."""
    return _compile(
        "runner",
        "runner-sanitized",
        _sources("runner.c"),
        "runner.c",
        shared=False,
        family=family,
        purpose="sanitized",
        extra=("-DHB_SANITIZED",),
    )


def guard() -> Path:
    """The shared library that filters the Python runner's system calls and restores its modes."""
    return _compile("guard", "guard.so", _sources("guard.c"), "guard.c", shared=True)


def shim_source(binding: Binding) -> str:
    """C source of ``hb_call``, which calls a kernel of this binding: pointers, scalars, workspace."""
    types: list[str] = []
    values: list[str] = []
    for k, arg in enumerate(binding.pointers):
        types.append(f"{'const ' if arg.const else ''}void *")
        values.append(f"pointers[{k}]")
    for k, arg in enumerate(binding.scalars):
        if arg.dtype not in C_TYPES:
            raise UserError(f"kernel {binding.kernel}: scalar {arg.name} has type {arg.dtype}", "")
        types.append(C_TYPES[arg.dtype])
        values.append(f"scalars[{k}].as_{arg.dtype}")
    members = " ".join(f"{c} as_{name};" for name, c in C_TYPES.items())
    return (
        "#include <stdint.h>\n"
        f"union scalar {{ {members} }};\n"
        f"typedef void (*kernel_fn)({', '.join([*types, 'uint8_t *', 'int64_t'])});\n"
        "void hb_call(void (*kernel)(void), void **pointers, const union scalar *scalars,\n"
        "             uint8_t *workspace, int64_t bytes)\n"
        "{\n"
        "    (void)pointers;\n    (void)scalars;\n"
        f"    ((kernel_fn)kernel)({', '.join([*values, 'workspace', 'bytes'])});\n"
        "}\n"
    )


def shim(binding: Binding) -> Path:
    """The shared library that calls kernels of this binding."""
    return _compile("shim", "shim.so", {"shim.c": shim_source(binding)}, "shim.c", shared=True)


@functools.cache
def sanitizer_available(family: str) -> bool:
    """Whether this host can build and run sanitized code of that compiler family."""
    try:
        program = sanitized_runner(family)
        tried = subprocess.run([program], capture_output=True, timeout=20, check=False)
    except (UserError, OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 2  # it came as far as its own usage line
