"""One suite for all back ends: references in C, C++, Fortran and numba compute what NumPy computes."""

from __future__ import annotations

import numpy as np
import pytest

LANGUAGES = ("c", "cpp", "fortran", "numba")
RNG = np.random.default_rng(11)
N = 29


def real(dtype="float64", scale=10.0, shape=N):
    return RNG.normal(0, scale, shape).astype(dtype)


def whole(dtype, shape=N):
    limits = np.iinfo(dtype)
    values = RNG.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    edges = [limits.min, limits.max, 0, 1, limits.max - 1, limits.min + 1]
    values.flat[: len(edges)] = edges
    return values


def small(dtype, low=-9, high=9, shape=N):
    return RNG.integers(low, high, shape, endpoint=True).astype(dtype)


@pytest.fixture
def agree(make_kernel, call_numpy, build):
    """NumPy and one back end give the same bits (or agree to ``rtol``) on given arrays."""

    def check(source, arrays, outputs, language, parallel=None, rtol=0.0, shapes=None, **keys):
        declared = {
            name: {"shape": (shapes or {}).get(name, "(N,)"), "dtype": array.dtype.name}
            for name, array in arrays.items()
        }
        if language == "numba":
            parallel = bool(parallel)  # the parallel compiler takes three times as long
            rtol = max(rtol, 1e-13 if not any(a.dtype == np.float32 for a in arrays.values()) else 1e-5)
        kernel = make_kernel(source, declared, outputs, **keys)
        expected = {name: array.copy() for name, array in arrays.items()}
        actual = {name: array.copy() for name, array in arrays.items()}
        params = {"N": N}
        with np.errstate(all="ignore"):
            call_numpy(kernel, expected, params)
        build(kernel, language, parallel=parallel)(actual, params)
        for name in arrays:
            if rtol and expected[name].dtype.kind in "fc":
                np.testing.assert_allclose(actual[name], expected[name], rtol=rtol, err_msg=name)
            else:
                np.testing.assert_array_equal(actual[name], expected[name], strict=True, err_msg=name)
        return actual

    return check


def loop(*lines, head="import numpy as np\n\n\n", args="x, y, out", over="range(N)"):
    body = "\n".join(f"        {line}" for line in lines)
    return f"{head}def probe({args}, N):\n    for i in {over}:\n{body}\n"


