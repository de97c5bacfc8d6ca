"""Manifests: the eight kernels as the study defines them, and every mistake refused in one line."""

from __future__ import annotations

import math

import numpy as np
import pytest
import yaml

from hpcagent_bench.corpus import spec
from hpcagent_bench.errors import UserError

XL = {
    "argmax_with_index": {"LEN_1D": 520764782},
    "ext_war_unit": {"LEN_1D": 260382392},
    "fuse_diamond": {"LEN_1D": 178346815},
    "tsvc_2_s115": {"LEN_2D": 22819},
    "tsvc_2_s231": {"LEN_2D": 11966},
    "tsvc_2_s311": {"LEN_1D": 260382392},
    "tsvc_2_vtvtv": {"LEN_1D": 173588261},
    "wf_triangular": {"LEN_2D": 22820},
}
SOURCE = "def probe(x, out, N):\n    for i in range(N):\n        out[i] = x[i]\n"
SIZES = {"S": {"N": 8}, "M": {"N": 16}, "L": {"N": 32}, "XL": {"N": 64}}
PLAIN = {
    "name": "Probe",
    "level": 1,
    "parameters": SIZES,
    "init": {"arrays": {"x": "(N,)", "out": "(N,)"}},
    "output_args": ["out"],
}


@pytest.fixture
def load(tmp_path):
    def from_text(text, source=SOURCE, track="loop_level_reasoning"):
        folder = tmp_path / track / "probe"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "probe.yaml").write_text(text if isinstance(text, str) else yaml.safe_dump(text))
        (folder / "probe_numpy.py").write_text(source)
        return spec.load("probe", tmp_path)

    return from_text


@pytest.mark.parametrize("name", XL)
def test_the_eight_kernels(name):
    kernel = spec.load(name)
    assert kernel.presets["XL"] == XL[name]
    assert set(kernel.presets["S"].values()) <= {512, 64}
    for symbol in kernel.size_symbols:
        middle = math.sqrt(kernel.presets["M"][symbol] * kernel.presets["XL"][symbol])
        assert kernel.presets["L"][symbol] == round(middle)
    assert kernel.symbol == f"{name}_fp64"
    assert kernel.input_bytes(kernel.presets["XL"]) <= 4 * 2**30
    assert spec.load(f"loop_level_reasoning/{name}") == kernel


def test_shapes_dtypes_and_bytes():
    kernel = spec.load("argmax_with_index")
    assert kernel.shapes({"LEN_1D": 10}) == {"a": (10,), "out_index": (1,), "out_value": (1,)}
    assert kernel.dtypes("float32") == {
        "a": "float32",
        "out_index": "int64",
        "out_value": "float32",
        "LEN_1D": "int64",
    }
    assert kernel.input_bytes({"LEN_1D": 10}) == 80 + 8 + 8
    assert kernel.input_bytes({"LEN_1D": 10}, "float32") == 40 + 8 + 4
    arrays = {"a": np.array([3.0, 9.0, 4.0]), "out_index": np.zeros(1, int), "out_value": np.zeros(1)}
    kernel.load_numpy()(arrays["a"], arrays["out_index"], arrays["out_value"], 3)
    assert (arrays["out_index"][0], arrays["out_value"][0]) == (1, 9.0)


REFUSED = {
    "misspelt key": (
        {"conditionning_atol": 1.0},
        "unknown key 'conditionning_atol'; did you mean 'conditioning_atol'?",
    ),
    "rtol": ({"rtol": 1e-3}, "key 'rtol' is refused"),
    "atol": ({"atol": 1e-3}, "an ill-conditioned kernel sets conditioning_atol"),
    "misspelt array key": (
        {"init": {"arrays": {"x": {"shape": "(N,)", "dtyp": "int32"}, "out": "(N,)"}}},
        "unknown key 'init.arrays.x.dtyp'; did you mean 'dtype'?",
    ),
    "dtype": (
        {"init": {"arrays": {"x": {"shape": "(N,)", "dtype": "int31"}, "out": "(N,)"}}},
        "init.arrays.x.dtype: 'int31' is not known; did you mean",
    ),
    "interval": (
        {"init": {"arrays": {"x": {"shape": "(N,)", "domain": [2, 1]}, "out": "(N,)"}}},
        "[2, 1] is not an interval",
    ),
    "domain": (
        {"init": {"arrays": {"x": {"shape": "(N,)", "domain": "positiv"}, "out": "(N,)"}}},
        "did you mean 'positive'?",
    ),
    "level": ({"level": 4}, "level = 4: "),
    "level as text": ({"level": "1"}, "level = '1': "),
    "preset": ({"parameters": {**SIZES, "XXL": {"N": 9}}}, "exactly S, M, L and XL are needed"),
    "symbols": ({"parameters": {**SIZES, "S": {"M": 8}}}, "every preset must give the same symbols"),
    "zero size": ({"parameters": {**SIZES, "S": {"N": 0}}}, "S.N is 0; sizes start at 1"),
    "size as float": ({"parameters": {**SIZES, "S": {"N": 8.5}}}, "parameters.S.N = 8.5: "),
    "output": ({"output_args": ["y"]}, "output_args names 'y'"),
    "undeclared size": (
        {"init": {"arrays": {"x": "(K,)", "out": "(N,)"}}},
        "reads 'K', which is not declared",
    ),
    "shape syntax": ({"init": {"arrays": {"x": "(N,", "out": "(N,)"}}}, "expression '(N,' cannot be read"),
    "shape operator": ({"init": {"arrays": {"x": "(N ** 2,)", "out": "(N,)"}}}, "uses 'N ** 2'"),
    "input_args": ({"input_args": ["x", "N"]}, "input_args is ['x', 'N']; the reference takes"),
    "reserved name": (
        {"init": {"arrays": PLAIN["init"]["arrays"], "scalars": {"workspace": 1}}},
        "is reserved",
    ),
    "knob and size": ({"config": {"N": {"value": 2}}}, "'N' is a size and a knob"),
    "curated row": (
        {"config": [{"K": 3}], "constraints": ["K < 2"]},
        "config row {'K': 3} violates constraint 'K < 2' at preset S",
    ),
    "constraint at one preset": (
        {"constraints": ["N < 64"]},
        "no configuration satisfies constraint 'N < 64' at preset XL",
    ),
    "long name": ({"name": "A Name Longer Than That"}, "add short-name"),
    "constraint": ({"constraints": ["N < M"]}, "constraints: expression 'N < M' reads 'M'"),
    "infinite band": ({"conditioning_atol": float("inf")}, "conditioning_atol = inf: "),
    "sparse handles": (
        {"sparse_layouts": {}},
        "key 'sparse_layouts' is refused: this version makes no sparse",
    ),
}


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_mistakes_are_refused_in_one_line_with_the_file(change, message, load, tmp_path):
    with pytest.raises(UserError) as caught:
        load({**PLAIN, **change})
    text = str(caught.value)
    assert message in text
    assert str(tmp_path / "loop_level_reasoning" / "probe" / "probe.yaml") in text
    assert "\n" not in text


