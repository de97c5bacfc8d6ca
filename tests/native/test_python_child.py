"""Python submissions: NumPy and numba modules called by the same protocol, behind the same filter."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hpcagent_bench import paths
from hpcagent_bench.harness.native_call import Child, Outcome
from tests.native.native_kernels import BINDING, N, draw, scalars

pytestmark = pytest.mark.usefixtures("nothing_left")

ORDER = ("s", "N", "y", "x")
NUMPY = "import numpy as np\n\ndef axpy(s, N, y, x):\n    y += s * x\n"
NUMBA = """import numba

@numba.njit(parallel=True, cache=True)
def axpy(s, N, y, x):
    for i in numba.prange(N):
        y[i] += s * x[i]
"""
_NUMBERS = itertools.count()
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a module file, each in a folder of its own."""

    def file(text: str) -> Path:
        path = tmp_path / str(next(_NUMBERS)) / "axpy.py"
        path.parent.mkdir()
        path.write_text(text)
        return path

    return file


def python(
    module: Path, *, sealed: bool = True, cores: tuple[int, ...] = (0,), memory: int = 1 << 30
) -> Child:
    return Child.python(
        module, "axpy", ORDER, BINDING, cores=cores, memory_bytes=memory, stack_mb=8, sealed=sealed
    )


def run(module: Path, *, cores: tuple[int, ...] = (0,)) -> tuple[Outcome, list[float]]:
    """One call of a module; its outcome and y."""
    given = draw()
    with python(module, cores=cores) as running:
        outcome = running.call(given, scalars(), timeout_s=60)
        values: list[float] = running.outputs["y"].tolist() if outcome.status == "ok" else []
    given.close()
    return outcome, values


def body(*lines: str, before: str = "") -> str:
    """A module whose function runs these lines."""
    return "\n".join([before, "def axpy(s, N, y, x):", *(f"    {line}" for line in lines)]) + "\n"


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("text", [NUMPY, NUMBA], ids=["numpy", "numba"])
def test_honest_modules(write: Write, text: str, sealed: bool) -> None:
    with python(write(text), sealed=sealed, cores=(0, 1)) as running:
        for n in (N, 5000, N):
            given = draw(n, seed=n)
            outcome = running.call(given, scalars(n), timeout_s=120)
            assert outcome.status == "ok", outcome
            assert 1 <= outcome.inside_ns <= outcome.outside_ns
            assert outcome.fp_modes == ""
            expected = given.arrays["y"] + 2.0 * given.arrays["x"]
            np.testing.assert_array_max_ulp(running.outputs["y"], expected, maxulp=1)
            given.close()


def test_what_is_returned_does_not_count(write: Write) -> None:
    outcome, values = run(write(body("return y + s * x")))
    assert outcome.status == "ok"
    assert values == list(range(1, N + 1))  # as the draw left them