INTEGERS = (
    "out[i] = x[i] + y[i] * x[i] - (y[i] - x[i] * 3)",
    "floors[i] = x[i] // y[i] + x[i] // 7 - x[i] // y[i] * 2",
    "rests[i] = x[i] % y[i] ^ x[i] % 7",
    "bits[i] = (x[i] & y[i]) | (~x[i] ^ y[i]) & 29",
    "shifted[i] = (x[i] << 3) + (y[i] >> 2) + (x[i] >> (y[i] & 15)) + (x[i] << (y[i] & 15))",
    "signs[i] = abs(x[i]) - (-y[i]) + min(x[i], y[i]) - max(x[i], y[i] // 2)",
    "order[i] = (x[i] < y[i]) + 2 * (x[i] == y[i]) + 4 * (x[i] >= 5)",
    "powers[i] = x[i] ** 3 + y[i] ** (x[i] & 7)",
)
INTEGER_OUTPUTS = ("out", "floors", "rests", "bits", "shifted", "signs", "powers")
INTEGER_DTYPES = [f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")]


@pytest.mark.parametrize(
    ("dtype", "language"),
    [
        *((dtype, language) for dtype in INTEGER_DTYPES for language in LANGUAGES[:3]),
        *((dtype, "numba") for dtype in ("int8", "uint32", "int64", "uint64")),
    ],
)
def test_integers_wrap_and_round_down(agree, dtype, language):
    arrays = {"x": whole(dtype), "y": whole(dtype)[::-1].copy(), "order": np.zeros(N, "int64")}
    arrays |= {name: np.zeros(N, dtype) for name in INTEGER_OUTPUTS}
    source = loop(*INTEGERS, args=", ".join(["x", "y", "order", *INTEGER_OUTPUTS]))
    agree(source, arrays, [*INTEGER_OUTPUTS, "order"], language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_conversions_between_dtypes(agree, language):
    dtypes = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")
    targets = {f"to_{dtype}": np.zeros(N, dtype) for dtype in dtypes}
    arrays = {"w": whole("int64"), "f": np.abs(real(scale=30)), **targets}
    arrays["u"] = whole("uint64")
    lines = [f"to_{dtype}[i] = np.{dtype}(w[i] & 127)" for dtype in dtypes]
    lines += [f"to_{dtype}[i] = to_{dtype}[i] + np.{dtype}(f[i])" for dtype in dtypes]
    lines += ["to_float64[i] = to_float64[i] + u[i] / 3 + w[i] / 7", "to_float32[i] += np.float32(u[i])"]
    source = loop(*lines, args=", ".join(arrays))
    agree(source, arrays, list(targets), language)


FLOATS = (
    "out[i] = x[i] - (y[i] - x[i]) * (x[i] + y[i]) / (x[i] * (y[i] / 3.0)) - -x[i]",
    "floors[i] = x[i] // y[i] + x[i] // 2.5",
    "rests[i] = x[i] % y[i] + x[i] % -2.5",
    "rounded[i] = np.floor(x[i]) + 2 * np.ceil(y[i]) + 3 * np.trunc(x[i]) + 5 * np.rint(y[i] * 0.5)",
    "extrema[i] = np.minimum(x[i], y[i]) + 2 * np.maximum(x[i], 0.5) - max(y[i] * 2, x[i])",
    "least[i] = 3 * min(x[i], y[i]) + np.maximum(x[i] - 1, y[i])",
    "chosen[i] = x[i] if x[i] > y[i] else y[i] if y[i] != x[i] else -1.5",
    "mixed[i] = x[i] * i + (i - 5) // 3 + (i - 5) % (-3) + i / (i + 3)",
)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_floats(agree, dtype, language):
    names = [line.split("[")[0] for line in FLOATS]
    x, y = real(dtype), real(dtype)
    x[:8] = [0.5, 1.5, -0.5, np.nan, np.inf, 7.5, -7.5, 3.0]
    y[:8] = [-0.5, 2.5, 2.5, 1.0, 2.0, 2.5, 2.5, np.nan]
    arrays = {"x": x, "y": y, **{name: np.zeros(N, dtype) for name in names}}
    agree(loop(*FLOATS, args=", ".join(["x", "y", *names])), arrays, names, language)


def test_division_of_floats_by_zero(agree):
    x = np.array([1.0, -1.0, 0.0, 0.0, np.nan, np.inf, 5.5, -5.5, 0.25] + [2.0] * (N - 9))
    y = np.array([0.0, 0.0, 0.0, 2.0, 1.0, 2.0, 0.0, np.inf, -np.inf] + [3.0] * (N - 9))
    arrays = {"x": x, "y": y, "out": np.zeros(N), "rest": np.zeros(N), "plain": np.zeros(N)}
    lines = ("out[i] = x[i] // y[i]", "rest[i] = x[i] % y[i]", "plain[i] = x[i] / y[i]")
    for language in LANGUAGES:
        agree(loop(*lines, args="x, y, out, rest, plain"), arrays, ["out", "rest", "plain"], language)


FUNCTIONS = (
    *("sqrt(p)", "exp(s)", "log(p)", "log2(p)", "log10(p)", "log1p(p)", "expm1(s)", "exp2(s)", "cbrt(s)"),
    *("sin(s)", "cos(s)", "tan(s)", "sinh(s)", "cosh(s)", "tanh(s)", "arcsin(t)", "arccos(t)", "arctan(s)"),
    *("arcsinh(s)", "arccosh(p + 1)", "arctanh(t)", "arctan2(s, p)", "hypot(s, p)", "copysign(p, s)"),
    *("fmin(s, p)", "fmax(s, p)", "fmod(s, p)", "power(p, s)", "abs(s)", "sign(s)", "square(s)"),
)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-13), ("float32", 1e-5)])
def test_functions(agree, dtype, rtol, language):
    body = [f"out[i, {k}] = np.{call}" for k, call in enumerate(FUNCTIONS)]
    first = ["s = x[i]", "p = abs(s) + y[i] * y[i] * 0.25", "t = s / (p + 1)"]
    arrays = {"x": real(dtype, 1.0), "y": real(dtype, 1.0), "out": np.zeros((N, len(FUNCTIONS)), dtype)}
    shapes = {"out": f"(N, {len(FUNCTIONS)})"}
    agree(loop(*first, *body), arrays, ["out"], language, rtol=rtol, shapes=shapes)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("dtype", "rtol"), [("complex128", 1e-13), ("complex64", 2e-5)])
