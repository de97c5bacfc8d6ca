"""Whole-array syntax becomes loops that leave what NumPy leaves."""

from __future__ import annotations

import pytest
from probes import agree, probe

from hpcagent_bench.translators import Unsupported, frontend, ir

SIZES = (1, 2, 5, 9)
ELEMENTWISE = {
    "a slice": "x[1:N - 1] = y[:N - 2] + y[2:]",
    "a clamped slice": "x[:] = 0; x[2:N + 5] = 1; y[5:] = 2; z[-3:] = 7; z[:-7] = 8",
    "strides": "x[::2] = y[::2] * 2; x[1::2] = 3; z[::3] = y[:(N + 2) // 3]",
    "a negative stride": "x[::-1] = y; z[:] = y[::-2].sum()",
    "a negative stride between bounds": "x[:] = 0; z[3:0:-1] = y[1:4][:z[3:0:-1].size]",
    "broadcast rows and columns": "m[:] = x[:, None] * y + x - y[:, np.newaxis]",
    "broadcast along three axes": "t[:] = t * x[None, :, None] + np.arange(5) + one",
    "a row and a column": "m[0] = x; m[:, -1] = y; m[-1, :] += m[:, 0]",
    "a transpose": "m[:] = w.T + 1; w[:] = m.transpose()",
    "an ellipsis": "t[..., 0] = t[0, ..., 1] + 1; t[1, ...] = t[2]",
    "where": "x[:] = np.where(x > y, x, -y); m[:] = np.where(m > 0, m, 0.0)",
    "functions": (
        "x[:] = np.sqrt(np.abs(x)) + np.maximum(x, y) * np.minimum(2, np.exp(y / 40)) - np.clip(x, -1, 1)"
    ),
    "truth values": "bool[:] = (x > y) & (y > 0) | ~bool; int64[:] = (x > y) * 2",
    "logical functions": "bool[:] = np.logical_and(x > 0, np.logical_not(y > 0))",
    "integers wrap": "int8[:] = int8 * 3 + 100; uint8[:] = uint8 - 1; int32[:] = -int32 // 7 % 5",
    "integer division by zero": "int32[:] = int32 // uint8 + int32 % int8",
    "mixed dtypes": "x[:] = int32 * float32 + int8; y[:] = int32 / 7; z[:] = uint64 + int64",
    "comparison by value": "bool[:] = uint64 > int64; int8[:] = uint8 == 300",
    "casts": (
        "int32[:] = (x * 100).astype(np.int32); float32[:] = np.float32(x) + 1; "
        "int8[:] = int32.astype(np.int8)"
    ),
    "complex": (
        "complex64[:] = complex64 * complex64.conj() + 1j; float32[:] = np.abs(complex64) + complex64.imag"
    ),
    "bits": "uint64[:] = (uint64 ^ (uint64 >> 7)) & 0xFFFF; int32[:] = int32 << 2",
    "a flat view": "m.reshape(-1)[::2] = 0; m.ravel()[0] = 5",
    "a reshape": "m[:] = (w.reshape(N * N) * 2).reshape(N, N); x[:] = x.reshape(N, 1)[:, 0]",
    "flips and rolls": "x[:] = np.flip(y) + np.roll(z, 1) - np.roll(z, -2); m[:] = np.roll(w, 1, axis=1)",
    "differences": "x[1:] = np.diff(y); m[:, 1:] = np.diff(w, axis=1)",
    "triangles": "m[:] = np.tril(w) + np.triu(w, 1) * 2 + np.eye(N)",
    "a diagonal": "x[:] = np.diag(m) + m.diagonal() + np.trace(m)",
    "joined": "x[:] = np.concatenate((y[N // 2:], y[:N // 2]))",
    "arange and linspace": (
        "x[:] = np.arange(N) + np.linspace(0, 1, N); int64[:] = np.arange(2, 2 + 3 * N, 3)"
    ),
    "an if expression of scalars": "s = 2.0 if N > 3 else 3.0; x[:] = s * x",
    "out": "np.add(x, y, out=z); np.sqrt(np.abs(x), out=x); np.multiply(m, 2, out=m)",
    "fill and copyto": "x.fill(3.5); np.copyto(y, z); m[:] = 0",
    "a chained slice": "m[1:][:, 1:][:] = w[:-1, :-1]; x[1:][1:] = 5",
    "bounds from scalars": "k = N // 2; x[k:] = y[:N - k]; x[:k] = z[N - k:]",
    "slice of computed": "x[:-1] = (y * z)[1:]; x[:] = (m + w)[0]",
}


