"""Compiling submissions inside the seal, and references into the cache."""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpcagent_bench import seal
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness.building import shared_object
from hpcagent_bench.harness.building.build_log import LOG_MAX, filtered
from hpcagent_bench.harness.runner import build as runner_build
from hpcagent_bench.toolchain import languages, tool_cache
from hpcagent_bench.toolchain.flags import Purpose, compile_command

INSIDE = Path("/build")
LAUNCHER = Path("/grading/runner")
COMPILER_MEMORY = 3 << 30
"""Bytes of private memory for each process of a compiler; three compilers may run at once."""
COMPILER_FILE = 256 << 20
"""Largest file a compiler may write."""
REFERENCE_TIMEOUT_S = 300.0
CANCEL_S = 0.05
"""How long a cancelled command may go on."""


@dataclass(frozen=True)
class Build:
    """What became of one source. ``library`` and ``digest`` (BLAKE2b of its bytes) are set when ``ok``.

    ``log`` holds at most 64 KiB of the compiler's messages about the submission; ``seconds`` is wall time.
    """

    ok: bool
    library: Path | None
    log: str
    commands: tuple[tuple[str, ...], ...]
    digest: str
    seconds: float
    timed_out: bool


@dataclass(frozen=True)
class Ran:
    """One finished command: its exit status (None when stopped at its limit) and the head of its output."""

    status: int | None
    output: str


def source_name(symbol: str, language: str) -> str:
    """File name a source is compiled under: the kernel's name with the language's extension."""
    return symbol.removesuffix("_fp64") + languages.get(language).extension


def build(
    source: str,
    language: str,
    symbol: str,
    out_dir: Path,
    *,
    extra: Sequence[str] = (),
    timeout_s: float,
    family: str = "gcc",
    sealed: bool = True,
    purpose: Purpose = "submission",
    cancelled: threading.Event | None = None,
) -> Build:
    """Compile and link ``source`` into ``out_dir``; it must define ``symbol``.

    Sealed, the compiler sees the system folders, the source and nothing else. A source that does not compile,
    runs into ``timeout_s`` or lacks the symbol is a Build that is not ok; UserError is for a host that cannot
    build. ``cancelled``, once set, ends it early.
    """
    started = time.perf_counter()
    name = source_name(symbol, language)
    target = Path(name).with_suffix(".so")
    argv = compile_command(language, Path(name), target, family=family, extra=extra, purpose=purpose)
    compiler = shutil.which(argv[0])
    if compiler is None:
        raise UserError(f"the {language} compiler {argv[0]} is not installed", f"apt-get install {argv[0]}")
    out_dir.mkdir(parents=True, exist_ok=True)
    (out_dir / name).write_bytes(source.encode(errors="replace"))
    library = out_dir / target
    library.unlink(missing_ok=True)
    ran = run(argv, out_dir, timeout_s=timeout_s, sealed=sealed, cancelled=cancelled)
    made = library.read_bytes() if ran.status == 0 and library.is_file() else b""
    missing = shared_object.check(made, symbol) if made else ""
    log = filtered(ran.output, name)
    if missing:
        log = f"{name}: {missing}\n{log}"
    elif not made:
        log = reason(ran, timeout_s) + log
    ok = bool(made) and not missing
    return Build(
        ok=ok,
        library=library if ok else None,
        log=log,
        commands=(tuple(argv),),
        digest=digest(made) if ok else "",
        seconds=time.perf_counter() - started,
        timed_out=ran.status is None,
    )


