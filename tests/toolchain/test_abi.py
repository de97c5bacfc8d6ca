"""The calling convention: order, constness, declarations, and the JSON an agent reads."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from hpcagent_bench.corpus import spec
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.toolchain import abi, flags
from hpcagent_bench.toolchain.fortran_abi import argument_names, fortran_interface


def test_pointers_first_then_scalars_each_by_name():
    bound = abi.binding(spec.load("argmax_with_index"))
    assert [arg.name for arg in bound.args] == ["a", "out_index", "out_value", "LEN_1D"]
    assert [arg.const for arg in bound.args] == [True, False, False, True]
    assert [arg.role for arg in bound.args] == ["input", "output", "output", "symbol"]
    assert [arg.name for arg in bound.pointers] == ["a", "out_index", "out_value"]
    assert [arg.name for arg in bound.scalars] == ["LEN_1D"]
    assert abi.c_declaration(bound) == (
        "void argmax_with_index_fp64(const double *restrict a, int64_t *restrict out_index, "
        "double *restrict out_value, const int64_t LEN_1D, uint8_t *restrict workspace, "
        "const int64_t workspace_size)"
    )


def test_single_precision_keeps_the_symbol_and_pinned_types():
    declared = abi.c_declaration(abi.binding(spec.load("argmax_with_index"), "float32"))
    assert declared.startswith(
        "void argmax_with_index_fp64(const float *restrict a, int64_t *restrict out_index"
    )


def test_json_fields():
    data = abi.binding(spec.load("tsvc_2_s115")).to_json()
    assert data["kernel"] == "tsvc_2_s115"
    assert data["symbol"] == "tsvc_2_s115_fp64"
    assert data["abi"] == "c-abi-v2"
    assert data["symbols"] == ["LEN_2D"]
    assert data["packed"] == []
    assert data["args"] == [
        {
            "name": "a",
            "kind": "ptr",
            "dtype": "float64",
            "const": False,
            "shape": ["LEN_2D"],
            "role": "output",
        },
        {"name": "aa", "kind": "ptr", "dtype": "float64", "const": True, "shape": ["LEN_2D", "LEN_2D"]},
        {"name": "LEN_2D", "kind": "scalar", "dtype": "int64", "const": True, "role": "symbol"},
    ]


def test_names_c_reserves_are_respelled():
    assert [abi.c_name(name) for name in ("exp", "double", "aa", "LEN_1D")] == [
        "exp_",
        "double_",
        "aa",
        "LEN_1D",
    ]


@pytest.mark.parametrize("language", ["c", "cpp"])
def test_declarations_compile_in_both_languages(language, tmp_path):
    bound = [abi.binding(spec.load(name)) for name in spec.discover()]
    lines = sorted({header for one in bound for header in abi.c_headers(one, language)})
    lines += [f"{abi.c_declaration(one, language)} {{}}" for one in bound]
    source = tmp_path / f"all.{language}"
    source.write_text("\n".join(lines) + "\n")
    extra = ("-Werror", "-Wno-unused-parameter")
    subprocess.run(flags.compile_command(language, source, tmp_path / "all.so", extra=extra), check=True)


EVERY_DTYPE = (
    *("float64", "float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2", "complex64", "complex128"),
    *("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "int4", "bool"),
)


@pytest.fixture
def every_dtype(tmp_path: Path) -> Kernel:
    """A kernel with an array of each dtype, names that differ only in case, and extents that are sums."""
    folder = tmp_path / "loop_level_reasoning" / "probe"
    folder.mkdir(parents=True)
    arrays = {f"a_{dtype}": {"shape": "(N + 1, n // 2, 3)", "dtype": dtype} for dtype in EVERY_DTYPE}
    (folder / "probe_numpy.py").write_text(f"def probe({', '.join(arrays)}, scale, n, N):\n    pass\n")
    sizes = {preset: {"N": 8 * k, "n": 4 * k} for k, preset in enumerate(("S", "M", "L", "XL"), 1)}
    manifest = {
        "name": "Probe",
        "level": 1,
        "parameters": sizes,
        "init": {"arrays": arrays, "scalars": {"scale": 0.5}},
        "output_args": ["a_float64"],
    }
    (folder / "probe.yaml").write_text(yaml.safe_dump(manifest))
    return spec.load("probe", tmp_path)


def test_every_dtype_is_declared_in_c_and_cpp(every_dtype, tmp_path):
    bound = abi.binding(every_dtype)
    c, cpp = (abi.c_declaration(bound, language) for language in ("c", "cpp"))
    for dtype, spelled in {
        "float16": "_Float16",
        "bfloat16": "uint16_t",
        "float8_e4m3": "uint8_t",
        "float8_e5m2": "uint8_t",
        "int4": "int8_t",
        "bool": "uint8_t",
        "uint32": "uint32_t",
        "complex64": "float _Complex",
        "complex128": "double _Complex",
    }.items():
        assert f"const {spelled} *restrict a_{dtype}," in c
    assert "const std::complex<double> *__restrict__ a_complex128," in cpp
    assert "double *restrict a_float64" in c
    assert "const double scale" in c
    for language, declared in (("c", c), ("cpp", cpp)):
        source = tmp_path / f"probe.{language}"
        source.write_text("\n".join([*abi.c_headers(bound, language), f"{declared} {{}}", ""]))
        extra = ("-Werror", "-Wno-unused-parameter")
        subprocess.run(flags.compile_command(language, source, tmp_path / "p.so", extra=extra), check=True)


@pytest.mark.parametrize("datatype", ["bfloat16", "float8_e4m3", "float16"])
def test_scalars_of_storage_formats_travel_as_float(datatype, every_dtype):
    (scale,) = (arg for arg in abi.binding(every_dtype, datatype).args if arg.name == "scale")
    assert scale.dtype == "float32"


def test_fortran_sees_reversed_extents_from_zero_and_scalars_by_value(every_dtype):
    text = fortran_interface(abi.binding(every_dtype))
    names = argument_names(abi.binding(every_dtype))
    assert {names["N"], names["n"]} == {"N", "n2"}
    assert "real(c_double), intent(inout) :: a_float64(0:2, 0:n2 / 2 - 1, 0:N)" in text
    assert "integer(c_int16_t), intent(in) :: a_bfloat16(0:2, 0:n2 / 2 - 1, 0:N)" in text
    assert "complex(c_float_complex), intent(in) :: a_complex64(" in text
    assert "integer(c_int64_t), value, intent(in) :: N\n" in text
    assert "real(c_double), value, intent(in) :: scale\n" in text
    assert 'bind(C, name="probe_fp64")' in " ".join(text.replace("&", "").split())
    assert max(map(len, text.splitlines())) < 132


def test_fortran_interfaces_compile(every_dtype, tmp_path):
    kernels = [every_dtype, *(spec.load(name) for name in spec.discover())]
    source = tmp_path / "all.f90"
    blocks = "".join(fortran_interface(abi.binding(kernel)) for kernel in kernels)
    source.write_text(f"module all_kernels\n    implicit none\n{blocks}end module all_kernels\n")
    command = flags.compile_command("fortran", source, tmp_path / "all.so", extra=("-Werror",))
    subprocess.run(command, check=True, cwd=tmp_path)


def test_binding_names_the_workspace(every_dtype):
    data = abi.binding(every_dtype).to_json()
    assert data["workspace"] == {"pointer": "workspace", "size": "workspace_size", "alignment": 256}
    assert data["symbols"] == ["N", "n"]
    roles = {arg["name"]: arg.get("role") for arg in data["args"]}
    assert roles["a_float64"] == "output"
    assert roles["scale"] is None
