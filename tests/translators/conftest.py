"""Kernels written on the spot, and calls of their NumPy and emitted forms on the same inputs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from hpcagent_bench.corpus import spec
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.toolchain import flags, in_process, languages
from hpcagent_bench.translators import emit

Arrays = dict[str, np.ndarray]
STRICT = {
    "c": ("-ffp-contract=off", "-Werror"),
    "cpp": ("-ffp-contract=off", "-Werror"),
    # gfortran reassociates unless told not to, and does not see the if around an access that it warns about
    "fortran": ("-ffp-contract=off", "-fno-associative-math", "-Werror", "-Wno-do-subscript"),
}


@pytest.fixture
def make_kernel(tmp_path: Path) -> Callable[..., Kernel]:
    def make(
        source: str, arrays: Mapping[str, Any], outputs: list[str], name: str = "probe", **keys: Any
    ) -> Kernel:
        folder = tmp_path / "corpus" / "loop_level_reasoning" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}_numpy.py").write_text(source)
        sizes = {"S": {"N": 8}, "M": {"N": 16}, "L": {"N": 32}, "XL": {"N": 64}}
        manifest = {"name": name, "level": 1, "parameters": sizes, "init": {"arrays": dict(arrays)}, **keys}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({**manifest, "output_args": outputs}))
        return spec.load(name, tmp_path / "corpus")

    return make


@pytest.fixture
def inputs() -> Callable[..., Arrays]:
    """Random arguments of a kernel, uniform in its interval domain or in [-1000, 1000)."""

    def draw(
        kernel: Kernel, params: Mapping[str, int | float], datatype: str = "float64", seed: int = 7
    ) -> Arrays:
        rng = np.random.default_rng(seed)
        arrays: Arrays = {}
        for name, shape in kernel.shapes(params).items():
            domain = kernel.arrays[name].domain
            low, high = domain if isinstance(domain, tuple) else (-1000.0, 1000.0)
            arrays[name] = rng.uniform(low, high, shape).astype(kernel.dtypes(datatype)[name])
        return arrays

    return draw


@pytest.fixture
def call_numpy() -> Callable[..., None]:
    def call(kernel: Kernel, arrays: Arrays, params: Mapping[str, int | float]) -> None:
        in_process.of_function(kernel, kernel.load_numpy())(arrays, params)

    return call


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Callable[..., None]]:
    """The emitted source of any language as a callable; warnings are errors and nothing is contracted."""

    def build(
        kernel: Kernel, language: str, datatype: str = "float64", parallel: bool | None = None
    ) -> Callable[..., None]:
        text = emit(kernel, language, datatype, parallel=parallel)
        if language == "numba":
            return _module(kernel, text, tmp_path)
        extension = languages.get(language).extension
        stem = f"{kernel.name}_{datatype}_{parallel}"
        source, library = tmp_path / f"{stem}{extension}", tmp_path / f"{stem}_{language}.so"
        source.write_text(text)
        done = subprocess.run(
            flags.compile_command(language, source, library, extra=STRICT[language]),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{done.stderr}\n{text}"
        emitted = in_process.of_library(kernel, library, datatype)

        def call(arrays: Arrays, params: Mapping[str, int | float]) -> None:
            assert all(array.flags.c_contiguous for array in arrays.values())
            emitted(arrays, params)

        return call

    return build


def _module(kernel: Kernel, text: str, folder: Path) -> Callable[..., None]:
    """The emitted numba module's function, compiled from a file of its own."""
    path = folder / f"{kernel.name}_emitted_{len(list(folder.glob('*.py')))}.py"
    path.write_text(text)
    return in_process.of_module(kernel, path)


@pytest.fixture
def build_c(build: Callable[..., Callable[..., None]]) -> Callable[..., Callable[..., None]]:
    """The emitted C as a callable."""
    return lambda kernel, datatype="float64": build(kernel, "c", datatype)


@pytest.fixture
def build_numba(build: Callable[..., Callable[..., None]]) -> Callable[..., Callable[..., None]]:
    """The emitted numba module's function."""
    return lambda kernel: build(kernel, "numba")
