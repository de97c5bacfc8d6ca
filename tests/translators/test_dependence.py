"""Only loops whose iterations are provably independent are made parallel."""

from __future__ import annotations

import numpy as np
import pytest
from loop_nests import parse

from hpcagent_bench.corpus import spec
from hpcagent_bench.translators import emit, explain, frontend
from hpcagent_bench.translators.analysis.dependence import parallel_loop, verdicts

ARRAYS = {"x": "(N,)", "ip": {"shape": "(N,)", "dtype": "int64"}, "m": "(N, N)", "out": "(N,)"}
PARALLEL_LINE = {
    "for i in range(N):\n        out[i] = x[i]": 2,
    "for i in range(N - 1):\n        out[i] = out[i + 1]": None,
    "for i in range(1, N):\n        out[i] = out[i - 1]": None,
    "for i in range(N):\n        out[0] = x[i]": None,
    "for i in range(N):\n        out[ip[i]] += x[i]": None,
    "for i in range(N):\n        out[i] = x[ip[i]]": 2,
    "for i in range(0, N // 2):\n        out[2 * i] = out[2 * i + 1]": 2,
    "for i in range(0, N // 2):\n        out[2 * i] = out[2 * i + 2]": None,
    "for i in range(N):\n        t = x[i]\n        out[i] = t * t": 2,
    "t = 0.0\n    for i in range(N):\n        out[i] = t\n        t = x[i]": None,
    "t = 0.0\n    for i in range(N):\n        t = x[i]\n        out[i] = t\n    out[0] = t": None,
    "for i in range(N):\n        if x[i] > 0:\n            break\n        out[i] = 1.0": None,
    "for i in range(N):\n        for j in range(N):\n            m[j, i] = x[j]": 2,
    "for i in range(N):\n        for j in range(N):\n            out[j] += m[i, j]": 3,
    "for i in range(N):\n        for j in range(N):\n            out[i] += m[i, j]": 2,
    "for i in range(N):\n        for j in range(i):\n            m[i, j] = m[j, i]": 2,
    "for i in range(N):\n        for j in range(N):\n            m[i, j] = m[j, i]": 3,
    "for i in range(0, N, 2):\n        out[i] = x[i]": None,
    "for j in range(N):\n        for i in range(j + 1, N):\n            out[i] -= m[j, i] * out[j]": 3,
    "for j in range(N):\n        for i in range(j, N):\n            out[i] -= m[j, i] * out[j]": None,
}


