"""Bad kernels are caught, each by the check that is there for it and by no other."""

from __future__ import annotations

import pytest

from hpcagent_bench import translators
from hpcagent_bench.corpus_check import gate
from hpcagent_bench.corpus_check.findings import Finding, Report

ADD = "def probe(a, b, out, N):\n    for i in range(N):\n        out[i] = a[i] + 0.5 * b[i]\n"
PRESETS = ("S", "M", "L", "XL")
THREE = {"a": "(N,)", "b": "(N,)", "out": "(N,)"}
DRAW = "import numpy as np\n\n\ndef initialize(N, datatype, rng, structure_rng):\n    {}\n"


def failed(report: Report) -> dict[str, Finding]:
    """The checks that failed, by name."""
    return {finding.check: finding for finding in report.failures}


def only_failure(report: Report) -> Finding:
    (finding,) = report.failures
    return finding


@pytest.fixture
def emits(monkeypatch):
    """Let the translator make a mistake: ``emits(old, new)`` replaces a text in the emitted C."""
    honest = translators.emit

    def plant(old, new):
        def emit(kernel, language, *args, **keys):
            text = honest(kernel, language, *args, **keys)
            assert old in text
            return text.replace(old, new)

        monkeypatch.setattr(gate.translators, "emit", emit)

    return plant


def test_a_good_kernel_passes(plant, check):
    plant(ADD, THREE, ["out"])
    report = check()
    assert report.ok, report.failures
    assert report.draws == 5 * 3 * 6
    shares = [finding.share for finding in report.under("accept:") if finding.status == "ok"]
    assert len(shares) >= 6
    assert max(shares) < 0.01  # at most one rounding of a fused multiply-add


def test_a_wrong_translation(plant, check, emits):
    plant(ADD, THREE, ["out"])
    emits("0.5", "0.25")
    finding = only_failure(check())
    assert finding.check == "language: c"
    assert "S, h1, seed 11: out[0] = " in finding.detail


def test_a_translation_that_is_wrong_at_an_odd_size_only(plant, check, emits):
    plant(ADD, THREE, ["out"])
    emits("i < N", "i < N - (N == 7)")
    finding = only_failure(check())
    assert finding.check == "language: c"
    assert "sizes 7, h1" in finding.detail


def test_a_translation_that_writes_beyond_an_array(plant, check, emits):
    plant(ADD, THREE, ["out"])
    emits("i < N", "i <= N")
    assert "writes outside of out" in only_failure(check()).detail


def test_a_translation_that_changes_an_input(plant, check, emits):
    plant(ADD, THREE, ["out"])
    emits("out[i] =", "((double *)b)[i] = 1.0;\n        out[i] =")
    assert "changes b, which is no output" in only_failure(check()).detail


def test_a_reference_that_changes_an_input(plant, check):
    plant(ADD + "        b[i] = 0.0\n", THREE, ["out"])
    finding = only_failure(check())
    assert finding.check == "numpy"
    assert "changes b" in finding.detail


def test_a_construct_that_is_not_covered(plant, check):
    plant("def probe(a, b, out, N):\n    out[:] = sorted(a + b)\n", THREE, ["out"])
    finding = only_failure(check())
    assert finding.check == "language: c"
    assert "probe_numpy.py:2: " in finding.detail


def test_a_reference_that_fails_at_the_smallest_size(plant, check):
    plant(ADD + "    out[1] = a[0]\n", THREE, ["out"])
    finding = only_failure(check())
    assert finding.check == "numpy"
    assert finding.detail.startswith("sizes 1, h1, seed 11: IndexError")


def test_an_input_without_influence(plant, check):
    plant(ADD.replace("0.5 * b[i]", "0.5"), THREE, ["out"])
    finding = only_failure(check())
    assert finding.check == "lint: influence of b"


OUTPUTS = {
    "out[i] = 0.0 * (a[i] + b[i])": {"reject: zeros", "reject: mean", "reject: previous draw"},
    "out[i] = np.log(a[i] + b[i])": {"lint: output out"},
    "out[i] = out[i] + 0.0 * (a[i] + b[i])": {"reject: untouched"},
    "out[i] = 3.0 + 0.0 * (a[i] + b[i])": {"reject: mean", "reject: previous draw", "lint: output out"},
}


@pytest.mark.parametrize(("body", "checks"), OUTPUTS.items(), ids=list(OUTPUTS))
def test_an_output_that_proves_nothing(body, checks, plant, check):
    plant(f"import numpy as np\n\n\n{ADD.partition('out[i]')[0]}{body}\n", THREE, ["out"])
    found = {finding.check for finding in check().failures}
    assert checks <= found
    assert all(name.startswith(("reject:", "lint:", "laptop: output")) for name in found), found


SHORTCUTS = {
    "sorted": "a = np.sort(rng.uniform(-1.0, 1.0, N))",
    "constant": "a = np.full(N, 3.0)",
    "constant mean": "a = rng.uniform(-1.0, 1.0, N)\n    a -= a.mean()",
}


