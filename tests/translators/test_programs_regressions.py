"""Programs that random testing once found wrong, small and by name."""

from __future__ import annotations

import pytest
from batches import compiled, difference, kernel_of, prepared
from random_programs import ARRAYS, OUTPUTS

HEAD = f"import numpy as np\n\n\ndef probe({', '.join(ARRAYS)}, N, M):\n"
SIZES = [{"N": n, "M": m} for n, m in ((1, 1), (2, 3), (8, 7))]
PROGRAMS = {
    "one_helper_of_c_for_two_types": (
        "    y = 0.0\n"
        "    for i in range(1, N):\n"
        "        out[max(i - 1, 0)] = a[i]\n"
        "        y = max(y, max(1 / w[0], b[i]))\n"
        "    out[N - 1] -= y\n"
    ),
    "narrow_integers_wrap_before_they_widen": (
        "    for i in range(N):\n        oi[i] = w[i] - w[0]\n        ov[i] = -w[i] + 1\n"
    ),
    "a_wrapped_product_becomes_a_float_with_its_sign": (
        "    of[:] = u[ip] * u[:]\n    om[:, 0] = (v * ow[ip]).astype(np.float64)\n"
    ),
}


@pytest.mark.parametrize("language", ["c", "cpp", "fortran", "numba"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_regression(name, language, tmp_path):
    text = HEAD + PROGRAMS[name]
    case = prepared(kernel_of(text, "regression", tmp_path, ARRAYS, OUTPUTS), text, True, SIZES)
    assert case is not None
    (call,) = compiled([case], language, tmp_path / language)
    found = difference(case, call)
    assert not found, found
