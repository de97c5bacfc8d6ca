"""Emitted sequential C against straightforward hand-written C: ``python -m bench.emitted_c``.

Ten kernels of different kinds at the laptop rung. Both are compiled as references are and called in turns on
the same memory, so that the machine's speed cancels; a ratio is that of one turn. Time is the thread's own,
so that waiting for a core does not count.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.calls import Ratio, built, drawn, median_ratio, seconds, table
from hpcagent_bench.corpus import spec
from hpcagent_bench.translators import emit

HANDWRITTEN = Path(__file__).with_name("handwritten")


def compare(name: str, turns: int, folder: Path) -> Ratio:
    """Time both forms of one kernel in turns; they must agree."""
    kernel = spec.load(name)
    emitted_source = folder / f"{name}.c"
    emitted_source.write_text(emit(kernel, "c"))
    forms = [
        built(kernel, emitted_source, folder / f"{name}_emitted.so"),
        built(kernel, HANDWRITTEN / f"{name}.c", folder / f"{name}_handwritten.so"),
    ]
    params, before = drawn(kernel)
    works = [{array: values.copy() for array, values in before.items()} for _ in forms]
    for form, work in zip(forms, works, strict=True):
        seconds(form, kernel, before, work, params)
    for array in kernel.outputs:
        emitted, handwritten = (work[array] for work in works)
        close = 1e-12 * float(np.abs(handwritten).max())
        np.testing.assert_allclose(emitted, handwritten, rtol=1e-9, atol=close)
    taken: list[tuple[float, float]] = []
    for turn in range(turns):
        order = (0, 1) if turn % 2 == 0 else (1, 0)
        both = {form: seconds(forms[form], kernel, before, works[0], params) for form in order}
        taken.append((both[0], both[1]))
    return median_ratio(name, [theirs for _, theirs in taken], [ours / theirs for ours, theirs in taken])


def report(pairs: list[Ratio]) -> Table:
    made = table("emitted sequential C over hand-written C, laptop rung", "hand-written ms", pairs, 3)
    ratios = [pair.ratio for pair in pairs]
    made.add_row("median", "", f"{statistics.median(ratios):.3f}", f"largest {max(ratios):.3f}")
    return made


def main() -> None:
    """Print the table."""
    known = sorted(path.stem for path in HANDWRITTEN.glob("*.c"))
    parser = argparse.ArgumentParser(description="emitted sequential C against hand-written C")
    parser.add_argument("kernels", nargs="*", metavar="kernel", help=", ".join(known))
    parser.add_argument("--turns", type=int, default=15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hpcagent-emitted-") as folder:
        pairs = [compare(name, arguments.turns, Path(folder)) for name in arguments.kernels or known]
    Console().print(report(pairs))


if __name__ == "__main__":
    main()
