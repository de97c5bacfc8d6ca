"""Outputs that prove nothing and draws that invite a shortcut."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.corpus_check.calls import Array, copies
from hpcagent_bench.corpus_check.draws import Answered, Case, Oracle, draw
from hpcagent_bench.corpus_check.findings import Report
from hpcagent_bench.toolchain.in_process import Call

_ENOUGH = 8  # elements below which a random draw may be sorted or symmetric by chance
_SAME_MEAN = 1e-12  # of the largest value: means of different draws that are this near were made so
STRUCTURAL = ("well_conditioned", "near_singular", "stable", "unstable")


def check_outputs(oracle: Oracle, answered: Sequence[Answered], report: Report) -> None:
    """No NaN or infinity, not constant, not all zero (the reject fixtures see the unchanged output)."""
    for output in oracle.kernel.outputs:
        values = [item.expected[output] for item in answered if item.expected[output].size]
        if not values:
            report.add(f"lint: output {output}", "failed", "has no elements at any size")
            continue
        bad = next((item for item in answered if not np.isfinite(item.expected[output]).all()), None)
        if bad is not None:
            report.add(
                f"lint: output {output}",
                "failed",
                f"NaN or infinity at {bad.case}",
                "restrict the domain of the inputs, or damp the recurrence (see wf_triangular)",
            )
        elif _constant([value for value in values if value.size > 1]):
            report.add(f"lint: output {output}", "failed", "all elements are equal on every input")
        else:
            report.add(f"lint: output {output}", "ok")


def _constant(values: Sequence[Array]) -> bool:
    """Whether there are arrays and each holds one number throughout."""
    return bool(values) and all((value == value.reshape(-1)[0]).all() for value in values)


def check_influence(oracle: Oracle, call: Call, answered: Sequence[Answered], report: Report) -> None:
    """Every array that only goes in changes some output when it alone is drawn again."""
    kernel = oracle.kernel
    for name in kernel.arrays:
        if name in kernel.outputs:
            continue
        if any(_changes(kernel, call, item, name) for item in answered):
            report.add(f"lint: influence of {name}", "ok")
        else:
            report.add(
                f"lint: influence of {name}",
                "failed",
                f"no output changes with {name}, on {len(answered)} inputs",
                "drop the argument, or let the computation depend on it",
            )


def _changes(kernel: Kernel, call: Call, item: Answered, name: str) -> bool:
    case = item.case
    other = draw(kernel, Case(case.params, case.variant, case.seed + 1000, case.place))
    work = copies({**item.drawn, name: other[name]})
    call(work, case.values)
    return any(not np.array_equal(work[output], item.expected[output]) for output in kernel.outputs)


def check_draws(kernel: Kernel, answered: Sequence[Answered], report: Report) -> None:
    """No array comes sorted, constant, symmetric, of constant mean, or as the identity, unless it must.

    What must is declared: ``dist: offsets`` and the structural distributions of matrices, or
    ``taxonomy: {structure: {A: symmetric}}`` where the mathematics demands the property.
    """
    seen: dict[str, set[str]] = {name: set() for name in kernel.arrays}
    for item in answered:
        for name, array in item.drawn.items():
            seen[name] |= set(shortcuts(array))
    for name in _of_constant_mean(answered):
        seen[name].add("constant mean")
    for name in kernel.outputs:
        seen[name].discard("constant")  # what an output starts from may be zero throughout
    for name, found in seen.items():
        bad = found - _declared(kernel, name)
        if bad:
            report.add(
                f"lint: draw of {name}",
                "failed",
                f"is {' and '.join(sorted(bad))}",
                f"draw it otherwise; if the mathematics demands it, say so in the manifest: "
                f"taxonomy: {{structure: {{{name}: {min(bad)}}}}}",
            )
        else:
            report.add(
                f"lint: draw of {name}", "ok", ", ".join(f"{what} by nature" for what in sorted(found))
            )


def _of_constant_mean(answered: Sequence[Answered]) -> set[str]:
    """Arrays of reals that have the same mean, but not the same values, in every draw of their sizes."""
    means: dict[tuple[str, object], list[float]] = {}
    for item in answered:
        for name, array in item.drawn.items():
            if array.dtype.kind == "f" and array.size >= _ENOUGH and array.min() < array.max():
                scale = float(np.abs(array).max())
                mean = float(array.mean(dtype=np.float64)) / scale
                means.setdefault((name, item.case.params), []).append(mean)
    return {name for (name, _), all_ in means.items() if len(all_) > 1 and max(all_) - min(all_) < _SAME_MEAN}


def shortcuts(array: Array) -> list[str]:
    """What about these values a submission could exploit."""
    flat = array.reshape(-1)
    found = []
    if flat.size >= _ENOUGH and (flat == flat[0]).all():
        return ["constant"]
    if flat.size < _ENOUGH or array.dtype.kind == "b":
        return []
    if array.ndim == 1 and array.dtype.kind in "iu" and np.array_equal(flat, np.arange(flat.size)):
        return ["identity"]
    if array.dtype.kind != "c" and ((flat[1:] >= flat[:-1]).all() or (flat[1:] <= flat[:-1]).all()):
        found.append("sorted")
    if _square(array) and np.array_equal(array, np.swapaxes(array, -1, -2)):
        found.append("symmetric")
    return found


def _square(array: Array) -> bool:
    return array.ndim >= 2 and array.shape[-1] == array.shape[-2] and array.shape[-1] > 2


def _declared(kernel: Kernel, name: str) -> set[str]:
    declared = kernel.arrays[name]
    allowed: set[str] = set()
    if declared.dist == "offsets":
        allowed.add("sorted")
    if declared.dist in STRUCTURAL:
        allowed.add("symmetric")
    structure = kernel.manifest.taxonomy.get("structure", {})
    if isinstance(structure, dict):
        words = structure.get(name, [])
        allowed |= {words} if isinstance(words, str) else set(words)
    return allowed
