"""What emitted Fortran looks like: reversed indices from 0, bounds read once, nothing evaluated too early."""

from __future__ import annotations

import pytest

from hpcagent_bench.corpus import spec
from hpcagent_bench.translators import emit

VECTOR = {"x": "(N,)", "out": "(N,)"}


def test_style_is_the_references_with_indices_reversed():
    assert emit(spec.load("tsvc_2_s231"), "fortran") == (
        "! tsvc_2_s231: from tsvc_2_s231_numpy.py\n"
        "subroutine tsvc_2_s231_fp64(aa, bb, LEN_2D, workspace, workspace_size) "
        'bind(C, name="tsvc_2_s231_fp64")\n'
        "    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t, c_int8_t\n"
        "    implicit none\n"
        "    integer(c_int64_t), value, intent(in) :: LEN_2D\n"
        "    integer(c_int64_t), value, intent(in) :: workspace_size\n"
        "    real(c_double), intent(inout) :: aa(0:LEN_2D - 1, 0:LEN_2D - 1)\n"
        "    real(c_double), intent(in) :: bb(0:LEN_2D - 1, 0:LEN_2D - 1)\n"
        "    integer(c_int8_t), intent(inout) :: workspace(0:workspace_size - 1)\n"
        "    integer(c_int64_t) :: i, j\n"
        "\n"
        "    associate (unused => workspace)\n"
        "    end associate\n"
        "    do i = 0, LEN_2D - 1\n"
        "        do j = 1, LEN_2D - 1\n"
        "            aa(i, j) = aa(i, j - 1) + bb(i, j)\n"
        "        end do\n"
        "    end do\n"
        "end subroutine tsvc_2_s231_fp64\n"
    )


@pytest.mark.parametrize("parallel", [False, True])
def test_no_line_of_the_corpus_is_too_long(parallel):
    for name in spec.discover():
        lines = emit(spec.load(name), "fortran", parallel=parallel).splitlines()
        assert max(map(len, lines)) <= 132, name


GUARDED = {
    "if i > 0 and x[i - 1] > 0:\n            out[i] = 1.0": "if (i > 0 .and.",
    "out[i] = x[i - 1] if i > 0 else 0.0": "merge(",
    "while i > 0 and x[i - 1] > out[i]:\n            out[i] += 1.0": "do while (",
}


@pytest.mark.parametrize("body", GUARDED)
def test_a_guarded_element_is_not_read_beside_its_guard(body, make_kernel):
    text = emit(
        make_kernel(f"def probe(x, out, N):\n    for i in range(N):\n        {body}\n", VECTOR, ["out"]),
        "fortran",
    )
    assert GUARDED[body] not in text
    guard = next(k for k, line in enumerate(text.splitlines()) if "if (" in line)
    element = next(k for k, line in enumerate(text.splitlines()) if "x(i - 1)" in line)
    assert guard < element


def test_elements_that_are_read_anyway_may_stand_in_a_merge(make_kernel):
    source = "def probe(x, out, N):\n    for i in range(N):\n        out[i] = x[i] if x[i] > 0 else 0.0\n"
    text = emit(make_kernel(source, VECTOR, ["out"]), "fortran")
    assert "out(i) = merge(x(i), 0.0_c_double, x(i) > 0.0_c_double)" in text


def test_private_scalars_and_reductions_are_named(make_kernel):
    source = """
def probe(x, out, N):
    s = 0.0
    for i in range(N):
        t = x[i] * 2.0
        s += t * t
    out[0] = s
"""
    text = emit(make_kernel(source, VECTOR, ["out"]), "fortran", parallel=True)
    assert "    !$omp parallel do private(t) reduction(+:s)\n    do i = 0, N - 1\n" in text
