"""The loop that dependence analysis chooses is marked parallel; C++ and numba in their own words."""

from __future__ import annotations

import subprocess

import pytest

from hpcagent_bench.corpus import spec
from hpcagent_bench.toolchain import flags, languages
from hpcagent_bench.translators import emit

VECTOR = {"x": "(N,)", "out": "(N,)"}
SUM = """
def probe(x, out, N):
    for i in range(N):
        out[0] += x[i]
"""


def test_c_names_the_accumulator_of_an_element(make_kernel):
    text = emit(make_kernel(SUM, VECTOR, ["out"]), "c", parallel=True)
    assert (
        "    double out_total = out[0];\n"
        "    #pragma omp parallel for reduction(+:out_total)\n"
        "    for (int64_t i = 0; i < N; i++) {\n"
        "        out_total += x[i];\n"
        "    }\n"
        "    out[0] = out_total;\n"
    ) in text
    assert "omp" not in emit(make_kernel(SUM, VECTOR, ["out"]), "c")


def test_the_judges_numba_keeps_reductions_serial(make_kernel):
    kernel = make_kernel(SUM, VECTOR, ["out"])
    assert "prange" not in emit(kernel, "numba")
    assert "for i in prange(N):\n        out_total += x[i]\n" in emit(kernel, "numba", parallel=True)
    assert "prange" not in emit(spec.load("tsvc_2_vtvtv"), "numba", parallel=False)


def test_numba_follows_the_reference():
    assert emit(spec.load("tsvc_2_s115"), "numba") == (
        "# tsvc_2_s115: from tsvc_2_s115_numpy.py\n"
        "import numpy as np\n"
        "from numba import njit, prange\n"
        "\n"
        "\n"
        '@njit(parallel=True, cache=True, fastmath=False, error_model="numpy")\n'
        "def tsvc_2_s115(a, aa, LEN_2D):\n"
        "    for j in range(LEN_2D):\n"
        "        for i in prange(j + 1, LEN_2D):\n"
        "            a[i] -= aa[j, i] * a[j]\n"
    )


def test_cpp_has_its_own_headers_and_linkage():
    text = emit(spec.load("fuse_diamond"), "cpp")
    assert "#include <cstdint>\n#include <cstdlib>\n" in text
    assert 'extern "C" void fuse_diamond_fp64(const double *__restrict__ a' in text
    assert "double *__restrict__ t = (double *)malloc((size_t)LEN_1D * sizeof(double));" in text


@pytest.mark.parametrize("language", ["c", "cpp", "fortran"])
@pytest.mark.parametrize("parallel", [False, True])
def test_compilers_do_not_warn_about_any_kernel(language, parallel, tmp_path):
    sources = []
    for name in spec.discover():
        source = tmp_path / f"{name}{languages.get(language).extension}"
        source.write_text(emit(spec.load(name), language, parallel=parallel))
        sources.append(source)
    extra = ["-fsyntax-only", "-Werror"]
    if (
        language == "fortran"
    ):  # gfortran tries a loop's first index on subscripts and does not see the if before
        extra += ["-Wno-do-subscript", "-Wno-integer-division"]
    command = flags.compile_command(language, sources[0], tmp_path / "unused.so", extra=extra, shared=False)
    start = command.index(str(sources[0]))
    command = [*command[:start], *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