@pytest.mark.parametrize("body", ELEMENTWISE.values(), ids=ELEMENTWISE)
def test_elementwise(body, make_kernel):
    kernel = probe(make_kernel, body)
    for size in SIZES:
        agree(kernel, size)
    agree(kernel, 9, "float32")


REDUCTIONS = {
    "sums": "x[0] = np.sum(y); x[:] += y.sum() * np.mean(m); int64[0] = int8.sum() + bool.sum()",
    "a sum of products": "s = np.sum(x * y); z[0] = s + np.dot(x, y) + x @ z",
    "narrow sums are wide": (
        "int64[0] = np.sum(int8); uint64[0] = uint8.sum() + np.prod(uint8); int32[:] = int32.sum() % 1000"
    ),
    "rows": "x[:] = np.sum(m * y, axis=1); y[:] = m.max(axis=1) - m.min(axis=-1); z[:] = np.mean(w, axis=1)",
    "columns": "x[:] = np.sum(m, axis=0); y[:] = np.max(m, axis=0) * 2; z[:] = w.mean(axis=0)",
    "rows normalised": (
        "m[:] = m / np.sum(np.abs(m), axis=1)[:, None]; w[:] = w - w.mean(axis=1, keepdims=True)"
    ),
    "columns normalised": "m[:] = m - m.mean(axis=0); w[:] = w / np.abs(w).sum(axis=0)",
    "softmax": "e = np.exp(m - m.max(axis=1, keepdims=True)); m[:] = e / e.sum(axis=1, keepdims=True)",
    "several axes": "x[:] = t.sum(axis=(0, 2)); y[:] = np.sum(t, axis=2)[1]; z[:] = t.max(axis=0)[:, 2]",
    "places": (
        "int64[0] = np.argmax(x) + 10 * np.argmin(y); int64[1:2] = np.argmax(m); int32[:] = m.argmin(axis=1)"
    ),
    "places along columns": "int64[:] = np.argmax(m, axis=0)",
    "any and all": "bool[:] = np.all(m < 1, axis=1) | (m > 1).any(axis=0)",
    "counts": "int64[0] = np.count_nonzero(x > 0); int8[0] = np.count_nonzero(x > 0)",
    "norms and moments": "x[0] = np.linalg.norm(y) + np.var(z) + z.std(); y[:] = np.std(m, axis=0)",
    "running sums": "x[:] = np.cumsum(y); z[:] = np.cumsum(z); int64[:] = np.cumsum(int8)",
    "running sums along axes": (
        "m[:] = np.cumsum(w, axis=0); w[:] = np.cumsum(w, axis=1) + np.cumsum(m, axis=0)"
    ),
    "running products": "x[:] = np.cumprod(y / 10)",
    "in a branch": "\n    if np.max(x) > 0:\n        y[:] = np.max(x)\n    else:\n        y[:] = x.min()",
    "under a condition": "\n    if x[0] > 0 and np.any(y > 3) or np.all(z < 5):\n        x[:] = 0",
    "in a loop": "\n    for i in range(N):\n        x[i] = m[i] @ y + np.sum(w[:i, i]) + w[i, i:].sum()",
    "in a while test": "\n    while np.abs(x).max() > 1:\n        x[:] = x / 2",
    "a nested sum": "x[:] = np.sum(m * np.sum(w, axis=1), axis=1)",
    "reduce and accumulate": (
        "x[0] = np.add.reduce(y); y[:] = np.add.accumulate(z); z[0] = np.maximum.reduce(z)"
    ),
}


@pytest.mark.parametrize("body", REDUCTIONS.values(), ids=REDUCTIONS)
def test_reduction(body, make_kernel):
    kernel = probe(make_kernel, body)
    for size in SIZES if "[1:2]" not in body else (2, 5, 9):
        agree(kernel, size)
    agree(kernel, 9, "float32")


