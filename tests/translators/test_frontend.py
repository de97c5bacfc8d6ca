"""The typed form of explicit loops computes what Python and NumPy compute."""

from __future__ import annotations

import numpy as np
import pytest
from probes import DTYPES, draws
from typed_form import run

from hpcagent_bench.translators import Unsupported, frontend

ARRAYS = {
    **{name: {"shape": "(N,)", "dtype": name} for name in DTYPES},
    "x": "(N,)",
    "y": "(N,)",
    "m": "(N, N)",
}
HEADER = "import numpy as np\n\n"


@pytest.fixture
def agree(make_kernel):
    """The typed form and NumPy leave the same in every array; returns what they leave."""

    def check(source, size=9, functions="", given=None, **keys):
        names = [*ARRAYS, "N", *keys.get("config", ())]
        text = f"{HEADER}{functions}\n\ndef probe({', '.join(names)}):\n    {source}\n"
        kernel = make_kernel(text, ARRAYS, list(ARRAYS), **keys)
        translated = frontend.translate(kernel)
        drawn = draws(size)
        expected = {**{name: drawn[name] for name in ARRAYS}, **(given or {})}
        actual = {name: array.copy() for name, array in expected.items()}
        scalars = kernel.scalars({"N": size})
        with np.errstate(all="ignore"):
            kernel.load_numpy()(*({**scalars, **expected}[name] for name in kernel.arg_order))
        run(translated, {**scalars, **actual})
        for name, array in expected.items():
            close = (
                4 * np.finfo(array.dtype).eps if array.dtype.kind in "fc" else 0
            )  # libraries differ that much
            np.testing.assert_allclose(actual[name], array, rtol=close, strict=True, err_msg=name)
        return actual

    return check


LOOP = "for i in range(N):\n        "
BODIES = {
    "int8 plus a literal wraps": "int8[i] = int8[i] + 100",
    "int32 products wrap": "int32[i] = int32[i] * int32[N - 1 - i]",
    "a narrow sum into a wide element": "int64[i] = int8[i] + int8[N - 1 - i]",
    "mixed widths widen": "int64[i] = int8[i] * int16[i] + uint8[i]",
    "unsigned and signed 64 bits are double": "x[i] = uint64[i] + int64[i]",
    "unsigned 32 bits and signed are int64": "int64[i] = uint32[i] - int32[i]",
    "a linear congruential generator": "uint64[i] = uint64[i] * 6364136223846793005 + 1442695040888963407",
    "floor division of negatives": "int64[i] = int64[i] // -7 + int64[i] % 5 + (-7) // 2",
    "division by zero gives zero": "int32[i] = int32[i] // (i % 3 - 1) + int32[i] % uint8[2]",
    "the least value by minus one": "int64[i] = int64[0] // int8[i] if int8[i] == -1 else int64[0] // -1",
    "float floor division": "x[i] = x[i] // 3.0 + y[i] % -2.5 + x[i] // y[i]",
    "true division of integers": "x[i] = int32[i] / int64[i] if int64[i] != 0 else int8[i] / 3",
    "bits": "int32[i] = (int32[i] & 255) ^ (int32[i] << 3) | (int32[i] >> 5); uint8[i] = ~uint8[i]",
    "shifts of unsigned": "uint64[i] ^= uint64[i] << 13; uint64[i] ^= uint64[i] >> 7",
    "integer powers": "int64[i] = int32[i] ** 2 + 2 ** 5; uint32[i] = uint32[i] ** 3",
    "float powers": "x[i] = x[i] ** 2 + abs(y[i]) ** 0.5 + uint8[i] ** 1.5 + 2.0 ** -1",
    "truth values": "bool[i] = bool[i] + (x[i] > 0); int64[i] = bool[i] + 1 + (x[i] > y[i]) * int8[i]",
    "truth values as numbers": "x[i] = bool[i] * 2.5 + (i > 3) * 1.5 + True",
    "not and invert": "bool[i] = not bool[i]; bool[N - 1 - i] = ~bool[i]",
    "comparison by value": "bool[i] = uint64[i] > int64[i]; int8[i] = uint8[i] < 300",
    "comparison with negatives": "int8[i] = (int64[i] <= uint64[i]) + (uint64[i] != -1) + (i > uint64[0])",
    "single precision stays single": "float32[i] = float32[i] * 0.1 + float32[N - 1 - i] / 3",
    "int32 and float32 are double": "x[i] = int32[i] * float32[i] + int8[i] * float32[i]",
    "complex": "complex64[i] = complex64[i] * complex64[N - 1 - i] + 2j; float32[i] = abs(complex64[i])",
    "parts": "x[i] = np.real(complex64[i]) - np.imag(complex64[i]); complex64[i] = np.conj(complex64[i])",
    "functions": "x[i] = np.exp(x[i] / 9) + np.hypot(x[i], int32[i]) + np.sqrt(uint8[i] * 1.0)",
    "small integers compute in single": "float32[i] = np.sqrt(np.abs(int16[i]) // 2)",
    "signs and clips": "x[i] = np.sign(x[i]) * np.clip(y[i], -1, 1) + np.sign(int8[i])",
    "rounding": "x[i] = np.rint(x[i]) + np.trunc(y[i]) + np.ceil(x[i]) + int(y[i]) + np.floor(int8[i])",
    "extrema": "x[i] = np.maximum(x[i], 0) + np.minimum(int8[i], float32[i]) + max(x[i], y[i], 0)",
    "where": "x[i] = np.where(x[i] > y[i], x[i], 1); int8[i] = np.where(bool[i], int8[i], 0)",
    "casts": "int32[i] = np.int32(int64[i]); uint8[i] = np.uint8(int32[i]) + np.uint8(200)",
    "stores convert": "int8[i] = np.int64(i - 5); int32[i] = x[i]; bool[i] = int8[i]",
    "a negative index": "x[i] = x[-1] + m[-1, i] * m[i, -1]; y[-1] = x[i]",
    "a tuple of elements": "x[i], y[N - 1 - i] = y[N - 1 - i], x[i]",
    "constants": "x[i] = np.pi * i + np.e",
    "chained comparison": "bool[i] = -3 < x[i] < 3 or i == 2",
    "extents": "x[i] = len(m) * m.shape[1] + m.size + m.ndim + x.shape[-1]",
    "augmented float on an integer": "int64[i] += i; int8[i] += 1.5 if int8[i] < 9 else -2.5",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_expression(body, agree):
    agree(LOOP + body)


PROGRAMS = {
    "a swap of scalars": """
    s, t = 1, 2.5
    for i in range(N):
        s, t = t, s + x[i]
        y[i] = s""",
    "a while loop with breaks": """
    k = 1
    while k < N:
        k = k * 2
        if x[k % N] > 12:
            break
        if x[k % N] < -3:
            continue
        y[k % N] = k
    x[0] = k""",
    "a symbolic step": """
    for j in range(0, N, STEP):
        x[j] = j
    for j in range(N - 1, -1, -STEP):
        y[j] = x[j] + 1""",
    "a doubling step": """
    span = 1
    while span < N:
        for j in range(0, N - span, 2 * span):
            x[j] = x[j] + x[j + span]
        span *= 2""",
    "a halving step": """
    half = N // 2
    while half > 0:
        for j in range(0, N, half):
            x[j] += half
        half //= 2""",
    "a hash": """
    h = np.uint32(2166136261)
    for i in range(N):
        h = (h ^ uint8[i]) * np.uint32(16777619)
        uint32[i] = h""",
    "a narrow accumulator wraps": """
    total = 0
    for i in range(N):
        total = total + int8[i]
    int64[0] = total""",
    "a python integer stays one": """
    count = 0
    for i in range(N):
        if x[i] > 0:
            count += 1
    int8[0] = count
    y[0] = count / 2""",
    "an early return": """
    if N > 3:
        x[0] = 5
        return
    x[1] = 7""",
    "a final return": """
    x[0] = 1.5
    return""",
    "shapes in a tuple": """
    rows, cols = m.shape
    for i in range(rows):
        m[i, cols - 1] = i""",
    "storage precisions": """
    half = np.zeros(N, dtype=np.float16)
    for i in range(N):
        half[i] = x[i] * 0.1
    for i in range(N):
        y[i] = half[i]""",
}


@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS)
def test_program(body, agree):
    agree(body, config={"STEP": {"domain": [2, 3]}})


