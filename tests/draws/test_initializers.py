"""Kernels that make their own arrays: which ones, from which seeds, and every way to get it wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from hpcagent_bench.corpus import datatypes, fuzz, spec
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.errors import UserError
from hpcagent_bench.support.distributions import Variant

MANIFEST = """\
name: Made Up
level: 1
parameters:
  S: {N: 8}
  M: {N: 16}
  L: {N: 32}
  XL: {N: 64}
init:
  func_name: initialize
  input_args: [N, K]
  output_args: [spd, order]
  scalars: {K: 3}
  arrays:
    order: {shape: "(N,)", dtype: int32}
    out: (N,)
    spd: (N, N)
    x: (N,)
output_args: [out]
"""
CODE = """\
import numpy as np


def initialize(N, K, datatype, rng, structure_rng):
    half = rng.standard_normal((N, N))
    spd = (half @ half.T + K * N * np.eye(N)).astype(datatype)
    return spd, structure_rng.permutation(N).astype(np.int32)
"""
Maker = Callable[..., Kernel]


@pytest.fixture
def make(tmp_path: Path) -> Maker:
    def write(code: str = CODE, manifest: str = MANIFEST) -> Kernel:
        folder = tmp_path / "loop_level_reasoning" / "made_up"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "made_up.yaml").write_text(manifest)
        (folder / "made_up_numpy.py").write_text("def made_up(order, out, spd, x, N, K):\n    pass\n")
        (folder / "made_up.py").write_text(code)
        return spec.load("made_up", root=tmp_path)

    return write


def draw(
    kernel: Kernel, *, value: int = 1, structural: int = 2, datatype: str = "float64", **more: Any
) -> dict[str, npt.NDArray[Any]]:
    types = kernel.dtypes(datatype)
    arrays: dict[str, npt.NDArray[Any]] = {
        name: np.empty(shape, datatypes.numpy_dtype(types[name]))
        for name, shape in kernel.shapes({"N": 12}).items()
    }
    fuzz.fill(kernel, arrays, {"N": 12}, value_seed=value, structural_seed=structural, threads=1, **more)
    return arrays


def test_made_and_declared_arrays_come_together(make: Maker) -> None:
    drawn = draw(make())
    assert np.allclose(drawn["spd"], drawn["spd"].T)
    assert np.linalg.eigvalsh(drawn["spd"]).min() >= 36
    assert sorted(drawn["order"].tolist()) == list(range(12))
    assert np.abs(drawn["x"]).max() > 100  # drawn as declared
    assert draw(make(), datatype="bfloat16")["spd"].dtype == ml_dtypes.bfloat16


def test_values_follow_one_seed_and_structure_the_other(make: Maker) -> None:
    kernel = make()
    first, other, moved = draw(kernel), draw(kernel, value=5), draw(kernel, structural=5)
    assert first["order"].tobytes() == other["order"].tobytes() != moved["order"].tobytes()
    assert first["spd"].tobytes() == moved["spd"].tobytes() != other["spd"].tobytes()
    assert first["spd"].tobytes() == draw(kernel)["spd"].tobytes()
    copied = draw(kernel, value=5, structural=5, structural_from=first)
    assert copied["order"].tobytes() == first["order"].tobytes()


def test_no_held_out_distribution_rotates(make: Maker) -> None:
    plain, varied = draw(make()), draw(make(), variant=Variant("h5", "lognormal", 0.1))
    assert all(plain[name].tobytes() == varied[name].tobytes() for name in plain)


def test_the_function_is_called_only_for_what_it_makes(make: Maker) -> None:
    expected, out = draw(make())["out"], np.empty(12)
    kernel = make("def initialize(N, K):\n    raise RuntimeError('called')\n")
    fuzz.fill(kernel, {"out": out}, {"N": 12}, value_seed=1, structural_seed=2, threads=1)
    assert np.array_equal(out, expected)
    with pytest.raises(RuntimeError, match="called"):
        draw(kernel)


def test_inputs_then_outputs_of_one_draw_take_one_call(make: Maker, tmp_path: Path) -> None:
    count = f"    open({str(tmp_path / 'calls')!r}, 'a').write('x')\n    half"
    kernel = make(CODE.replace("    half", count, 1))
    options: dict[str, Any] = {"structural_seed": 2, "threads": 1}
    for value in (1, 5):
        together = draw(kernel, value=value)
        (tmp_path / "calls").unlink()
        first, later = {"spd": np.empty((12, 12))}, {"order": np.empty(12, np.int32), "out": np.empty(12)}
        fuzz.fill(kernel, first, {"N": 12}, value_seed=value, **options)
        for _ in range(2):  # each side's own buffers
            fuzz.fill(kernel, later, {"N": 12}, value_seed=value, datatype="float64", **options)
            for name, array in {**first, **later}.items():
                assert array.tobytes() == together[name].tobytes()
        assert (tmp_path / "calls").read_text() == "x"


def test_without_output_args_it_makes_every_array_in_the_manifests_order(make: Maker) -> None:
    manifest = MANIFEST.replace("  output_args: [spd, order]\n", "")
    code = """\
import numpy as np


def initialize(N, K, datatype):
    order, spd = np.arange(N, dtype=np.int32), np.ones((N, N), datatype)
    return order, np.full(N, 2.0, datatype), spd, np.zeros(N, datatype)
"""
    drawn = draw(make(code, manifest))
    assert (drawn["order"][5], drawn["out"][5], drawn["spd"][5, 5], drawn["x"][5]) == (5, 2.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return np.eye(N)", r"made_up\.py: returns 1 arrays where 2 are declared"),
        (
            "return np.eye(N + 1), np.arange(N, dtype=np.int32)",
            r"array 'spd' has shape \(13, 13\) and type float64; declared is \(12, 12\) of float64",
        ),
        ("return np.eye(N), np.arange(N)", r"array 'order' has shape \(12,\) and type int64"),
        ("return np.eye(N), list(range(N))", "array 'order' is a list; return NumPy arrays"),
    ],
)
def test_what_it_returns_must_be_what_is_declared(make: Maker, body: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        draw(make(f"import numpy as np\n\n\ndef initialize(N, K):\n    {body}\n"))
