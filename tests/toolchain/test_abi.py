"""The calling convention: order, constness, declarations, and the JSON an agent reads."""

from __future__ import annotations

import subprocess

import pytest

from hpcagent_bench.corpus import spec
from hpcagent_bench.toolchain import abi, flags


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
    lines = ["#include <stdint.h>"]
    for name in spec.discover():
        lines.append(f"{abi.c_declaration(abi.binding(spec.load(name)), language)} {{}}")
    source = tmp_path / f"all.{language}"
    source.write_text("\n".join(lines) + "\n")
    extra = ("-Werror", "-Wno-unused-parameter")
    subprocess.run(flags.compile_command(language, source, tmp_path / "all.so", extra=extra), check=True)