PRODUCTS = {
    "matrix by matrix": "m[:] = w @ w",
    "into itself": "m[:] = m @ w",
    "onto itself": "m += w @ w",
    "subtracted": "m -= np.dot(w, w.T)",
    "scaled": "m[:] = 2.5 * m + (1.5 * w) @ w",
    "scaled product": "m[:] = 1.5 * (w @ w) + m",
    "transposed": "m[:] = w.T @ w; m[:] = m + w @ w.T",
    "by vectors": "x[:] = m @ y; z[:] = y @ m; y[:] = m.T @ z",
    "in place by vectors": "x[:] = m @ x; y += m @ y",
    "of three": "x[:] = m @ (w @ y); m[:] = w @ m @ w",
    "outer": "m[:] = np.outer(x, y); m += np.outer(y, x) * 2",
    "stacked": "t[:, :, :] = t @ np.ones((5, 5))",
    "blocks": "m[:N // 2, :N // 2] += m[:N // 2, N // 2:] @ m[N // 2:, :N // 2]",
    "factorisation": "\n    for k in range(N):\n        m[k, k + 1:] -= m[k, :k] @ m[:k, k + 1:]",
    "trailing update": (
        "\n    for k in range(N):\n        m[k + 1:, k + 1:] -= np.outer(m[k + 1:, k], m[k, k + 1:])"
    ),
    "einsum": (
        "m[:] = np.einsum('ij,kj->ik', m, w); x[:] = np.einsum('ij,j->i', m, y); y[0] = np.einsum('ii', m)"
    ),
    "integers": "int64[0] = int32 @ int32; int8[0] = np.dot(int8, int8)",
    "activation": "m[:] = np.maximum(w @ m + x, 0)",
}


@pytest.mark.parametrize("body", PRODUCTS.values(), ids=PRODUCTS)
def test_product(body, make_kernel):
    kernel = probe(make_kernel, body)
    for size in SIZES:
        agree(kernel, size)


INDEXING = {
    "gather": "x[:] = y[ip]; z[:] = y[jp] + y[ip + 0]",
    "scatter, the last wins": "x[ip] = y; z[jp] = y",
    "scatter with repeats adds once": "x[ip] += y",
    "add.at adds every time": "np.add.at(x, ip, y); np.maximum.at(z, ip, y); np.subtract.at(y, jp, 1)",
    "gather from itself": "x[:] = x[jp]; y[jp] = y",
    "rows and elements": "m[:] = w[jp]; m[jp, 0] = x; x[:] = m[ip, jp]; m[:, jp] = w",
    "open mesh": "m[:] = w[ip[:, None], jp]",
    "masks": "x[x > 0] = 0; y[y < z] += 5; z[bool] = x[bool] + y[bool]",
    "masked reductions": (
        "x[0] = np.sum(y[y > 0]); int64[0] = np.count_nonzero(bool[x > 0]); z[0] = m[m > 0].mean()"
    ),
    "packing": "s = x[x > 0]; y[:len(s)] = s; z[:s.size] = s * 2",
    "unpacking": "x[y > 0] = z[:np.count_nonzero(y > 0)]",
    "row pointers": "\n    for i in range(N):\n        x[i] = np.sum(y[ptr[i]:ptr[i + 1]]) + z[ip[i]:].sum()",
    "histogram": "\n    for i in range(N):\n        int64[ip[i]] += 1",
}


@pytest.mark.parametrize("body", INDEXING.values(), ids=INDEXING)
def test_indexing(body, make_kernel):
    kernel = probe(make_kernel, body)
    for size in (5, 9, 12):
        agree(kernel, size)


OVERLAP = {
    "shift up": "x[1:] = x[:-1]",
    "shift down": "x[:-1] = x[1:]",
    "add the shifted self": "x[1:] += x[:-1]; y[:-1] += y[1:]; z[2:] -= z[:-2] * 2",
    "both neighbours": "x[1:-1] = x[:-2] + x[2:]",
    "reversed self": "x[:] = x[::-1]; y += y[::-1]",
    "a diagonal shift": "m[1:, 1:] = m[:-1, :-1]; w[:-1, 1:] = w[1:, :-1]",
    "a five-point stencil": "m[1:-1, 1:-1] = m[:-2, 1:-1] + m[2:, 1:-1] + m[1:-1, :-2] + m[1:-1, 2:]",
    "the transpose of itself": "m[:] = m.T; w += w.T",
    "rows onto rows": "m[0] += m[-1]; m[1:] -= m[0]; w[:, 0] = w[0]",
    "even and odd": "x[::2][:N // 2] = x[1::2]; y[1::2] += y[::2][:N // 2]",
    "a row sum into the row": "m[0] = m.sum(axis=0); w[:, 0] = w.sum(axis=1)",
    "an element of itself": "x[:] = x * x[0]; y -= y[-1]; m[:] = m / m[0, 0]",
    "its own maximum": "x[:] = x / np.max(np.abs(x)); m[:] = m - m.max()",
    "by a symbolic distance": "k = N // 3; x[k:] = x[:N - k]; y[:N - k] = y[k:]",
    "a view written through": "v = x[1:]; v[:] = y[1:]; v += x[:-1]; v[::2] = 3",
    "a view of a view": "v = m[1:]; u = v[:, 1:]; u[:] = 5; u += v[:, :-1]; w[:] = m",
    "a view seen after a change": "v = x[1:]; x[:] = 2; y[1:] = v",
    "a name is no copy": "v = x; v += 1; y[:] = x; u = x.copy(); u += 1; z[:] = x + u",
    "a flat view": "v = m.reshape(-1); v[:] = v[::-1]; x[:] = m[0]",
    "a column view": "c = m[:, 0]; r = m[0]; c[:] = r; r += c",
}