@pytest.mark.parametrize("what", SHORTCUTS)
def test_a_draw_with_a_shortcut(what, plant, check):
    rest = "return a.astype(datatype), rng.uniform(-1.0, 1.0, N).astype(datatype), np.zeros(N, datatype)"
    plant(ADD, THREE, ["out"], initialize=DRAW.format(f"{SHORTCUTS[what]}\n    {rest}"))
    finding = check().under("lint: draw of a")[0]
    assert (finding.status, finding.detail) == ("failed", f"is {what}")
    assert f"taxonomy: {{structure: {{a: {what}}}}}" in finding.hint


GATHER = "def probe(x, p, out, N):\n    for i in range(N):\n        out[i] = x[p[i]] + 1.0\n"
INDEXED = {"x": "(N,)", "p": {"shape": "(N,)", "dtype": "int64"}, "out": "(N,)"}


def test_an_identity_permutation(plant, check):
    body = "return np.arange(N), rng.normal(size=N).astype(datatype), np.zeros(N, datatype)"
    ordered = {name: INDEXED[name] for name in ("p", "x", "out")}
    plant(GATHER, ordered, ["out"], initialize=DRAW.format(body))
    assert check().under("lint: draw of p")[0].detail == "is identity"


MATRIX = (
    "def probe(m, out, N):\n    for i in range(N):\n        s = 0.0\n        for j in range(N):\n"
    "            s = s + m[i, j]\n        out[i] = s\n"
)
SYMMETRIC = "m = rng.normal(size=(N, N))\n    return (m + m.T).astype(datatype), np.zeros(N, datatype)"


@pytest.mark.parametrize("declared", [False, True])
def test_a_symmetric_matrix_unless_it_is_declared(declared, plant, check):
    keys = {"taxonomy": {"structure": {"m": "symmetric"}}} if declared else {}
    plant(MATRIX, {"m": "(N, N)", "out": "(N,)"}, ["out"], initialize=DRAW.format(SYMMETRIC), **keys)
    assert [finding.detail for finding in check().failures] == ([] if declared else ["is symmetric"])


def test_a_band_so_wide_that_single_precision_passes(plant, check):
    plant(ADD, THREE, ["out"], conditioning_atol=1.0e-3)
    finding = only_failure(check())
    assert finding.check == "reject: single precision"
    assert "lower conditioning_atol" in finding.hint


CANCELLING = (
    "def probe(a, out, N):\n    s = 1.0e10\n    for i in range(N):\n"
    "        s = s + a[i]\n        out[i] = s - 1.0e10\n"
)
PLAIN = """
void probe_fp64(const double *a, double *out, const long N, unsigned char *work, const long size) {
    double sum = 0.0;
    for (long i = 0; i < N; i++)
        out[i] = sum += a[i];
}
"""


@pytest.mark.parametrize("floor", [None, 1e-2])
def test_a_band_so_narrow_that_an_honest_rewrite_leaves_it(floor, plant, check, tmp_path):
    keys = {"conditioning_atol": floor} if floor else {}
    plant(CANCELLING, {"a": "(N,)", "out": "(N,)"}, ["out"], **keys)
    (tmp_path / "probe_plain.c").write_text(PLAIN)
    report = check(fixtures=tmp_path)
    if floor is None:
        assert all(finding.check.startswith("accept:") for finding in report.failures)
        finding = failed(report)["accept: probe_plain.c"]
        assert finding.share > 1
        assert "set conditioning_atol" in finding.hint
    else:
        assert report.ok, report.failures
        assert 0 < report.under("accept: probe_plain.c")[0].share < 1


def test_a_rewrite_with_another_symbol_is_no_rewrite_of_this_kernel(plant, check, tmp_path):
    plant(ADD, THREE, ["out"])
    (tmp_path / "probe_plain.c").write_text(PLAIN.replace("probe_fp64", "probe_two_fp64"))
    (tmp_path / "probe_broken.c").write_text("/* probe_fp64 */ void other(void) {}\n")
    report = check(fixtures=tmp_path)
    assert not report.under("accept: probe_plain.c")
    assert "undefined symbol: probe_fp64" in only_failure(report).detail


def test_titles_that_another_kernel_has(plant, check):
    plant(ADD, THREE, ["out"])
    plant(ADD.replace("probe", "other"), THREE, ["out"], name="other", **{"short-name": "PROBE"})
    assert only_failure(check()).check == "titles"
    assert "title or short name of other" in only_failure(check()).detail


def test_more_bytes_than_a_judge_holds(plant, check):
    sizes = {preset: {"N": n} for preset, n in zip(PRESETS, (64, 10**8, 2 * 10**8, 1 << 28), strict=True)}
    plant(ADD, THREE, ["out"], parameters=sizes)
    finding = only_failure(check())
    assert finding.check == "manifest"
    assert "XL takes 6.00 GiB" in finding.detail


def test_a_manifest_that_is_refused(plant, check):
    plant(ADD, THREE, ["out"], rtol=1e-3)
    assert "key 'rtol' is refused" in only_failure(check()).detail