def test_complex_numbers(agree, dtype, rtol, language):
    part = "float32" if dtype == "complex64" else "float64"
    z, w = (real(part, 2.0) + 1j * real(part, 2.0) for _ in range(2))
    arrays = {"z": z.astype(dtype), "w": w.astype(dtype), "r": real(part)}
    arrays |= {"out": np.zeros((N, 8), dtype), "size": np.zeros((N, 4), part)}
    lines = [
        "out[i, 0] = z[i] * w[i] - r[i] * z[i] + 2.5",
        "out[i, 1] = z[i] / w[i] / r[i]",
        "out[i, 2] = np.exp(z[i]) * 1j + np.sqrt(w[i])",
        "out[i, 3] = np.conj(z[i]) - -w[i]",
        "out[i, 4] = z[i] ** 2 + w[i] ** 3",
        "out[i, 5] = (1.5 - 2j) * z[i] if z[i] != w[i] else z[i]",
        "out[i, 6] = np.sin(z[i]) + np.log(w[i])",
        "out[i, 7] += z[i]",
        "size[i, 0] = abs(z[i]) + np.abs(w[i])",
        "size[i, 1] = np.real(z[i]) - np.imag(w[i])",
        "size[i, 2] = 1.0 if z[i] == z[i] else 0.0",
        "size[i, 3] = np.imag(z[i] * 2.0)",
    ]
    source = loop(*lines, args="z, w, r, out, size")
    shapes = {"out": "(N, 8)", "size": "(N, 4)"}
    agree(source, arrays, ["out", "size"], language, rtol=rtol, shapes=shapes)


@pytest.mark.parametrize("language", LANGUAGES)
def test_truth_values(agree, language):
    arrays = {"x": real(), "p": RNG.random(N) < 0.5, "q": RNG.random(N) < 0.5, "n": small("int64", -2, 2)}
    arrays |= {"out": np.zeros((N, 7), bool), "count": np.zeros(N, "int64"), "f": np.zeros(N)}
    lines = [
        "out[i, 0] = p[i] and not q[i] or x[i] > 0",
        "out[i, 1] = (p[i] & q[i]) | (p[i] ^ q[i])",
        "out[i, 2] = p[i] == q[i]",
        "out[i, 3] = ~p[i]",
        "out[i, 4] = np.logical_xor(p[i], x[i])",
        "out[i, 5] = n[i]",
        "out[i, 6] = p[i] + q[i]",
        "count[i] = p[i] + 2 * int(q[i]) + (n[i] if p[i] and n[i] else -n[i])",
        "f[i] = p[i] * x[i] + q[i]",
    ]
    source = loop(*lines, args=", ".join(arrays))
    agree(source, arrays, ["out", "count", "f"], language, shapes={"out": "(N, 7)"})