@pytest.mark.parametrize("body", OVERLAP.values(), ids=OVERLAP)
def test_overlap(body, make_kernel):
    kernel = probe(make_kernel, body)
    for size in SIZES:
        agree(kernel, size)


LOCALS = {
    "temporaries": "a = x + y; b = a * a; z[:] = b - a",
    "allocated": (
        "a = np.zeros(N); b = np.ones_like(m); c = np.full(N, 2.5); d = np.empty(N); d[:] = x; "
        "z[:] = a + b[0] + c * d"
    ),
    "dtypes": "a = np.zeros(N, dtype=np.int32); a += jp; b = np.zeros_like(float32); b[:] = x; z[:] = a + b",
    "again": "a = x + 1; a = a * 2; a = a[::-1]; z[:] = a",
    "again beside a view": "a = x + 1; v = a[1:]; a = a * 2; z[1:] = v + a[1:]",
    "in a loop": (
        "\n    for i in range(N):\n        r = m[i] * 2\n        r[0] = 1\n        w[i] = r[::-1] + r"
    ),
    "of varying length": (
        "\n    for i in range(1, N):\n        r = m[i, :i] + 1\n        w[i, :i] = r / r.sum()"
    ),
    "stepping in time": (
        "\n    a = x.copy()\n    for s in range(3):\n        b = a.copy()\n"
        "        a[1:-1] = b[:-2] + b[2:]\n    y[:] = a"
    ),
    "listed": "c = np.array([0.25, 0.5, 0.25]); x[1:-1] = c[0] * y[:-2] + c[1] * y[1:-1] + c[2] * y[2:]",
    "listed rows": "c = np.array([[1, 2], [3, 4]]); int64[0] = c.sum() + c[1, 0]; x[0] = (c * 0.5).max()",
    "in both branches": "\n    if N > 3:\n        a = x + 1\n    else:\n        a = x - 1\n    y[:] = a",
    "extents": "rows, cols = m.shape; k = x.size; y[:] = rows + cols + k + len(t) + t.shape[2] + m.ndim",
    "a frozen view": "\n    k = 0\n    v = x[k:]\n    k += 1\n    v[:] = y[:]\n    z[:] = v",
}


@pytest.mark.parametrize("body", LOCALS.values(), ids=LOCALS)
def test_locals(body, make_kernel):
    kernel = probe(make_kernel, body)
    for size in SIZES:
        agree(kernel, size)


FUNCTIONS = """
def smooth(a, weight):
    b = a.copy()
    b[1:-1] = weight * (a[:-2] + a[2:])
    return b


def scale(a, s):
    a *= s
    s = 0


def at(a, i):
    return a[i] * 2


def ends(a):
    n = a.shape[0]
    return a[0], a[n - 1]


def centred(a):
    return a - np.mean(a)
"""
INLINED = {
    "arrays in and out": "x[:] = smooth(y, 0.5) + smooth(x, 0.25)",
    "twice": "x[:] = smooth(smooth(y, 0.5), 0.5)",
    "by what it writes": "s = 3.0; scale(x[1:], s); scale(m.T, 2); y[:] = s",
    "in a loop": "\n    for i in range(N):\n        x[i] = at(y, i)\n        m[i] = centred(m[i])",
    "two results": "first, last = ends(x); y[0] = first; y[-1] = last + y[0]",
}


@pytest.mark.parametrize("body", INLINED.values(), ids=INLINED)
def test_helpers_on_arrays(body, make_kernel):
    kernel = probe(make_kernel, body, FUNCTIONS)
    for size in SIZES:
        agree(kernel, size)


