"""Manifest blocks: custom initialisation, constants, workspace, precisions, domains, baseline, ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hpcagent_bench import config
from hpcagent_bench.corpus import datatypes, spec
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness import denominator

Writer = Callable[..., Kernel]
VENDORED = {"kind": "vendored", "source": "best.c", "language": "c", "mode": "multi_core"}
MPI = {
    "decomposition": {"axis": ["N"], "halo": 1, "work_exponent": 1},
    "arrays": {"x": ["N"]},
    "symbol_axes": {"N": ["x", 0]},
    "location": {"x": "host"},
    "allowed_schemes": ["block"],
}
INITIALIZER = "def initialize(N, datatype, rng, structure_rng):\n    return None\n"


def arrays(**declared: Any) -> dict[str, Any]:
    """Manifest keys with these arrays and an output."""
    return {"init": {"arrays": {**declared, "out": "(N,)"}}}


def init(**keys: Any) -> dict[str, Any]:
    return {"init": {"arrays": {"x": "(N,)", "out": "(N,)"}, **keys}}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "custom init keys alone": (init(input_args=["N"]), "belong to func_name, which is missing"),
    "custom output": (
        init(func_name="initialize", output_args=["y"]),
        "init: output_args names 'y'; valid: out, x",
    ),
    "custom input": (init(func_name="initialize", input_args=["M"]), "init.input_args: 'M' is not declared"),
    "custom function": (
        init(func_name="initialise"),
        "no function 'initialise' (init.func_name); did you mean",
    ),
    "custom parameters": (
        init(func_name="initialize", input_args=[]),
        "initialize takes N, datatype, rng, structure_rng; init.input_args asks for (datatype, rng",
    ),
    "constant and size": (init(constants={"N": 3}), "init.constants: 'N' is declared twice"),
    "negative workspace": (init(workspace={"bytes": -1}), "init.workspace.bytes: -1 is negative"),
    "workspace of nothing": (init(workspace={"bytes": "8 * K"}), "reads 'K', which is not declared"),
    "scalar type": (
        init(scalars={"s": {"value": 1, "dtype": "int8"}}),
        "init.scalars.s.dtype = 'int8': ",
    ),
    "misspelt init key": (init(fun_name="f"), "unknown key 'init.fun_name'; did you mean 'func_name'?"),
    "misspelt workspace key": (init(workspace={"byte": 1}), "unknown key 'init.workspace.byte'; did you"),
    "real dist of integers": (
        arrays(x={"shape": "(N,)", "dtype": "int32", "dist": "normal"}),
        "dist 'normal' is for reals; integers take permutation, uniform, offsets",
    ),
    "integer dist of reals": (
        arrays(x={"shape": "(N,)", "dist": "offsets"}),
        "dist 'offsets' is for integers",
    ),
    "sign of integers": (
        arrays(x={"shape": "(N,)", "dtype": "int8", "domain": "positive"}),
        "domain 'positive' is for reals; integers take [lo, hi]",
    ),
    "matrix of offsets": (
        arrays(x={"shape": "(N, N)", "dtype": "int32", "dist": "offsets", "domain": [0, 9]}),
        "dist 'offsets' is for vectors",
    ),
    "offsets to nowhere": (
        arrays(x={"shape": "(N,)", "dtype": "int32", "dist": "offsets"}),
        "dist 'offsets' needs domain: [lo, hi]",
    ),
    "permutation with domain": (
        arrays(x={"shape": "(N,)", "dtype": "int32", "dist": "permutation", "domain": [0, 9]}),
        "a permutation has the domain 0 .. n-1",
    ),
    "structure with domain": (
        arrays(x={"shape": "(N, N)", "dist": "stable", "domain": [0, 1]}),
        "dist 'stable' fixes the values itself; remove domain",
    ),
    "structure of a vector": (arrays(x={"shape": "(N,)", "dist": "stable"}), "needs square matrices"),
    "structure of a rectangle": (
        arrays(x={"shape": "(N, N + 1)", "dist": "unstable"}),
        "dist 'unstable' needs square matrices; the last two axes of (N, N + 1) differ",
    ),
    "structure of complex": (
        arrays(x={"shape": "(N, N)", "dist": "stable", "dtype": "complex64"}),
        "dist 'stable' is for reals, not complex64",
    ),
    "boolean domain": (
        arrays(x={"shape": "(N,)", "dtype": "bool", "domain": [0, 1]}),
        "booleans are fair bits",
    ),
    "index of reals": (
        arrays(x={"shape": "(N,)", "dtype": "float32", "index_array": True}),
        "an index_array holds integers, not float32",
    ),
    "unknown end": (
        arrays(x={"shape": "(N,)", "dtype": "int32", "domain": [0, "M - 1"]}),
        "preset S: expression 'M - 1' reads 'M', which is not declared",
    ),
    "empty domain": (
        arrays(x={"shape": "(N,)", "dtype": "int32", "domain": ["N", 12]}),
        "preset M: kernel probe: array x has the empty domain [16, 12]",
    ),
    "precision": ({"precisions": ["fp46"]}, "precisions.0: 'fp46' is not known; did you mean 'fp64'?"),
    "precision below the floor": (
        {"precisions": ["fp64", "bf16"], "min_precision": "fp32"},
        "precisions lists bf16, which is below min_precision fp32",
    ),
    "language": (
        {"languages": ["c", "fotran"]},
        "languages.1: 'fotran' is not known; did you mean 'fortran'?",
    ),
    "fuzz key": ({"fuzz": {"data_dist": ["normal"]}}, "unknown key 'fuzz.data_dist'; did you mean"),
    "fuzz distribution": (
        {"fuzz": {"data_distributions": ["cauchy"]}},
        "fuzz.data_distributions.0 = 'cauchy'",
    ),
    "whole application": ({"level": 3}, "a loop-level kernel is no whole application"),
    "baseline source": ({"baseline": VENDORED}, "baseline.source: no file 'best.c' beside the manifest"),
    "baseline key": (
        {"baseline": {**VENDORED, "src": "a"}},
        "unknown key 'baseline.src'; did you mean 'source'?",
    ),
    "mpi axis": (
        {"mpi": {**MPI, "decomposition": {"axis": ["n"]}}},
        "mpi: 'n' is not declared",
    ),
    "mpi array": ({"mpi": {**MPI, "arrays": {"z": ["N"]}}}, "mpi: 'z' is not declared"),
    "mpi key": ({"mpi": {**MPI, "halo": 1}}, "unknown key 'mpi.halo'"),
}


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_mistakes_are_refused(write_kernel: Writer, change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        write_kernel(change, initializer=INITIALIZER)
    assert message in str(caught.value)
    assert "probe" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_key_written_twice_is_refused_with_both_lines(write_kernel: Writer) -> None:
    kernel = write_kernel()
    path = kernel.folder / "probe.yaml"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, "level: 2"]))
    first = lines.index("level: 1") + 1
    with pytest.raises(UserError, match=rf"'level' is written twice, in lines {first} and {len(lines) + 1}"):
        spec.load("probe", kernel.folder.parents[1])


@pytest.mark.parametrize(("track", "gib"), [("loop_level_reasoning", 4), ("scientific_computing", 12)])
def test_xl_must_fit_its_ceiling(write_kernel: Writer, track: str, gib: int) -> None:
    most = gib * 2**30 // 16  # two vectors of doubles
    sizes = {"S": {"N": 8}, "M": {"N": 16}, "L": {"N": 32}}
    write_kernel({"parameters": {**sizes, "XL": {"N": most}}}, track=track)
    with pytest.raises(UserError, match=rf"preset XL takes {gib}\.00 GiB of arrays; at most {gib} GiB"):
        write_kernel({"parameters": {**sizes, "XL": {"N": most + 1}}}, track=track)


def test_constants_are_known_to_expressions_and_never_passed(write_kernel: Writer) -> None:
    change = {"init": {"constants": {"PAD": 3}, "arrays": {"x": "(N + PAD,)", "out": "(N,)"}}}
    kernel = write_kernel({**change, "constraints": ["N > PAD"]})
    assert kernel.shapes({"N": 10})["x"] == (13,)
    assert list(kernel.scalars({})) == ["N"]
    assert kernel.broken_constraint({"N": 3}) == "N > 3"
    assert kernel.broken_constraint({"N": 4}) is None


def test_workspace_floor_follows_the_sizes(write_kernel: Writer) -> None:
    assert write_kernel().workspace_floor({"N": 10}) == 0
    assert write_kernel(init(workspace={"bytes": 4096})).workspace_floor({"N": 10}) == 4096
    assert write_kernel(init(workspace={"bytes": "8 * N + 256"})).workspace_floor({"N": 10}) == 336


def test_precisions_and_their_floor(write_kernel: Writer) -> None:
    assert write_kernel().precisions == ("float64", "float32")
    chaotic = write_kernel({"min_precision": "fp64"})
    assert chaotic.precisions == ("float64",)
    with pytest.raises(UserError, match="kernel probe needs fp64 at least, not bfloat16"):
        chaotic.dtypes("bf16")
    names = ["fp64", "fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"]
    assert write_kernel({"precisions": names}).precisions == datatypes.DATATYPES


def test_scalars_may_pin_their_type(write_kernel: Writer) -> None:
    kernel = write_kernel(init(scalars={"s": {"value": 2, "dtype": "float64"}, "t": 0.5, "k": 3}))
    assert kernel.scalars({})["s"] == 2
    types = kernel.dtypes("float32")
    assert (types["s"], types["t"], types["k"]) == ("float64", "float32", "int64")


def test_a_baseline_of_its_own_is_the_denominator(write_kernel: Writer) -> None:
    kernel = write_kernel({"baseline": VENDORED}, files=("best.c",))
    assert kernel.manifest.baseline is not None
    assert denominator.for_kernel(kernel, config.Measurement()).kinds == ("vendored",)


def test_a_kernel_may_say_how_it_is_distributed(write_kernel: Writer) -> None:
    declared = write_kernel({"mpi": MPI}).manifest.mpi
    assert declared is not None
    assert declared.symbol_axes == {"N": ("x", 0)}
    assert declared.decomposition.work_exponent == 1


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *(("float64", "float64"), ("fp64", "float64"), ("fp32", "float32"), ("fp16", "float16")),
        *(("bf16", "bfloat16"), ("fp8_e4m3", "float8_e4m3"), ("fp8_e5m2", "float8_e5m2")),
    ],
)
def test_precisions_as_command_lines_spell_them(text: str, name: str) -> None:
    assert datatypes.parse(text) == name


def test_an_unknown_precision_names_the_nearest() -> None:
    with pytest.raises(UserError, match="datatype 'fp46' is not supported; did you mean 'fp64'"):
        datatypes.parse("fp46")


@pytest.mark.parametrize(
    ("name", "eps", "largest", "itemsize"),
    [  # IEEE 754 and the OCP eight-bit formats: 2^-(digits - 1) and the largest finite number
        *(("float16", 2.0**-10, 65504.0, 2), ("bfloat16", 2.0**-7, 3.3895314e38, 2)),
        *(("float8_e4m3", 0.125, 448.0, 1), ("float8_e5m2", 0.25, 57344.0, 1)),
    ],
)
def test_narrow_formats(name: str, eps: float, largest: float, itemsize: int) -> None:
    dtype = datatypes.numpy_dtype(name)
    assert datatypes.epsilon(name) == eps
    assert dtype.itemsize == itemsize
    assert datatypes.dtype_name(dtype) == name
    assert float(dtype.type(largest)) == pytest.approx(largest, rel=1e-6)
    assert datatypes.integer_range("int4") == (-8, 7)