NESTS = {"x": 1, "y": 1, "m": 2, "ip": 1, "tmp": 1}
PARALLEL_INDICES = {  # body of a function of sizes N and M; tmp is a local array
    # one subscript, one index: equal coefficients
    "for i in range(N):\n    x[i] = x[i] + 1": "i",
    "for i in range(3, N):\n    x[i] = x[i - 3]": "",
    "for i in range(N):\n    x[3 * i] = x[3 * i + 2]": "i",
    "for i in range(N):\n    x[3 * i] = x[3 * i + 6]": "",
    "for i in range(N // 2):\n    x[i] = x[i + N // 2]": "i",
    "for i in range(N // 2 + 1):\n    x[i] = x[i + N // 2]": "",
    "for i in range(10):\n    x[i] = x[i + 10]": "i",
    "for i in range(10):\n    x[i] = x[i + 9]": "",
    "for i in range(0, N, 2):\n    x[i] = x[i + 1]": "i",
    "for i in range(0, N, 2):\n    x[i] = x[i + 2]": "",
    "for i in range(N - 1, 0, -1):\n    x[i] = x[i - 1]": "",
    "for i in range(N - 1, -1, -1):\n    x[i] = y[N - 1 - i]": "i",
    # one subscript, one index: unequal coefficients
    "for i in range(N):\n    x[i] = x[0]": "",
    "for i in range(1, N):\n    x[i] = x[0]": "i",
    "for i in range(N):\n    x[i] = x[N - 1]": "",
    "for i in range(N - 1):\n    x[i] = x[N - 1]": "i",
    "for i in range(N):\n    x[i] = x[N - 1 - i]": "",
    "for i in range(N):\n    x[2 * i] = x[4 * i + 1]": "i",
    "for i in range(N):\n    x[i] = x[2 * i]": "",
    "for i in range(N // 2):\n    x[i] = x[N - 1 - i]": "i",
    # several indices in a subscript
    "for i in range(N):\n    for j in range(M):\n        x[i + j] = 1": "j",
    "for i in range(N):\n    for j in range(3):\n        x[3 * i + j] = 1": "ij",
    "for i in range(N):\n    for j in range(4):\n        x[3 * i + j] = 1": "j",
    "for i in range(N):\n    for j in range(M):\n        x[i * M + j] = y[j]": "ij",
    "for i in range(N):\n    for j in range(M + 1):\n        x[i * M + j] = y[j]": "j",
    "for i in range(N):\n    for j in range(N):\n        x[2 * i + 4 * j] = x[2 * i + 4 * j + 1]": "j",
    # several subscripts that only together exclude a dependence
    "for i in range(1, N):\n    m[i, i] = m[i - 1, i]": "i",
    "for i in range(1, N):\n    m[i, i] = m[i - 1, i - 1]": "",
    "for i in range(N):\n    for j in range(N):\n        m[i, j] = m[j, i]": "j",
    "for i in range(N):\n    for j in range(i):\n        m[i, j] = m[j, i]": "ij",
    "for i in range(N):\n    for j in range(i + 1):\n        m[i, j] = m[j, i]": "ij",
    # triangles, diagonals and what branches say
    "for j in range(N):\n    for i in range(j + 1, N):\n        x[i] -= m[j, i] * x[j]": "i",
    "for j in range(N):\n    for i in range(j, N):\n        x[i] -= m[j, i] * x[j]": "",
    "for d in range(2, N + M):\n    for i in range(max(1, d - M), min(d, N)):\n"
    "        m[i, d - i] = m[i - 1, d - i] + m[i, d - i - 1]": "i",
    "for i in range(N):\n    if i < 3:\n        x[i] = x[i + 3]": "i",
    "for i in range(N):\n    if i % 2 == 0:\n        x[i] = x[i + 1]": "i",
    "for i in range(1, N):\n    x[i] = x[i - 1] if i > N else 0": "i",
    # subscripts from data and from scalars
    "for i in range(N):\n    x[i] = y[ip[i]]": "i",
    "for i in range(N):\n    x[ip[i]] = y[i]": "",
    "for i in range(ip[0]):\n    x[i] = x[i + ip[0]]": "i",
    "for i in range(N):\n    for k in range(ip[i], ip[i + 1]):\n        x[i] = x[i] * 2 + y[k]": "i",
    "for i in range(N):\n    k = 2 * i\n    x[k] = x[k + 1]": "i",
    "k = 0\nfor i in range(N):\n    k = k + 2\n    x[k] = y[i]": "",
    "for i in range(N):\n    x[i % 2] = y[i]": "",
    "for i in range(N):\n    x[i // 2] = y[i]": "",
    # scalars
    "for i in range(N):\n    t = x[i]\n    if t > 0:\n        y[i] = t": "i",
    "t = 0\nfor i in range(N):\n    if x[i] > 0:\n        t = x[i]\n    y[i] = t": "",
    "for i in range(N):\n    if x[i] > 0:\n        t = 1\n    else:\n        t = 2\n    y[i] = t": "i",
    "t = 0\nfor i in range(N):\n    t = x[i]\ny[0] = t": "",
    "for i in range(N):\n    s = 0\n    for j in range(M):\n        s += m[i, j]\n    x[i] = s": "ij",
    "for i in range(N):\n    for j in range(N):\n        if y[j]:\n            break\n        x[i] = j": "i",
    "for i in range(N):\n    while x[i] > 9:\n        x[i] = x[i] // 2": "i",
    "for i in range(N):\n    if x[i] > 9:\n        return\n    x[i] = 0": "",
    # local arrays that every iteration fills anew
    "for i in range(N):\n    for j in range(M):\n        tmp[j] = m[i, j]\n"
    "    for k in range(1, M):\n        m[i, k] = tmp[k - 1]": "ijk",
    "for i in range(N):\n    for j in range(1, M):\n        tmp[j] = m[i, j]\n"
    "    for k in range(1, M):\n        m[i, k] = tmp[k - 1]": "jk",
    "for i in range(N):\n    for j in range(M):\n        tmp[j] = m[i, j]\n"
    "    for k in range(1, M):\n        m[i, k] = tmp[k - 1]\ny[0] = tmp[0]": "jk",
    "for i in range(N):\n    if x[i] > 0:\n        for j in range(M):\n            tmp[j] = m[i, j]\n"
    "    for k in range(M):\n        m[i, k] = tmp[k]": "jk",
    "for i in range(N):\n    for j in range(M):\n        tmp[j] = m[i, j]\n"
    "        if tmp[j] > 3:\n            break\n"
    "    for k in range(M):\n        m[i, k] = tmp[k]": "k",
    # a scalar that an inner loop moves on
    "for i in range(N):\n    t = i\n    for j in range(M):\n        x[t] = j\n        t = t + 1": "",
    "for i in range(N):\n    t = 0\n    for j in range(M):\n        m[i, t] = j\n        t = t + 1": "i",
}