MIXED = {
    "infinity": "best = np.inf; best = min(best, x[0]); z[0] = best; y[0] = -np.inf",
    "names that mean something in C": "double = 2.0; yn = 1; index = 3; x[:] = double * yn + index",
    "products of narrow integers": "int8[:] = int8 * int8; int64[0] = np.sum(int8 * int8)",
    "an initial value": "x[0] = np.max(y, initial=0.0); z[0] = np.sum(y, initial=2)",
    "views in a tuple": "a, b = x[1:], x[:-1]; a[:], b[:] = b * 2, a * 3",
    "nested choices": "x[:] = np.where(x > 0, np.where(y > 0, 1, 2), np.sqrt(np.abs(z)))",
    "absolute values wrap": "int64[:] = np.abs(int64) - np.abs(int32)",
    "NaN is first": "y[N // 2] = np.nan; int64[0] = np.argmax(y); int64[-1] = np.argmin(y); x[0] = y.max()",
    "half precision in memory": "h = np.zeros(N, dtype=np.float16); h[:] = x; y[:] = h * 2",
    "means of truth values": "x[0] = np.mean(y > 0) + (z > 0).mean()",
    "rows by pointers": """
    for i in range(N):
        s, e = ptr[i], ptr[i + 1]
        x[i] = y[s:e] @ z[ip[s:e]]""",
    "a generator of random bits": """
    s = np.uint64(88172645463325252)
    for i in range(N):
        s ^= s << np.uint64(13)
        s ^= s >> np.uint64(7)
        s ^= s << np.uint64(17)
        x[i] = (s >> np.uint64(11)) * (1.0 / 9007199254740992.0)""",
}


@pytest.mark.parametrize("body", MIXED.values(), ids=MIXED)
def test_mixed(body, make_kernel):
    agree(probe(make_kernel, body))


REFUSED = {
    "x[:] = np.sort(y)": "'np.sort(y)'",
    "x[:] = m": "an array of too many axes",
    "t[:] = np.ones(4)": "an array of another shape",
    "ip[0] = 1": "a store into 'ip', which is no output,",
    "(x + y)[0] = 1": "a store into '(x + y)[0]', which is no array in memory,",
    "int8 += 0.5": "a result of float64 in place of int8",
    "x[:] = x[x > 0] + y[y > 0]": "arrays selected by different masks",
    "x[:] = np.arange(0, N, 0.5)": "np.arange of fractions",
    "a = x + 1\n    a = 2.0": "'a' as a scalar and an array",
    "\n    for i in range(N):\n        v = m[i]\n    x[:] = v": "'v', a view that belongs to a loop",
    "\n    if N > 3:\n        v = x\n    else:\n        v = y\n    v[:] = 0": "another array in one branch",
    "a = x.copy()\n    b = y.copy()\n    for i in range(3):\n        a, b = b, a": "from one iteration to",
    "x[:N // 2:N] = 0": "step 'N' of a slice",
    "x[1.5] = 0": "'1.5' (float64) where an integer is needed",
    "if x > 0:\n        x[0] = 1": "array 'x > 0' where a single value is needed",
}


@pytest.mark.parametrize(("body", "construct"), REFUSED.items(), ids=list(REFUSED))
def test_refused_with_the_construct(body, construct, make_kernel):
    with pytest.raises(Unsupported) as caught:
        frontend.translate(probe(make_kernel, body))
    assert construct in str(caught.value)


def translated(make_kernel, body):
    return frontend.translate(probe(make_kernel, body))


@pytest.mark.parametrize(
    "body",
    [
        "x[:] = np.sum(m * y, axis=1)",
        "x[1:] += x[:-1]",
        "m += w @ w",
        "m[:] = 2.0 * (w @ w) + 0.5 * m",
        "m[1:-1, 1:-1] = 0.2 * (w[:-2, 1:-1] + w[2:, 1:-1])",
        "x[:] = np.cumsum(x)",
        "m[:] = m / np.sum(m, axis=1)[:, None]",
        "v = x[1:]; v[:] = y[:-1]",
    ],
)
def test_no_temporary_where_a_loop_can_fuse(body, make_kernel):
    assert not [array for array in translated(make_kernel, body).arrays.values() if array.local]


def test_loops_count_in_the_places_of_the_target(make_kernel):
    body = "m[1:-1, 1:-1] = w[:-2, 1:-1] + w[2:, 1:-1]"
    (rows,) = translated(make_kernel, body).body
    (columns,) = rows.body
    (store,) = columns.body
    assert (rows.var, columns.var, rows.implied) == ("i", "j", True)
    assert store.index == (ir.Name("i", "int64"), ir.Name("j", "int64"))
    assert rows.start == ir.Const(1, "int64")


def test_a_sum_takes_the_name_it_is_assigned_to(make_kernel):
    function = translated(make_kernel, "s = np.sum(x); y[0] = s")
    assert list(function.locals) == ["s"]


def test_a_shift_towards_higher_places_runs_downwards(make_kernel):
    (loop,) = translated(make_kernel, "x[1:] = x[:-1]").body
    assert loop.descending
    (loop,) = translated(make_kernel, "x[:-1] = x[1:]").body
    assert not loop.descending
