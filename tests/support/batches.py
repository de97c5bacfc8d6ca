"""Many references at once: emitted, compiled by one compiler run, called, and compared with NumPy."""

from __future__ import annotations

import re
import subprocess
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from hpcagent_bench.corpus import spec
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.toolchain import in_process, languages
from hpcagent_bench.translators import emit

Arrays = dict[str, np.ndarray]
FLAGS = ("-O1", "-fPIC", "-shared", "-ffp-contract=off", "-fno-math-errno", "-w", "-lm")
_STATIC = re.compile(r"^static [^=;{]*?\b(\w+)\(", re.MULTILINE)


@dataclass
class Case:
    """One program with what NumPy makes of some inputs: (sizes, before, after)."""

    kernel: Kernel
    text: str
    exact: bool
    runs: list[tuple[dict[str, int], Arrays, Arrays]]


def kernel_of(
    text: str, name: str, folder: Path, arrays: Mapping[str, Any], outputs: Sequence[str]
) -> Kernel:
    """The kernel of a module text whose function is called ``probe``."""
    base = folder / name
    home = base / "loop_level_reasoning" / name
    home.mkdir(parents=True)
    (home / f"{name}_numpy.py").write_text(text)
    sizes = {preset: {"N": n, "M": n + 1} for preset, n in {"S": 8, "M": 16, "L": 32, "XL": 64}.items()}
    manifest = {"name": name, "level": 1, "func_name": "probe", "parameters": sizes}
    manifest |= {"init": {"arrays": dict(arrays)}, "output_args": list(outputs)}
    (home / f"{name}.yaml").write_text(yaml.safe_dump(manifest))
    return spec.load(name, base)


def drawn(kernel: Kernel, sizes: Mapping[str, int], seed: int, whole: bool) -> Arrays:
    """Arguments with ties, zeros and negatives (``whole``), or without a tie; ip and jp lie below N."""
    rng = np.random.default_rng([seed, *sizes.values()])
    arrays: Arrays = {}
    for name, shape in kernel.shapes(sizes).items():
        dtype = np.dtype(kernel.dtypes()[name])
        if name in ("ip", "jp"):
            arrays[name] = rng.integers(0, sizes["N"], shape) if name == "ip" else rng.permutation(shape[0])
        elif dtype.kind == "b":
            arrays[name] = rng.random(shape) < 0.5
        elif dtype.kind in "iu":
            low = 0 if dtype.kind == "u" else -9
            wide = np.iinfo(dtype).max if seed % 3 == 2 else 9
            arrays[name] = rng.integers(max(low, -wide), wide, shape, dtype=dtype)
        elif dtype.kind == "c":
            parts = rng.integers(-5, 6, (2, *shape)) if whole else rng.normal(size=(2, *shape))
            arrays[name] = (parts[0] + 1j * parts[1]).astype(dtype)
        else:
            values = rng.integers(-5, 6, shape) / 2 if whole else rng.normal(size=shape) * 3
            arrays[name] = values.astype(dtype)
    return arrays


def copied(arrays: Arrays) -> Arrays:
    return {name: array.copy() for name, array in arrays.items()}


def prepared(kernel: Kernel, text: str, exact: bool, sizes: Sequence[Mapping[str, int]]) -> Case | None:
    """The case, or None when NumPy raises on some input (a zero divisor among Python's numbers, say)."""
    function = kernel.load_numpy()
    runs = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed, each in enumerate(sizes):
            before = drawn(kernel, each, seed, whole=exact)
            after = copied(before)
            values = {**kernel.scalars(each), **after}
            try:
                function(*(values[name] for name in kernel.arg_order))
            except (ArithmeticError, ValueError):
                return None
            runs.append((dict(each), before, after))
    return Case(kernel, text, exact, runs)


def compiled(
    cases: Sequence[Case], language: str, folder: Path, parallel: bool | None = None
) -> list[Callable[..., None]]:
    """A callable for every case; Unsupported where the translator refuses one."""
    sources = [emit(case.kernel, language, parallel=parallel) for case in cases]
    folder.mkdir(parents=True, exist_ok=True)
    if language == "numba":
        return [_module(case.kernel, text, folder) for case, text in zip(cases, sources, strict=True)]
    if language in ("c", "cpp"):
        sources = [_apart(source, number) for number, source in enumerate(sources)]
    parts = min(2, len(cases))

    def build(part: int) -> Path:
        path = folder / f"part{part}{languages.get(language).extension}"
        path.write_text("\n".join(sources[part::parts]))
        library = path.with_suffix(".so")
        openmp = ["-fopenmp"] if parallel else []
        free = ["-ffree-line-length-none"] if language == "fortran" else []
        compiler = languages.get(language).compiler("gcc")
        command = [compiler, *free, *openmp, str(path), "-o", str(library), *FLAGS]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:4000]
        return library

    with ThreadPoolExecutor(parts) as pool:
        libraries = list(pool.map(build, range(parts)))
    return [in_process.of_library(case.kernel, libraries[n % parts]) for n, case in enumerate(cases)]


def _module(kernel: Kernel, text: str, folder: Path) -> Callable[..., None]:
    path = folder / f"{kernel.name}_numba.py"
    path.write_text(text)
    return in_process.of_module(kernel, path)


def _apart(source: str, number: int) -> str:
    """Static helpers get the program's number, so that many programs fit in one file."""
    for name in set(_STATIC.findall(source)):
        source = re.sub(rf"\b{name}\b", f"{name}_p{number}", source)
    return source


def difference(case: Case, call: Callable[..., None]) -> str:
    """Where an emitted program departs from NumPy, with the inputs that show it; empty when nowhere."""
    for sizes, before, after in case.runs:
        actual = copied(before)
        call(actual, sizes)
        for name, expected in after.items():
            if case.exact or expected.dtype.kind not in "fc":
                same = np.array_equal(actual[name], expected, equal_nan=expected.dtype.kind in "fc")
            else:
                loose = 1e-4 if expected.dtype.itemsize // (1 + (expected.dtype.kind == "c")) == 4 else 1e-9
                same = np.allclose(actual[name], expected, rtol=loose, atol=loose, equal_nan=True)
            if not same:
                used = {n: array for n, array in before.items() if re.search(rf"\b{n}\b", case.text)}
                shown = "\n".join(f"{n} = {array!r}" for n, array in used.items())
                return f"{case.text}\n{sizes}\n{shown}\n{name}: NumPy {expected!r}\nemitted {actual[name]!r}"
    return ""