def test_unreadable_manifests(load):
    with pytest.raises(UserError, match=r"probe\.yaml:2: not valid YAML"):
        load("name: [\nlevel: 1: 2")
    with pytest.raises(UserError, match="a manifest is a mapping"):
        load("- name")
    with pytest.raises(UserError, match="key 'level' is missing"):
        load({key: value for key, value in PLAIN.items() if key != "level"})


def test_tracks_are_the_known_ones(load):
    with pytest.raises(UserError, match="track 'loop_levels' is not known; did you mean"):
        load(PLAIN, track="loop_levels")


def test_reference_and_manifest_must_agree(load):
    with pytest.raises(UserError, match=r"parameter 'y' is not declared in probe\.yaml"):
        load(PLAIN, "def probe(x, y, out, N):\n    pass\n")
    with pytest.raises(UserError, match="array 'x' is no parameter"):
        load(PLAIN, "def probe(out, N):\n    pass\n")
    with pytest.raises(UserError, match="2 functions and none is called 'probe'"):
        load(PLAIN, "def f(x):\n    pass\n\n\ndef g(x):\n    pass\n")
    with pytest.raises(UserError, match=r"probe_numpy\.py:1: not valid Python"):
        load(PLAIN, "def probe(x:\n")


def test_configurations_knobs_and_preset_constants(load):
    presets = {preset: {**sizes, "S": 2} for preset, sizes in SIZES.items()}
    kernel = load(
        {
            **PLAIN,
            "parameters": presets,
            "config": {"K": {"domain": [1, 5, 64], "selects": "iteration"}, "mode": {"value": 1}},
            "constraints": ["K < 50 or mode == 0"],
            "init": {"arrays": PLAIN["init"]["arrays"], "scalars": {"inc": 1, "eps": 0.5}},
        }
    )
    assert kernel.size_symbols == ("N",)
    assert kernel.configs == ({"K": 1, "mode": 1}, {"K": 5, "mode": 1})
    assert list(kernel.scalars({"N": 3, "K": 5}).items()) == [
        *(("K", 5), ("N", 3), ("S", 2), ("eps", 0.5), ("inc", 1), ("mode", 1))
    ]
    assert kernel.dtypes()["eps"] == "float64"
    assert kernel.dtypes()["inc"] == "int64"
    with pytest.raises(UserError, match="'LEN' is no parameter"):
        kernel.scalars({"LEN": 3})


def test_unknown_and_duplicate_kernels(load, tmp_path):
    with pytest.raises(UserError, match="kernel 'wf_triangula' does not exist; did you mean 'wf_triangular'"):
        spec.load("wf_triangula")
    with pytest.raises(UserError, match="did you mean 'loop_level_reasoning/tsvc_2_s311'"):
        spec.load("machine_learning/tsvc_2_s311")
    load(PLAIN)
    with pytest.raises(UserError, match="kernel 'probe' exists twice") as caught:
        load(PLAIN, track="scientific_computing")
    for track in ("loop_level_reasoning", "scientific_computing"):
        assert str(tmp_path / track / "probe") in str(caught.value)


def test_entry_symbols_fit_fortran():
    assert spec.entry_symbol("Tsvc_2_S311") == "tsvc_2_s311_fp64"
    long, other = spec.entry_symbol("k" * 80), spec.entry_symbol("k" * 81)
    assert len(long) == len(other) == 63
    assert long != other
