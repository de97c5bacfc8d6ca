"""What the translators do not cover is refused with file, line and construct."""

from __future__ import annotations

import pytest

from hpcagent_bench.errors import UserError
from hpcagent_bench.translators import Unsupported, emit

ARRAYS = {"x": "(N,)", "m": "(N, N)", "out": "(N,)"}
REFUSED = {
    "out[0] = x[0.5]": ("'0.5' (float64)", 2),
    "for v in x:\n        pass": ("a loop over 'x'", 2),
    "for i in range(N):\n        pass\n    out[0] = i": ("'i' after its loop", 4),
    "out[0] = s": ("'s', which has no value here", 2),
    "x[0] = 1.0": ("a store into 'x'", 2),
    "N = 3": ("assignment to 'N'", 2),
    "out[0] = 1 if x[0] in (1, 2) else 0": ("'x[0] in (1, 2)'", 2),
    "for i in range(N):\n        i = 0": ("assignment to 'i'", 3),
    "for i in range(N):\n        out[i] = x[i - 1]": ("an index of 'x' that starts at -1", 3),
    "for i in range(2, N):\n        for j in range(i, N):\n            out[j - i] = x[i - 3]": (
        "an index of 'x' that starts at -1",
        4,
    ),
    "for i in range(N):\n        out[i] += lambda: 0": ("'lambda: 0'", 3),
}


@pytest.mark.parametrize(("body", "where"), REFUSED.items(), ids=list(REFUSED))
def test_construct_is_refused_by_file_and_line(body, where, make_kernel):
    construct, line = where
    kernel = make_kernel(f"def probe(x, m, out, N):\n    {body}\n", ARRAYS, ["out"])
    with pytest.raises(Unsupported) as caught:
        emit(kernel, "c")
    assert isinstance(caught.value, UserError)
    assert str(caught.value).startswith(f"{kernel.numpy_source}:{line}: {construct}")
    assert "\n" not in str(caught.value)


def test_anything_beside_the_function_is_refused(make_kernel):
    source = "SCALE = 3\n\n\ndef probe(x, m, out, N):\n    out[0] = SCALE\n"
    with pytest.raises(Unsupported, match=r":1: 'SCALE = 3' beside the function"):
        emit(make_kernel(source, ARRAYS, ["out"]), "numba")


def test_an_index_below_zero_may_stand_under_a_condition(make_kernel):
    source = "def probe(x, m, out, N):\n    for i in range(N):\n        out[i] = {}\n"
    for guarded in ("x[i - 1] if i > 0 else x[0]", "1.0 if i > 0 and x[i - 1] > 0 else 0.0"):
        assert "x[i - 1]" in emit(make_kernel(source.format(guarded), ARRAYS, ["out"]), "c")
    branch = "0.0\n        if i > 0:\n            out[i] = x[i - 1]"
    assert "x[i - 1]" in emit(make_kernel(source.format(branch), ARRAYS, ["out"]), "c")
    skipped = "0.0\n        if i == 0:\n            continue\n        out[i] = x[i - 1]"
    assert "x[i - 1]" in emit(make_kernel(source.format(skipped), ARRAYS, ["out"]), "c")
