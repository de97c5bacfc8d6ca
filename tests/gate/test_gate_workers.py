"""Workers: a crash and a loop without end cost one kernel its report; what passed is not checked twice."""

from __future__ import annotations

import pytest

from hpcagent_bench.corpus_check import cache, gate, pool

COPY = "def {}(a, out, N):\n    for i in range(N):\n        out[i] = a[i] + 1.0\n"
TWO = {"a": "(N,)", "out": "(N,)"}
SIGNATURE = "(const double *a, double *out, const long N, unsigned char *work, const long size)"


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("HPCAGENT_BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))


def test_a_crash_costs_one_kernel_its_report(plant, root, tmp_path):
    for name in ("crashing", "sound"):
        plant(COPY.format(name), TWO, ["out"], name=name)
    (tmp_path / "crashing_null.c").write_text(
        f"void crashing_fp64{SIGNATURE} {{\n    *(volatile double *)0 = a[0];\n}}\n"
    )
    reports = {r.kernel: r for r in pool.check(["crashing", "sound"], jobs=1, root=root, fixtures=tmp_path)}
    (finding,) = reports["crashing"].failures
    assert finding.check == "crash"
    assert "SIGSEGV during: accept: crashing_null.c at S" in finding.detail
    assert reports["sound"].ok


def test_a_loop_without_end_is_stopped(plant, root, monkeypatch):
    monkeypatch.setattr(pool, "LIMIT_S", 20.0)
    plant("def stuck(a, out, N):\n    while N > 0:\n        out[0] += a[0]\n", TWO, ["out"], name="stuck")
    (report,) = pool.check(["stuck"], jobs=1, root=root)
    (finding,) = report.failures
    assert "took longer than 20 s during: numpy at S, h1, seed 11" in finding.detail


def test_what_passed_is_kept_until_something_changes(plant, root, only_c):
    folder = plant(COPY.format("probe"), TWO, ["out"])
    first, second = (gate.check_kernel("probe", root) for _ in range(2))
    assert (first.ok, first.cached, second.cached) == (True, False, True)
    assert second.findings == first.findings
    reference = folder / "probe_numpy.py"
    reference.write_text(reference.read_text().replace("1.0", "2.0"))
    assert not gate.check_kernel("probe", root).cached


def test_what_failed_is_looked_at_again(plant, root, only_c):
    plant(COPY.format("probe"), TWO, ["out"], conditioning_atol=1.0)
    for _ in range(2):
        report = gate.check_kernel("probe", root)
        assert not report.ok
        assert not report.cached


def test_a_kernel_that_comes_to_clash_is_looked_at_again(plant, root, only_c):
    plant(COPY.format("probe"), TWO, ["out"])
    assert gate.check_kernel("probe", root).ok
    plant(COPY.format("other"), TWO, ["out"], name="other", **{"short-name": "probe"})
    assert [finding.check for finding in gate.check_kernel("probe", root).failures] == ["titles"]


def test_the_key_follows_compilers_and_fixtures(plant, root, tmp_path, monkeypatch):
    from hpcagent_bench.corpus import spec
    from hpcagent_bench.toolchain import tool_cache

    plant(COPY.format("probe"), TWO, ["out"])
    kernel = spec.load("probe", root)
    fixture = tmp_path / "probe_other.c"
    fixture.write_text("1")
    keys = {cache.key(kernel, [], ""), cache.key(kernel, [fixture], ""), cache.key(kernel, [], "clash")}
    cache._tools.cache_clear()
    monkeypatch.setattr(tool_cache, "compiler_version", lambda compiler: "another")
    keys.add(cache.key(kernel, [], ""))
    cache._tools.cache_clear()
    assert len(keys) == 4
