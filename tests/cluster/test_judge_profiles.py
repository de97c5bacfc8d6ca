"""POST /profile: what a delivery prints, where its time goes, what its compiler did; nothing is recorded."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from judge_rig import Judge, file_token
from launching import family, until

from hpcagent_bench.cluster import wire
from hpcagent_bench.cluster.profiling import papi, perf

KERNEL = "tsvc_2_vtvtv"
HEAD = "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
SIGNATURE = (
    "void tsvc_2_vtvtv_fp64(double *a, const double *b, const double *c, const int64_t n, uint8_t *w, "
    "const int64_t s)"
)
LOOP = "for (int64_t i = 0; i < n; i++) a[i] = a[i] * b[i] * c[i];"


def source(body: str = LOOP) -> str:
    return f"{HEAD}{SIGNATURE}\n{{\n{body}\n}}\n"


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    folder = tmp_path_factory.mktemp("job")
    file_token(folder, "one", KERNEL, "multi")
    file_token(folder, "py", KERNEL, "multi", language="python", worker=1)
    made = Judge(folder, settings={"service.input_mode": "any", "service.profile_timeout_s": 5.0})
    yield made
    made.end()


def profile(judge: Judge, text: str, tool: str, token: str = "one", **more: Any) -> Any:
    return judge.post("/profile", token, KERNEL, text, tool=tool, **more)


def test_instrumented_source_runs_once_and_shows_what_it_prints(judge: Judge) -> None:
    text = source('printf("n=%ld w=%ld\\n", (long)n, (long)s); fprintf(stderr, "on the side\\n");' + LOOP)
    told = profile(judge, text, "none", workspace_bytes="8*LEN_1D").json()
    size = int(told["stdout"].split()[0].removeprefix("n="))
    assert told["stdout"] == f"n={size} w={8 * size}\n"
    assert (told["stderr"], told["exit_code"], told["timed_out"]) == ("on the side\n", 0, False)
    assert told["elapsed_s"] > 0


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("*(volatile int *)8 = 1;", {"exit_code": 139, "timed_out": False}),
        ("exit(7);", {"exit_code": 7, "timed_out": False}),
        ("for (;;) ;", {"timed_out": True}),
        ('for (;;) puts("endless");', {"timed_out": True}),
    ],
)
def test_a_run_that_ends_badly_is_told_and_bounded(
    judge: Judge, body: str, expected: dict[str, object]
) -> None:
    told = profile(judge, source(body), "none").json()
    assert {key: told[key] for key in expected} == expected
    assert len(told["stdout"]) <= 64 << 10
    until(lambda: len(family(judge.process.pid)) == 1)  # nothing of it lives on


def test_a_run_is_sealed(judge: Judge) -> None:
    body = (
        'printf("%d", system("true") != 0); FILE *f = fopen("/work", "r"); printf(" %d", f != NULL);'
        f'f = fopen("{judge.run_dir}/seeds.json", "r"); printf(" %d %d", f != NULL, (int)fork());'
    )
    assert profile(judge, source(body), "none").json()["stdout"] == "1 0 0 -1"


def test_a_python_delivery_runs_too(judge: Judge) -> None:
    text = (
        "def tsvc_2_vtvtv(a, b, c, LEN_1D):\n    print(a.shape, LEN_1D, b.flags.writeable)\n    a *= b * c\n"
    )
    told = profile(judge, text, "none", token="py", language="python").json()
    size = int(told["stdout"].split(",")[0].strip("("))
    assert told["stdout"] == f"({size},) {size} False\n"
    broken = profile(judge, "def f(:\n", "none", token="py", language="python").json()
    assert (broken["build_ok"], "invalid syntax" in broken["build_log"]) == (False, True)
    refused = profile(judge, text, "linuxperf", token="py", language="python")
    assert (refused.status_code, refused.json()["cause"]) == (503, "not_native")


def test_the_compilers_report_speaks_of_the_source(judge: Judge) -> None:
    for compiler in ("gcc", "llvm"):
        told = profile(judge, source(), "opt-report", compiler=compiler, build=["-DX"])
        assert "vectorized" in told.json()["report"]
        assert "tsvc_2_vtvtv.c:7" in told.json()["report"]
    told = profile(judge, "nonsense", "opt-report").json()
    assert told["build_ok"] is False
    assert "error" in told["build_log"]


@pytest.mark.skipif(perf.missing() is not None, reason="this host has no perf")
def test_perf_tells_the_line_where_time_goes(judge: Judge) -> None:
    text = source(
        "for (int k = 0; k < 200; k++)\nfor (int64_t i = 0; i < n; i++)\na[i] = a[i] * b[i] * c[i];"
    )
    told = profile(judge, text, "linuxperf", counter_group="branch", threads=[1])
    assert told.status_code == 200, told.text
    (run,) = told.json()["runs"]
    first = run["hot_spots"][0]
    assert first["symbol"] == "tsvc_2_vtvtv_fp64"
    assert first["line"].split(":")[0] == "tsvc_2_vtvtv.c"
    assert sum(spot["percent"] for spot in run["hot_spots"]) <= 100.5
    assert [counter["event"] for counter in run["counters"]] == ["branches", "branch-misses"]
    assert run["threads"] == 1


def test_what_cannot_be_looked_at_is_refused_with_its_cause(judge: Judge) -> None:
    for tool, code, words in [
        ("nsys", 503, "no_gpu"),
        ("gdb", 400, "tool is 'gdb'"),
    ]:
        answer = profile(judge, source(), tool)
        assert answer.status_code == code
        assert words in answer.text
    assert profile(judge, source(), "linuxperf", counter_group="x").status_code == 400
    assert profile(judge, source(), "linuxperf", threads=[1000]).status_code == 400
    if papi.missing() is not None:
        answer = profile(judge, source(), "papi")
        assert (answer.status_code, answer.json()["cause"][:5]) == (503, "papi_")


def test_nothing_of_a_look_is_recorded(judge: Judge) -> None:
    profile(judge, source(), "none")
    with sqlite3.connect(f"file:{judge.shard}?mode=ro", uri=True) as conn:
        assert conn.execute("SELECT count(*) FROM grades").fetchone() == (0,)


@pytest.mark.parametrize(
    ("level", "cause"), [("3\n", "perf_event_paranoid"), ("2\n", None), (None, "no_perf_events")]
)
def test_causes_of_a_missing_perf(
    level: str | None, cause: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = tmp_path / "perf_event_paranoid"
    if level is not None:
        setting.write_text(level)
    monkeypatch.setattr(perf, "SETTING", setting)
    monkeypatch.setattr(perf.shutil, "which", lambda name: "/usr/bin/perf")
    found = perf.missing()
    assert (found.cause if found else None) == cause
    monkeypatch.setattr(perf.shutil, "which", lambda name: None)
    assert perf.missing() is not None
    assert perf.missing().cause == "perf_missing"  # type: ignore[union-attr]


def test_every_group_has_its_counters() -> None:
    for module in (perf, papi):
        assert set(module.GROUPS) | {"all"} == set(wire.COUNTER_GROUPS)
        assert set(module.events_of("all")) >= set(module.events_of("cache"))