CONTROL = """
import numpy as np


def clamp(v, low, high):
    if v < low:
        return low
    if v > high:
        return high
    return v


def steps(n):
    count = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
        if count > 50:
            break
    return count


def probe(x, y, n, out, count, N):
    for i in range(N - 1, -1, -1):
        if x[i] < -9:
            continue
        out[i] = x[i] + i
    for i in range(1, N, 4):
        for j in range(i, N):
            if y[j] > 8:
                break
            out[i] += y[j]
    for i in range(N - 2, 3, -3):
        out[i] = out[i + 1] * 0.5
    for i in range(N):
        count[i] = steps(n[i])
        out[i] += clamp(x[i], -1.0, y[i])
        t = out[i - 1] if i > 0 and out[i - 1] > x[i] else 0.0
        if i > 0 and (out[i - 1] > 1 or x[i] > 0):
            out[i] = out[i] * 0.5 + t
    k = 0
    while k < N and x[k] < 5:
        k += 1
    count[0] = k
    a, b = 0, 1
    for i in range(N):
        a, b = b, (a + b) % 1000
        count[i] += a
    end = N
    for i in range(end - 1):
        end = i
        count[i] += end
    best = x[0]
    where = 0
    for i in range(N):
        if x[i] > best:
            best = x[i]
            where = i
    count[1] += where
"""


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("parallel", [None, True])
def test_control(agree, language, parallel):
    arrays = {"x": real(), "y": real(), "n": small("int64", 1, 40), "out": np.zeros(N)}
    arrays["count"] = np.zeros(N, "int64")
    agree(CONTROL, arrays, ["out", "count"], language, parallel)


TEMPORARIES = """
import numpy as np


def probe(x, ip, m, out, scale, K, N):
    t = np.zeros((N, 3), dtype=x.dtype)
    n = np.empty_like(ip)
    flags = np.zeros(N, dtype=np.bool_)
    for i in range(N):
        t[i, 1] = x[ip[i]]
        n[i] = ip[i] % K
        flags[i] = x[i] > 0
    for i in range(x.shape[0]):
        out[i, n[i]] += t[i, 0] + scale * t[i, 1]
        for j in range(K, 0, -K):
            out[i, j - 1] -= m[i, j - 1, K - 1] * (2.0 if flags[i] else 1.0)
    for i in range(0, N, K):
        out[i, 0] += i
"""


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("parallel", [None, True])
def test_temporaries_knobs_and_symbolic_steps(agree, language, parallel):
    arrays = {"x": real(), "ip": RNG.permutation(N).astype("int32"), "m": real(shape=(N, 2, 2))}
    arrays["out"] = real(shape=(N, 3))
    shapes = {"m": "(N, K, K)", "out": "(N, K + 1)"}
    keys = {"config": {"K": {"domain": [2, 5]}}, "parameters": None}
    del keys["parameters"]
    init = {"scalars": {"scale": 0.25}}
    declared = {
        name: {"shape": shapes.get(name, "(N,)"), "dtype": array.dtype.name} for name, array in arrays.items()
    }
    agree(
        TEMPORARIES,
        arrays,
        ["out"],
        language,
        parallel,
        shapes=shapes,
        init={**init, "arrays": declared},
        **keys,
    )


CLASHES = """
def probe(a, A, sum_, where, N):
    real = 0.0
    Real = 1.0
    for i in range(N):
        real = real + a[i]
        Real = Real * 0.5 + A[i]
        sum_[i] = real - Real
        where[i] = real
"""


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_that_a_language_uses_itself(agree, language):
    arrays = {"a": real(), "A": real(), "sum_": np.zeros(N), "where": np.zeros(N)}
    agree(CLASHES, arrays, ["sum_", "where"], language)


REDUCTIONS = {
    "sum": ("s = 0.0", "s += x[i] * y[i]", "s"),
    "product": ("s = 1.0", "s = s * (1 + 0.01 * x[i])", "s"),
    "maximum": ("s = x[0]", "s = max(s, x[i])", "s"),
    "minimum by branch": ("s = x[0]", "if x[i] < s:\n            s = x[i]", "s"),
    "element": ("out[1] = 0.0", "out[0] += x[i]", "out[0]"),
    "any": ("s = False", "s = s or x[i] > 25", "1.0 if s else 0.0"),
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("case", REDUCTIONS)
def test_reductions_run_parallel(agree, case, language):
    first, update, result = REDUCTIONS[case]
    body = f"    {first}\n    for i in range(N):\n        {update}\n    out[0] = {result}\n"
    source = f"def probe(x, y, out, N):\n{body}"
    arrays = {"x": real(), "y": real(), "out": np.zeros(N)}
    agree(source, arrays, ["out"], language, True, rtol=1e-12)
