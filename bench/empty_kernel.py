"""What the clock bracket costs: a kernel that returns at once, read by the runner and from outside."""

from __future__ import annotations

import os
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hpcagent_bench.corpus import spec
from hpcagent_bench.harness import sandbox
from hpcagent_bench.harness.native_call import Child, Draw, layout_for
from hpcagent_bench.toolchain.abi import binding, c_declaration

CALLS = 200


@dataclass(frozen=True)
class Bracket:
    """Medians over many calls: the runner's reading, and how much longer the judge's own clock saw."""

    inside_ns: float
    gap_us: float


def measure(kernel_name: str = "tsvc_2_s311") -> Bracket:
    """Time an empty function with the kernel's signature on the smallest preset."""
    kernel = spec.load(kernel_name)
    call = binding(kernel)
    params = {**kernel.configs[0], **kernel.presets["S"]}
    source = f"#include <stdint.h>\n{c_declaration(call).rstrip(';')} {{}}\n"
    core = max(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="hpcagent-empty-") as folder:
        built = sandbox.build(source, "c", kernel.symbol, Path(folder), timeout_s=60)
        if built.library is None:
            raise SystemExit(f"the empty kernel does not build: {built.log}")
        draw = Draw.allocate(layout_for(call, kernel.shapes(params), kernel.dtypes()))
        for array in draw.arrays.values():
            array[:] = 0
        draw.seal()
        with Child.native(built.library, call, cores=[core], memory_bytes=None, stack_mb=64) as child:
            scalars = kernel.scalars(params)
            outcomes = [child.call(draw, scalars, timeout_s=10) for _ in range(CALLS)]
        draw.close()
    inside = statistics.median(o.inside_ns for o in outcomes)
    gap = statistics.median(o.outside_ns - o.inside_ns for o in outcomes)
    return Bracket(inside, gap / 1e3)
