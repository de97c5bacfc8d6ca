"""Constructs of the reference language keep Python's meaning in C."""

from __future__ import annotations

import numpy as np
import pytest

from hpcagent_bench.translators import emit

VECTOR = {"x": "(N,)", "y": "(N,)", "out": "(N,)"}
INTEGERS = {"p": {"shape": "(N,)", "dtype": "int64"}, "q": {"shape": "(N,)", "dtype": "int64"}}


@pytest.fixture
def agree(inputs, call_numpy, build_c):
    """C and NumPy give the same bits on random inputs; returns what they gave."""

    def check(kernel, size=33, arrays=None, params=None):
        params = {"N": size, **(params or {})}
        expected = inputs(kernel, params) if arrays is None else arrays
        actual = {name: array.copy() for name, array in expected.items()}
        call_numpy(kernel, expected, params)
        build_c(kernel)(actual, params)
        for name in expected:
            np.testing.assert_array_equal(actual[name], expected[name], strict=True)
        return actual

    return check


BODIES = {
    "grouping": "out[i] = x[i] - (y[i] - x[i]) * (x[i] + y[i]) / (x[i] * (y[i] / 3.0)) - -x[i]",
    "signs": "out[i] = -(-x[i]) + abs(x[i] - y[i]) * +2",
    "choice": "out[i] = x[i] if x[i] > y[i] else y[i] if y[i] > 0 else -1.5",
    "logic": "out[i] = 1.0 if (x[i] > 0 and y[i] > 0) or not (x[i] < y[i] or i == 3) else 0",
    "chain": "out[i] = 1.0 if -500 < x[i] <= y[i] else 0.0",
    "extrema": "out[i] = min(x[i], y[i]) - max(x[i], 0.5) + np.maximum(x[i], y[i]) * np.minimum(1, y[i])",
    "functions": "out[i] = np.floor(x[i]) + np.sqrt(abs(y[i])) + np.ceil(y[i] / 7)",
    "integers": "out[i] = (i - 5) // 3 + (i - 5) % 3 + (7 - i) // (i + 1) + (i * i - 40) % (i + 2)",
    "negative divisors": "out[i] = (i - 5) // (-3) + (i - 5) % (-3)",
    "true division": "out[i] = i / (i + 3) + (i + 1) / 2 * x[i]",
    "wide constants": "out[i] = x[i] * 5000000000 + 3000000 * 3000000",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_expressions(body, make_kernel, agree):
    source = f"import numpy as np\n\n\ndef probe(x, y, out, N):\n    for i in range(N):\n        {body}\n"
    agree(make_kernel(source, VECTOR, ["out"]))


def test_loops_down_by_steps_and_with_early_exits(make_kernel, agree):
    source = """
def probe(x, y, out, N):
    for i in range(N - 1, -1, -1):
        if x[i] < -900:
            continue
        out[i] = x[i] + i
    for i in range(1, N, 4):
        for j in range(i, N):
            if y[j] > 800:
                break
            out[i] += y[j]
    for i in range(N - 2, 3, -3):
        out[i] = out[i + 1] * 0.5
"""
    agree(make_kernel(source, VECTOR, ["out"]))


def test_bounds_are_read_once(make_kernel, agree):
    source = """
def probe(p, q, N):
    end = N
    for i in range(end - 1):
        end = i
        q[i] = end
    for i in range(q[2]):
        q[2] = q[2] + 1
"""
    kernel = make_kernel(source, INTEGERS, ["q"])
    assert agree(kernel)["q"][2] == 4


def test_locals_carry_values_and_widen_to_floats(make_kernel, agree):
    source = """
def probe(x, y, out, N):
    total = 0
    last = 0
    for i in range(N):
        t = x[i] * 2
        if t > 0:
            total = total + t
            last = i
        elif t < -1000:
            total += 1
        else:
            w = t
            total -= w
        out[i] = total + last
"""
    text = emit(make_kernel(source, VECTOR, ["out"]), "c")
    assert "double total = 0.0;" in text
    assert "int64_t last = 0;" in text
    agree(make_kernel(source, VECTOR, ["out"]))


def test_temporaries_index_arrays_and_knobs(make_kernel, agree):
    source = """
import numpy as np

def probe(x, ip, out, scale, K, N):
    t = np.zeros((N, 3), dtype=x.dtype)
    n = np.empty_like(ip)
    for i in range(N):
        t[i, 1] = x[ip[i]]
        n[i] = ip[i] % K
    for i in range(x.shape[0]):
        out[i, n[i]] += t[i, 0] + scale * t[i, 1]
"""
    arrays = {"x": "(N,)", "ip": {"shape": "(N,)", "dtype": "int32"}, "out": "(N, K + 1)"}
    init = {"arrays": arrays, "scalars": {"scale": 0.25}}
    kernel = make_kernel(source, {}, ["out"], init=init, config={"K": {"domain": [2, 5]}})
    rng = np.random.default_rng(3)
    for k in (2, 5):
        given = {"x": rng.normal(size=33), "ip": rng.permutation(33).astype("int32")}
        given["out"] = rng.normal(size=(33, k + 1))
        agree(kernel, arrays=given, params={"K": k})


def test_truth_values_and_narrow_integers(make_kernel, agree):
    source = """
def probe(x, flag, small, N):
    for i in range(N):
        positive = x[i] > 0
        flag[i] = positive and not flag[i]
        small[i] = small[i] + i
        if positive or x[i] < -500:
            flag[i] = x[i]
"""
    arrays = {"x": "(N,)", "flag": {"shape": "(N,)", "dtype": "bool"}}
    arrays["small"] = {"shape": "(N,)", "dtype": "int8"}
    kernel = make_kernel(source, arrays, ["flag", "small"])
    given = {"x": np.linspace(-900, 900, 33), "flag": np.arange(33) % 3 == 0}
    agree(kernel, arrays={**given, "small": np.arange(33, dtype="int8")})


def test_nan_follows_numpy(make_kernel, agree):
    source = """
import numpy as np

def probe(x, y, out, N):
    for i in range(N):
        out[i] = np.maximum(x[i], y[i])
        x[i] = max(x[i], y[i])
        y[i] = np.minimum(y[i], x[i])
"""
    values = np.array([1.0, np.nan, 2.0, np.nan, -0.5])
    given = {"x": values, "y": values[::-1].copy(), "out": np.zeros(5)}
    agree(make_kernel(source, VECTOR, ["x", "y", "out"]), size=5, arrays=given)


def test_style_is_flat_canonical_and_free_of_macros():
    from hpcagent_bench.corpus import spec

    text = emit(spec.load("tsvc_2_s231"), "c")
    assert text == (
        "/* tsvc_2_s231: from tsvc_2_s231_numpy.py */\n"
        "#include <stdint.h>\n\n"
        "void tsvc_2_s231_fp64(double *restrict aa, const double *restrict bb, const int64_t LEN_2D,\n"
        "        uint8_t *restrict workspace, const int64_t workspace_size)\n"
        "{\n"
        "    (void)workspace;\n    (void)workspace_size;\n"
        "    for (int64_t i = 0; i < LEN_2D; i++) {\n"
        "        for (int64_t j = 1; j < LEN_2D; j++) {\n"
        "            aa[j * LEN_2D + i] = aa[(j - 1) * LEN_2D + i] + bb[j * LEN_2D + i];\n"
        "        }\n    }\n}\n"
    )