@pytest.mark.parametrize(("text", "indices"), PARALLEL_INDICES.items(), ids=list(PARALLEL_INDICES))
def test_classic_cases(text, indices):
    known = verdicts(parse(text, NESTS, ["tmp"])).values()
    assert "".join(verdict.index for verdict in known if verdict.parallel) == indices


REDUCTIONS = {
    "s = s + x[i]": ("s", "+"),
    "s = x[i] + s - y[i]": ("s", "+"),
    "s = x[i] - s": None,
    "s = s * x[i]": ("s", "*"),
    "s = s * x[i] + 1": None,
    "s = s + s": None,
    "s = max(s, x[i])": ("s", "max"),
    "s = x[i] if x[i] < s else s": ("s", "min"),
    "s = x[i] if s < x[i] else s": ("s", "max"),
    "if x[i] < s:\n        s = x[i]": ("s", "min"),
    "if s <= x[i]:\n        s = x[i]": ("s", "max"),
    "if x[i] < s:\n        s = y[i]": None,
    "if x[i] < 3:\n        s = s + 1": ("s", "+"),
    "s = s + x[i]\n    y[i] = s": None,
    "s = s + x[i]\n    s = s * y[i]": None,
    "for j in range(M):\n        s = s + m[i, j]": ("s", "+"),
    "y[2] = y[2] + x[i]": ("y", "+"),
    "y[2] = y[2] + y[i + 3]": ("y", "+"),
    "y[2] = y[2] + y[i]": None,
    "y[t] = min(y[t], x[i])": ("y", "min"),
}


@pytest.mark.parametrize(("text", "found"), REDUCTIONS.items(), ids=list(REDUCTIONS))
def test_reductions(text, found):
    function = parse(f"s = 1\nt = 2\nfor i in range(N):\n    {text}\nx[0] = s", NESTS)
    outer = next(iter(verdicts(function).values()))
    assert [(each.name, each.op) for each in outer.reductions] == ([found] if found else [])
    assert outer.parallel is (found is not None)
    assert parallel_loop(function) is None or parallel_loop(function) is not outer.loop


REASONS = {
    "for i in range(1, N):\n    x[i] = x[i - 1] + 1": (
        "line 2 reads x[i - 1], which an earlier iteration of i stores as x[i] (distance 1)"
    ),
    "for i in range(N):\n    x[i] = x[i + 2]": (
        "line 2 reads x[i + 2], which a later iteration of i overwrites (distance 2)"
    ),
    "for i in range(9, 0, -1):\n    x[i] = 0\n    y[i] = x[i + 1]": (
        "line 3 reads x[i + 1], which an earlier iteration of i stores as x[i] in line 2 (distance 1)"
    ),
    "for i in range(0, N, 2):\n    x[i] = 0\n    x[i + 4] = 1": (
        "line 2 stores x[i], which another iteration of i stores as x[i + 4] in line 3 (distance 2)"
    ),
    "for i in range(N):\n    x[3] = y[i]": "line 2 stores x[3] in more than one iteration of i",
    "for i in range(N):\n    x[ip[i]] = y[i]": "line 2 may store x[ip[i]] in more than one iteration of i",
    "for i in range(N):\n    x[i] = x[ip[i]]": (
        "line 2 may read x[ip[i]], which an earlier iteration of i stores as x[i]"
    ),
    "s = 0\nfor i in range(N):\n    y[i] = s\n    s = x[i]": (
        "s, set in line 4, carries a value from one iteration of i to the next"
    ),
    "t = 0\nfor i in range(N):\n    t = x[i]\ny[0] = t": (
        "the value t gets in the last iteration of i (line 3) is used after the loop"
    ),
    "for i in range(N):\n    if x[i] > 0:\n        break": "line 3 may leave the loop early",
    "for i in range(N):\n    x[i] = y[i]": "no iteration touches what another one stores",
    "s = 0\nfor i in range(N):\n    s = s + x[i]\ny[0] = s": (
        "no iteration touches what another one stores, but for the sum into s (a reduction)"
    ),
}


@pytest.mark.parametrize(("text", "reason"), REASONS.items(), ids=list(REASONS))
def test_reasons_name_lines_elements_and_distances(text, reason):
    assert next(iter(verdicts(parse(text, NESTS)).values())).reason == reason


