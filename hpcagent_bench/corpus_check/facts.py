"""What can be told about a kernel: for lists, for its own page, for scripts."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from hpcagent_bench import translators
from hpcagent_bench.corpus import precision, spec
from hpcagent_bench.corpus.manifest import PRESETS
from hpcagent_bench.corpus.precision import Ungradeable
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.corpus_check import operations
from hpcagent_bench.corpus_check.calls import NotBuilt
from hpcagent_bench.corpus_check.draws import Case, Oracle
from hpcagent_bench.errors import UserError
from hpcagent_bench.toolchain.abi import binding


def dwarf(kernel: Kernel) -> str:
    """The folder between track and kernel, else what the manifest's taxonomy says; may be empty."""
    parent = kernel.folder.parent.name
    named = parent if parent != kernel.track else kernel.manifest.taxonomy.get("dwarf", "")
    return str(named).replace(" ", "_")


def summary(kernel: Kernel, tags: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """One line of a list. ``tags`` are rosters: name to kernels."""
    return {
        "kernel": kernel.name,
        "track": kernel.track,
        "dwarf": dwarf(kernel),
        "level": kernel.level,
        "title": kernel.manifest.name,
        "xl_bytes": kernel.input_bytes(kernel.presets["XL"]),
        "configurations": len(kernel.configs),
        "tags": sorted({tag for tag, names in tags.items() if kernel.name in names}),
    }


def docstring(kernel: Kernel) -> str:
    """The mathematics in the author's words: the docstring of the reference, or that of its file."""
    tree = ast.parse(kernel.numpy_source.read_text(encoding="utf-8"))
    entry = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == kernel.function)
    return ast.get_docstring(entry) or ast.get_docstring(tree) or ""


def page(kernel: Kernel, tags: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Everything ``kernels show`` tells, as plain data."""
    return {
        **summary(kernel, tags),
        "mathematics": docstring(kernel),
        "source": str(kernel.manifest.taxonomy.get("source", "")),
        "reference": kernel.numpy_source.read_text(encoding="utf-8"),
        "folder": str(kernel.folder),
        "sizes": kernel.presets,
        "configs": list(kernel.configs),
        "bytes": {preset: kernel.input_bytes(kernel.presets[preset]) for preset in PRESETS},
        "operations": _operations(kernel),
        "binding": binding(kernel).to_json(),
        "references": _references(kernel),
        "loops": _loops(kernel),
        "tolerances": _tolerances(kernel),
        "fingerprint": spec.task_fingerprint(kernel),
    }


def _operations(kernel: Kernel) -> dict[str, Any]:
    try:
        counted = operations.count(kernel)
    except (UserError, NotBuilt) as error:
        return {"counted": "not", "reason": str(error)}
    how = "exactly" if counted.exact else "estimated"
    return {"counted": how, **counted.per_preset}


def _references(kernel: Kernel) -> dict[str, str]:
    """Language to ``emitted``, or why there is none."""
    found = {}
    for language in translators.LANGUAGES:
        try:
            translators.emit(kernel, language)
        except UserError as error:
            found[language] = str(error)
        else:
            found[language] = "emitted"
    for path in sorted(kernel.folder.glob(f"{kernel.name}_*")):
        if path.is_file() and path != kernel.numpy_source:
            found[path.name] = "written by hand"
    return found


def _loops(kernel: Kernel) -> list[dict[str, Any]]:
    try:
        verdicts = translators.explain(kernel)
    except UserError:
        return []
    return [
        {
            "line": verdict.line,
            "index": verdict.index,
            "parallel": verdict.parallel,
            "reason": verdict.reason,
            "reductions": [f"{reduction.op} {reduction.name}" for reduction in verdict.reductions],
        }
        for verdict in verdicts
    ]


def _tolerances(kernel: Kernel) -> dict[str, Any]:
    """By output, the judge's band at XL."""
    oracle = Oracle(kernel)
    params = {**kernel.presets["XL"], **kernel.configs[0]}
    case = Case(tuple(sorted(params.items())), None, 0, "XL")
    found: dict[str, Any] = {}
    for output in kernel.outputs:
        try:
            tolerance = oracle.tolerance(output, case)
        except Ungradeable as error:
            found[output] = {"rule": "ungradeable", "reason": str(error)}
            continue
        exact = tolerance == precision.EXACT
        found[output] = {
            "rtol": tolerance.rtol,
            "atol": tolerance.atol,
            "length": tolerance.length,
            "rule": "exact" if exact else tolerance.rule,
        }
    return found