HELPERS = """
def weight(r, scale):
    if r > 1:
        return scale / r
    return scale


def gcd(a, b):
    while b != 0:
        a, b = b, a % b
    return a


def both(r):
    return weight(r, 2) + weight(abs(r), 1.5)
"""


def test_helpers_on_several_dtypes(agree):
    body = """x[0] = gcd(12, 18)
    for i in range(N):
        x[i] = both(x[i]) + weight(float32[i], 3) + weight(i, 2)
        int32[i] = gcd(int32[i], 360)"""
    agree(body, functions=HELPERS)


def test_helpers_keep_the_reference_names(make_kernel):
    source = f"{HEADER}{HELPERS}\n\ndef probe(x, N):\n    for i in range(N):\n        x[i] = both(x[i])\n"
    translated = frontend.translate(make_kernel(source, {"x": "(N,)"}, ["x"]))
    assert [helper.name for helper in translated.helpers] == ["weight", "weight_float64", "both"]


def test_integers_from_data_wrap_and_indices_do_not(make_kernel):
    source = "def probe(ip, x, N):\n    for i in range(N - 1):\n        ip[i + 1] = ip[i] + 1\n"
    arrays = {"ip": {"shape": "(N,)", "dtype": "int64"}, "x": "(N,)"}
    (loop,) = frontend.translate(make_kernel(source, arrays, ["ip"])).body
    (store,) = loop.body
    assert store.value.wraps
    assert not store.index[0].wraps


REFUSED = {
    "x[0] = int32[0] ** -1": "an integer to a negative power",
    "uint8[0] = uint8[0] + 300": "300 as uint8",
    "uint8[0] = -1": "-1 as uint8",
    "bool[0] = bool[0] - bool[1]": "'-' on truth values",
    "x[0] = uint64[0] & int64[0]": "'&' on float64",
    "x[0] = complex64[0] < 2": "'<' on complex numbers",
    "x[0] = complex64[0]": "a complex number as float64",
    "for i in range(0, N, N - 4):\n        x[i] = 1": "step 'N - 4', whose sign is not certain,",
    "s = int8[0]\n    s = int32[0]\n    x[0] = s": "a value that is int32 here and int8 there",
    "s = 0\n    while s < N:\n        for i in range(0, N, s):\n            s += 1": "step 's'",
    "x[0] = x[0] and y[0]": "'x[0] and y[0]' as a value",
}


@pytest.mark.parametrize(("body", "construct"), REFUSED.items(), ids=list(REFUSED))
def test_refused_as_numpy_would(body, construct, agree):
    with pytest.raises(Unsupported) as caught:
        agree(body)
    assert construct in str(caught.value)


def test_a_recursive_helper_is_refused(agree):
    with pytest.raises(Unsupported, match="a recursive call"):
        agree("x[0] = f(3)", functions="def f(n):\n    return f(n - 1) if n > 0 else 1\n")