KERNEL_LOOPS = {  # per loop in the order of the text: what the formulas say
    "argmax_with_index": ["serial"],  # the index goes with the value
    "ext_war_unit": ["serial"],  # a[i + 1] must be read before it is overwritten
    "fuse_diamond": ["parallel"] * 4,
    "tsvc_2_s115": ["serial", "parallel"],  # x[j] is final before the i loop subtracts its multiples
    "tsvc_2_s231": ["parallel", "serial"],  # columns are independent, each is a running sum
    "tsvc_2_s311": ["reduction"],
    "tsvc_2_vtvtv": ["parallel"],
    "wf_triangular": ["serial", "serial"],  # upper and left neighbours; only diagonals are free
    "row_variance_two_pass": ["parallel", "reduction", "reduction"],
    "csr_spmv": ["parallel", "reduction"],
    "tsvc_2_vag": ["parallel"],
    "gather_scale_scatter": ["serial"],  # that the indices are a permutation is in no loop
    "scan_affine_decay": ["serial"],
    "rim_peeled_stencil": ["parallel", "parallel"],
    "matrix_chain_cost": ["parallel", "serial", "parallel", "reduction"],  # diagonals one after the other
    "floyd_warshall": ["serial", "serial", "parallel"],  # row k is read by all rows of step k
    "crossing_mirror_update": ["serial"],
    "first_mismatch": ["serial"],  # leaves at the first
    "sum_of_row_maxima": ["reduction", "reduction"],
    "skew_two_wavefront": ["serial", "serial"],
    "imperfect_nest_deflation": ["parallel", "reduction", "parallel"],
    "cumulative_table_bisection": ["serial", "parallel", "serial"],  # a running sum, then searches in it
}


@pytest.mark.parametrize("name", KERNEL_LOOPS)
def test_loops_of_kernels_as_derived_by_hand(name):
    found = [
        "serial" if not verdict.parallel else "reduction" if verdict.reductions else "parallel"
        for verdict in explain(spec.load(name))
    ]
    assert found == KERNEL_LOOPS[name]


@pytest.mark.parametrize(("body", "line"), PARALLEL_LINE.items(), ids=list(PARALLEL_LINE))
def test_choice_of_the_parallel_loop(body, line, make_kernel):
    source = f"def probe(x, ip, m, out, N):\n    {body}\n"
    chosen = parallel_loop(frontend.translate(make_kernel(source, ARRAYS, ["m", "out"])))
    assert (chosen.line if chosen else None) == line


CHOSEN = {  # line of the loop that is run in parallel: the outermost of the deepest nest
    "for i in range(N):\n    x[i] = 0\nfor i in range(N):\n    for j in range(N):\n        m[i, j] = 0": 3,
    "for i in range(3):\n    for j in range(N):\n        m[i, j] = 0": 2,
    "for i in range(3):\n    for j in range(4):\n        m[i, j] = 0": 1,
    "for t in range(M):\n    for i in range(N):\n        for j in range(N):\n            m[i, j] = t": 2,
    "for k in range(N):\n    for i in range(N):\n        for j in range(i):\n"
    "            m[i, j] = m[i, j] + m[j, k] * m[i + 1, k]": None,  # N * N starts of too little
}


@pytest.mark.parametrize(("text", "line"), CHOSEN.items(), ids=list(CHOSEN))
def test_which_of_the_parallel_loops_is_run_so(text, line):
    chosen = parallel_loop(parse(text, NESTS))
    assert (chosen.line if chosen else None) == line


def test_kernels_that_stay_serial():
    serial = {name for name, loops in KERNEL_LOOPS.items() if "parallel" not in loops}
    serial.add("floyd_warshall")  # threads would start N * N times
    for name in KERNEL_LOOPS:
        text = emit(spec.load(name), "numba")
        assert text.count(" in prange(") == (0 if name in serial else 1), name
        assert f"@njit(parallel={name not in serial}, " in text


@pytest.mark.parametrize(
    "name", [name for name in KERNEL_LOOPS if not any(a.integral for a in spec.load(name).arrays.values())]
)
def test_the_parallel_loop_gives_the_same_in_any_order(name, inputs, call_numpy):
    kernel = spec.load(name)
    params = dict.fromkeys(kernel.size_symbols, 23)
    expected = inputs(kernel, params)
    shuffled = {array: values.copy() for array, values in expected.items()}
    call_numpy(kernel, expected, params)
    text = emit(kernel, "numba").replace("from numba import", "# ")
    rng = np.random.default_rng(5)
    namespace = {
        "prange": lambda *bounds: map(int, rng.permutation(range(*bounds))),
        "njit": lambda function=None, **_: function or (lambda plain: plain),
    }
    exec(text, namespace)
    values = {**shuffled, **params}
    namespace[kernel.function](*(values[argument] for argument in kernel.arg_order))
    for array in kernel.arrays:
        np.testing.assert_array_equal(shuffled[array], expected[array], strict=True)