def digest(data: bytes) -> str:
    """BLAKE2b of a library or module file, 32 hex digits."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def reason(ran: Ran, timeout_s: float) -> str:
    """A first line for failures a compiler itself does not explain."""
    if ran.status is None:
        return f"the compiler was stopped after {timeout_s:g} s\n"
    if ran.status in (128 + signal.SIGKILL, -signal.SIGKILL):
        return "the compiler was killed (memory limit?)\n"
    return "" if ran.output.strip() else f"the compiler ended with status {ran.status}\n"


def _environment(folder: Path) -> dict[str, str]:
    own = [f"{path}/bin" for path in seal.toolchain_folders()]
    return {
        "PATH": ":".join([*own, "/usr/local/bin", "/usr/bin", "/bin"]),
        "LC_ALL": "C",
        "TMPDIR": str(folder),
        "HOME": str(folder),
    }


def _command(
    argv: Sequence[str], folder: Path, env: Mapping[str, str], *, sealed: bool, shown: Sequence[Path]
) -> list[str]:
    """``argv`` behind the launcher that limits it, sealed with ``folder`` as the only writable place."""
    limits = ["launch-compiler", "", "0", str(COMPILER_MEMORY), str(COMPILER_FILE), "--"]
    found = shutil.which(argv[0], path=env["PATH"]) or argv[0]
    runner = runner_build.runner()
    if not sealed:
        return [str(runner), *limits, found, *argv[1:]]
    folders = dict.fromkeys([*seal.toolchain_folders(), *shown])
    ro = [seal.Bind(runner, LAUNCHER), *(seal.Bind(path, path) for path in folders)]
    prefix = seal.builder(ro=ro, rw=[seal.Bind(folder.resolve(), INSIDE)], env=env, chdir=str(INSIDE))
    return [*prefix, str(LAUNCHER), *limits, found, *argv[1:]]


def run(
    argv: Sequence[str],
    folder: Path,
    *,
    timeout_s: float,
    sealed: bool,
    room: int = 4 * LOG_MAX,
    shown: Sequence[Path] = (),
    cancelled: threading.Event | None = None,
) -> Ran:
    """Run one command in ``folder``; keep ``room`` bytes of what it prints; end all of it at the limit.

    Sealed, it sees the system folders, compilers, ``folder`` and the folders ``shown``.
    """
    env = _environment(Path("/tmp") if sealed else folder)
    process = subprocess.Popen(
        _command(argv, folder, env, sealed=sealed, shown=shown),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=env,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process, process.stdout:
        head, finished = _read(
            process.stdout.fileno(), room, time.monotonic() + timeout_s, cancelled or threading.Event()
        )
        if not finished:
            _end(process)
        status = process.wait()
    return Ran(status if finished else None, head.decode(errors="replace"))


def _read(descriptor: int, room: int, deadline: float, cancelled: threading.Event) -> tuple[bytes, bool]:
    """(first ``room`` bytes, whether the writers ended before ``deadline`` and uncancelled)."""
    head = bytearray()
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while (left := deadline - time.monotonic()) > 0 and not cancelled.is_set():
        if not poll.poll(min(left, CANCEL_S) * 1000):
            continue
        part = os.read(descriptor, 1 << 16)
        if not part:
            return bytes(head), True
        head += part[: room - len(head)]
    return bytes(head), False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and everything it started (sealed: its whole process namespace)."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def build_reference(
    source: str, language: str, symbol: str, family: str = "gcc", *, extra: Sequence[str] = ()
) -> Build:
    """Build one of the judge's own sources; built once per content, flags, compiler and processor."""
    started = time.perf_counter()
    name = source_name(symbol, language)
    target = Path(name).with_suffix(".so")
    argv = compile_command(language, Path(name), target, family=family, extra=extra, purpose="reference")
    key = tool_cache.digest([source, tool_cache.compiler_version(argv[0]), tool_cache.cpu_model(), *argv])
    failed: list[Build] = []

    def make(side: Path) -> None:
        built = build(
            source,
            language,
            symbol,
            side.parent / "work",
            extra=extra,
            timeout_s=REFERENCE_TIMEOUT_S,
            family=family,
            sealed=False,
            purpose="reference",
        )
        if built.library is None:
            failed.append(built)
            raise _NotBuilt
        built.library.replace(side)

    try:
        library = tool_cache.cached("reference", key, str(target), make)
    except _NotBuilt:
        return failed[0]
    seconds = time.perf_counter() - started
    return Build(True, library, "", (tuple(argv),), digest(library.read_bytes()), seconds, False)


class _NotBuilt(Exception):
    """A reference did not compile; nothing is cached."""
