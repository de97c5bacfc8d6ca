"""What a look runs: a delivery with its driver, on a public draw of the timed rung."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hpcagent_bench.cluster.profiling import launching
from hpcagent_bench.cluster.profiling.launching import Limits, Ran
from hpcagent_bench.corpus import fuzz, sizing
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.memory import Draw, Layout, layout_for
from hpcagent_bench.harness.runner import build, environment
from hpcagent_bench.harness.submission import Submission
from hpcagent_bench.toolchain import languages, tool_cache
from hpcagent_bench.toolchain.abi import Binding
from hpcagent_bench.toolchain.flags import compile_command

HERE = Path(__file__).resolve().parent
RUNNER = Path(build.__file__).resolve().parent
MOST_CALLS = 100_000


@dataclass(frozen=True)
class Subject:
    """A delivery ready to run. ``files`` are shown to it by name; ``program`` takes calls' numbers last."""

    submission: Submission
    files: Mapping[str, Path]
    draw: Draw
    scalars: Mapping[str, int | float]
    binding: Binding
    workspace_bytes: int

    def run(
        self, limits: Limits, *, calls: int = MOST_CALLS, min_ns: int = 0, before: Sequence[str] = ()
    ) -> Ran:
        """Run until ``min_ns`` are spent in calls or ``calls`` are made; ``before`` starts what watches."""
        with launching.report_pipe() as report:
            if languages.get(self.submission.language).compiled:
                program = self._native(report[1], calls, min_ns)
                env, folders = {}, []
            else:
                program = self._python(report[1])
                env = environment.numba_threads(limits.cores) | {"NUMBA_CACHE_DIR": "/tmp/numba"}
                folders = launching.interpreter()[1]
            argv = launching.command(program, dict(self.files), limits, env, folders)
            return launching.run([*before, *argv], self.draw.fd, report, limits)

    def _native(self, report: int, calls: int, min_ns: int) -> list[str]:
        layout, outputs = self.draw.layout, self.submission.kernel.outputs
        pointers = [arg.name for arg in self.binding.pointers]
        return [
            *("{driver}", str(self.draw.fd), str(report), str(min_ns), str(calls), str(self.workspace_bytes)),
            *("{shim.so}", "{kernel.so}", self.binding.symbol),
            ",".join(str(layout.offsets[name]) for name in pointers),
            ",".join(f"{layout.offsets[name]}:{layout.nbytes(name)}" for name in outputs),
            ",".join(_bits(self.scalars[arg.name], arg.dtype) for arg in self.binding.scalars),
        ]

    def _python(self, report: int) -> list[str]:
        kernel = self.submission.kernel
        task = {
            "function": kernel.function,
            "order": kernel.arg_order,
            "arrays": _arrays(self.draw.layout, kernel.outputs),
            "scalars": dict(self.scalars),
        }
        python = launching.interpreter()[0]
        place = ("{driver.py}", "{guard.so}", "{kernel.py}", str(self.draw.fd), str(report))
        return [python, *place, json.dumps(task)]


def _arrays(layout: Layout, outputs: Sequence[str]) -> dict[str, Any]:
    return {
        name: [layout.dtypes[name].str, layout.shapes[name], layout.offsets[name], name in outputs]
        for name in layout.names
    }


def _bits(value: int | float, dtype: str) -> str:
    """A scalar as the number its eight bytes are, zeros behind a shorter one."""
    return str(int.from_bytes(np.asarray(value, dtype).tobytes().ljust(8, b"\0"), "little"))


def driver() -> Path:
    """The native driver's program file, built once."""
    sources = [HERE / "driver.c", *sorted(RUNNER.glob("*.h"))]

    def argv(out: Path) -> list[str]:
        extra = (f"-I{RUNNER}", "-fno-openmp", "-fPIE", "-pie", "-ldl")
        return compile_command("c", HERE / "driver.c", out, extra=extra, purpose="runner", shared=False)

    command = argv(Path("driver"))
    texts = [path.read_text() for path in sources]
    key = tool_cache.digest(
        [*texts, tool_cache.compiler_version(command[0]), tool_cache.cpu_model(), *command]
    )
    return tool_cache.cached("profile", key, "driver", lambda side: _compile(argv(side)))


def _compile(command: Sequence[str]) -> None:
    done = subprocess.run(list(command), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UserError(f"{command[0]} cannot build the driver: {done.stderr.strip()[-400:]}", "mend it")


@contextlib.contextmanager
def public_subject(context: GradingContext, submission: Submission, delivery: Path) -> Iterator[Subject]:
    """``delivery`` on the timed rung's sizes, the first configuration and values of the public seed."""
    kernel, datatype = submission.kernel, context.settings.service.datatype
    params: dict[str, int | float] = {
        **(kernel.configs[0] if kernel.configs else {}),
        **sizing.rung(kernel, context.sizes, datatype),
    }
    binding = context.binding(kernel)
    draw = Draw.allocate(layout_for(binding, kernel.shapes(params), kernel.dtypes(datatype)), context.pool)
    seed = context.settings.seeds.input_dist
    try:
        fuzz.fill(
            kernel,
            draw.arrays,
            params,
            value_seed=seed,
            structural_seed=seed,
            threads=context.threads,
            datatype=datatype,
        )
        draw.seal()
        if languages.get(submission.language).compiled:
            files = {"driver": driver(), "shim.so": build.shim(binding), "kernel.so": delivery}
        else:
            files = {"driver.py": HERE / "driver.py", "guard.so": build.guard(), "kernel.py": delivery}
        limit = int(context.settings.limits.kernel_memory_gb * 2**30)
        workspace = max(submission.workspace_for(params, limit), kernel.workspace_floor(params))
        yield Subject(submission, files, draw, kernel.scalars(params), binding, workspace)
    finally:
        draw.close()