FAILURES = {
    "writes an input": (
        body("x[0] = 1"),
        "crash",
        "ValueError: assignment destination is read-only (line 3)",
    ),
    "raises": (body("raise KeyError('k')"), "crash", "KeyError: 'k' (line 3)"),
    "exits": (body("raise SystemExit(0)"), "crash", "SystemExit: 0 (line 3)"),
    "ends the process": (body("os._exit(0)", before="import os"), "crash", "exited with status 0 (call)"),
    "does not load": ("import no_such_module\n", "refused", "No module named 'no_such_module' (line 1)"),
    "does not parse": ("def axpy(:\n", "refused", "SyntaxError: invalid syntax (line 1)"),
    "lacks the function": ("x = 1\n", "refused", "has no attribute 'axpy'"),
    "does not compile": (
        "import numba\n@numba.njit\ndef axpy(s, N, y, x):\n    y[0] = undefined_name\n",
        "refused",
        "undefined_name",
    ),
    "claims the judge failed": (body("raise OSError('no')", before="raise OSError(2)"), "refused", "OSError"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_are_told(write: Write, name: str) -> None:
    text, status, detail = FAILURES[name]
    outcome, _ = run(write(text))
    assert outcome.status == status
    assert detail in outcome.detail
    assert not outcome.detail.startswith(("seal:", "memory:"))


DENIED = {
    "fork": "os.fork()",
    "a program": "subprocess.run(['/bin/true'])",
    "a socket": "socket.socket()",
    "shared anonymous memory": "mmap.mmap(-1, 4096)",
    "limits": "resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10))",
    "priority": "os.nice(1)",
    "the project": f"open({str(paths.package_root() / 'config.py')!r})",
    "its import": "importlib.import_module('hpcagent_bench.harness')",
    "/proc": "open('/proc/self/maps')",
    "/etc/passwd": "open('/etc/passwd')",
    "writing its module": "open(__file__, 'w')",
    "the shared cache": f"os.listdir({str(paths.cache_root() / 'numba-compiled')!r})",
}
MODULES = "import ctypes, importlib, mmap, os, resource, socket, subprocess"


def test_nothing_to_reach(write: Write) -> None:
    lines = []
    for k, attempt in enumerate(DENIED.values()):
        lines += [
            "try:",
            f"    {attempt}; y[{k}] = 0",
            "except (OSError, ImportError, ValueError):",
            f"    y[{k}] = -1",
        ]
    outcome, values = run(write(body(*lines, before=MODULES)))
    assert outcome.status == "ok", outcome
    assert [name for name, value in zip(DENIED, values, strict=False) if value != -1] == []


def test_it_sees_its_own_files_alone(write: Write) -> None:
    text = body(
        "names = sorted(os.listdir('/grading'))",
        "stems = [name.partition('_')[0] for name in names]",
        "assert stems == ['guard.so', 'python', 'runner', 'submission'], stems",
        "own = [name for name in os.listdir('/tmp') if not sys.prefix.startswith(f'/tmp/{name}/')]",
        "assert own == [], own",  # the interpreter itself may be installed below /tmp
        "assert not gc.isenabled()",
        "assert os.environ['OPENBLAS_NUM_THREADS'] == os.environ['NUMBA_NUM_THREADS'] == '1'",
        "assert __name__ == 'untrusted_axpy' and os.path.basename(__file__) in names",
        before="import gc, os, sys",
    )
    outcome, _ = run(write(text))
    assert outcome.status == "ok", outcome


def test_the_second_of_one_name_runs_its_own_code(write: Write) -> None:
    """Compiled code is cached for one process alone, so that nothing old is found under a known name."""
    wrong = NUMBA.replace("s * x[i]", "3 * x[i]")
    given = draw()
    expected = given.arrays["y"] + 2.0 * given.arrays["x"]
    for text, right in ((NUMBA, True), (wrong, False), (NUMBA, True)):
        _, values = run(write(text))
        assert np.allclose(values, expected) is right
    given.close()


def test_memory_is_bounded(write: Write) -> None:
    lines = ["try:", "    numpy.ones(1 << 29); y[0] = 0", "except MemoryError:", "    y[0] = -1"]
    outcome, values = run(write(body(*lines, "numpy.ones(1 << 20)", before="import numpy")))
    assert (outcome.status, values[0]) == ("ok", -1)  # 4 GiB are refused, 8 MiB are not


def test_a_clock_put_in_the_place_of_the_runners_is_not_used(write: Write) -> None:
    text = body(
        "time.sleep(0.02); y += s * x",
        before="import time\ntime.clock_gettime_ns = lambda clock: 0\ntime.CLOCK_MONOTONIC = 7",
    )
    outcome, _ = run(write(text))
    assert outcome.status == "ok", outcome
    assert outcome.inside_ns > 10_000_000  # it slept for 20 ms


def test_a_thread_that_computes_between_calls_is_refused(write: Write) -> None:
    text = body(
        "y += s * x",
        before="import threading\ndef work():\n    while True: pass\nthreading.Thread(target=work).start()",
    )
    given = draw(1 << 20)
    with python(write(text), cores=(0, 1)) as running:
        outcomes = [running.call(given, scalars(1 << 20), timeout_s=60) for _ in range(10)]
    given.close()
    assert outcomes[-1].status == "refused"
    assert outcomes[-1].detail.startswith("protocol: computed")


def test_an_overrun_from_python_is_seen(write: Write) -> None:
    text = "import numba\n@numba.njit\ndef axpy(s, N, y, x):\n    for i in range(N + 1): y[i] = 1.0\n"
    outcome, _ = run(write(text))
    assert (outcome.status, outcome.overrun) == ("refused", "y")
