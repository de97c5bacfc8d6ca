"""What the judge tells: about kernels, about grades, and never what only it may know."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from judge_rig import file_token

from hpcagent_bench import config
from hpcagent_bench.cluster import answers
from hpcagent_bench.cluster.judge_service import create_app
from hpcagent_bench.cluster.serve import ServeOptions, make_office
from hpcagent_bench.corpus import spec
from hpcagent_bench.harness import grade_under
from hpcagent_bench.harness.references import JudgeFault
from hpcagent_bench.harness.scoring import Verdict
from hpcagent_bench.harness.submission import Submission

KERNEL = "tsvc_2_s311"
NODE = "infra: node is disturbed: steal 3 %"


@pytest.fixture
def settings() -> config.Judge:
    found = config.Judge()
    found.measurement.denominator.loop_level_reasoning = "c"
    found.service.input_mode = "any"
    return found


@pytest.fixture
def client(tmp_path: Path, settings: config.Judge) -> Iterator[TestClient]:
    file_token(tmp_path, "plain", KERNEL)
    file_token(tmp_path, "cpf", KERNEL, worker=1, packet="cpf-tool+lang-skills")
    file_token(tmp_path, "python", KERNEL, worker=2, language="python")
    seeds = tmp_path / "seeds.json"
    seeds.write_text(json.dumps({"first": 1, "second": 2, "third": 3}))
    options = ServeOptions(tmp_path, record=True, seeds=seeds, tokens=tmp_path / "fused-tokens")
    office = make_office(options, settings, config.Sizes("tiny", 2**18))
    with TestClient(create_app(office), headers={"Authorization": "Bearer plain"}) as session:
        yield session


def ask(client: TestClient, path: str, token: str = "plain", **query: Any) -> Any:
    header = {"Authorization": f"Bearer {token}"}
    return client.get(path, params={"rank": 0, **query}, headers=header)


def test_a_task_says_all_that_is_needed_to_begin(client: TestClient) -> None:
    told = ask(client, f"/task/{KERNEL}").json()
    assert told["signature"].startswith("void tsvc_2_s311_fp64(")
    assert "def tsvc_2_s311(" in told["reference_numpy"]
    assert (told["rtol"], told["atol"]) == (1e-9, 1e-11)
    assert (told["preset"], told["baseline"], told["input_mode"]) == ("tiny", "c", "any")
    assert "m" in told["shared"]["libraries"]
    python = ask(client, f"/task/{KERNEL}", "python").json()
    assert python["signature"].startswith("def tsvc_2_s311(")
    assert ask(client, f"/task/{KERNEL}", language="fortran").json()["signature"].startswith("subroutine ")
    assert ask(client, f"/task/loop_level_reasoning/{KERNEL}").json()["kernel"] == KERNEL
    assert ask(client, "/task/ext_war_unit").status_code == 400
    assert ask(client, "/task/nothing").status_code == 404


def test_a_build_command_names_its_family_and_python_its_versions(client: TestClient) -> None:
    assert ask(client, "/build/c", compiler="llvm").json()["argv"][0] == "clang"
    assert ask(client, "/build/fortran", compiler="nvhpc").status_code == 400
    told = ask(client, "/build/python").json()
    assert set(told["versions"]) == {"python", "numpy", "numba"}


def test_the_parallel_form_is_for_setups_that_have_the_tool(client: TestClient) -> None:
    assert ask(client, f"/canonical_parallel_form/{KERNEL}").status_code == 404
    told = ask(client, f"/canonical_parallel_form/{KERNEL}", "cpf").json()
    assert "#pragma omp parallel for" in told["source"]
    (loop,) = told["loops"]
    assert (loop["parallel"], loop["index"], "reduction" in loop["reason"]) == (True, "i", True)
    fortran = ask(client, f"/canonical_parallel_form/{KERNEL}", "cpf", language="fortran").json()
    assert "!$omp parallel do" in fortran["source"]


@pytest.fixture
def search() -> Iterator[tuple[str, list[Any]]]:
    """A search service that answers as its query says, and the requests it saw."""
    seen: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append(body)
            said = {"broken": b"no json", "list": b"[1]"}.get(body["query"], b'{"results": [{"url": "u"}]}')
            self.send_response(500 if body["query"] == "fail" else 200)
            self.end_headers()
            self.wfile.write(b"x" * (3 << 20) if body["query"] == "huge" else said)

        def log_message(self, *args: object) -> None:
            """Nothing to log."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", seen
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_search_is_relayed_or_its_failure_told(
    client: TestClient, settings: config.Judge, search: tuple[str, list[Any]]
) -> None:
    def cause(body: dict[str, Any]) -> tuple[int, str]:
        answer = client.post("/search", json=body)
        return answer.status_code, answer.json()["cause"]

    assert cause({"query": "x"}) == (502, "not_configured")
    settings.service.search_url = search[0]
    told = client.post("/web-search", json={"query": "loops", "context": "c", "limit": 3})
    assert told.json() == {"results": [{"url": "u"}]}
    assert search[1] == [{"query": "loops", "context": "c", "limit": 3}]
    assert cause({"query": "fail"}) == (502, "status")
    assert cause({"query": "broken"}) == (502, "not_json")
    assert cause({"query": "list"}) == (502, "not_json")
    assert cause({"query": "huge"}) == (502, "too_large")
    settings.service.search_url = "http://127.0.0.1:9/"
    assert cause({"query": "x"})[0] == 502
    for wrong in ({}, {"query": ""}, {"query": "x", "limit": 21}, {"query": "x", "limit": 0}, {"query": 3}):
        assert client.post("/search", json=wrong).status_code == 400


SOURCE = (
    "#include <stdint.h>\n"
    "void tsvc_2_s311_fp64(const double *a, double *sum_out, const int64_t n, uint8_t *w, const int64_t s) "
    "{{ double t = 0; for (int64_t i = 0; i < n; i++) t += a[i]; sum_out[0] = t {more}; }}\n"
)


def score(client: TestClient, more: str = "", **fields: Any) -> Any:
    body = {"kernel": KERNEL, "language": "c", "rank": 0, "source": SOURCE.format(more=more), **fields}
    return client.post("/score", json=body)


def test_a_score_tells_times_of_every_reference_and_what_was_not_used(client: TestClient) -> None:
    told = score(client, build=["-O2"]).json()
    assert told["correct"] is True, told
    assert told["build_ignored"] == ["-O2"]
    assert set(told["baselines"]) == {"c"}
    assert told["speedups"]["c"] == pytest.approx(told["baselines"]["c"] / told["native_ns"])
    assert "judge_fault" not in told
    assert [cell["reason"] for cell in told["cells"]] == ["", ""]


def test_a_wrong_answer_is_told_by_its_run_index_and_own_value(client: TestClient) -> None:
    told = score(client, "+ 1").json()
    assert (told["correct"], told["status"]) == (False, "incorrect")
    assert "rep-verify[" in told["detail"]
    broken = score(client, "+ nonsense").json()
    assert (broken["build_ok"], broken["status"]) == (False, "build_error")
    assert "nonsense" in broken["build_log"]


def test_a_node_that_is_not_ready_is_the_judges_fault_and_no_business_of_the_agents(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_ready(*args: object) -> None:
        raise JudgeFault(NODE)

    monkeypatch.setattr(grade_under, "submit_grade", not_ready)
    body = {"kernel": KERNEL, "rank": 0, "source": SOURCE.format(more=""), "request_id": "r"}
    told = client.post("/submit", json=body).json()
    assert told == {"correct": "no", "request_id": "r", "judge_fault": True}
    shard = tmp_path / "judge" / "rank-0" / "hpcagent_bench0.db"
    with contextlib.closing(sqlite3.connect(shard)) as conn:
        found = conn.execute("SELECT kind, status, correct, reason FROM grades").fetchall()
    assert found == [("submit", "score_error", None, NODE)]
    monkeypatch.undo()
    assert client.post("/submit", json=body).json() == {"correct": "yes", "request_id": "r"}


@pytest.fixture
def verdict(client: TestClient, settings: config.Judge) -> Verdict:
    """An accepted grade, to be changed into others."""
    context = client.app.state.office.desk.context  # type: ignore[attr-defined]
    kernel = spec.load(KERNEL)
    return grade_under.score_grade(context, Submission(kernel, "c", SOURCE.format(more="")))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"status": "overfit", "reason": "size_class_sweep: h3 normal seed 77: a[3] = 5"}, "held-out case"),
        ({"status": "incorrect", "reason": "independent_verify: seed 77 differs"}, "independent_verify"),
        ({"status": "score_error", "reason": NODE + " seed 77", "fault": True}, "could not grade"),
        ({"status": "ok", "solved": False, "reason": "every input is suspect: above 77 GB/s"}, "credited"),
        ({"status": "incorrect", "reason": "input 1 (odd): rep-verify[run 2] a[3] = 5"}, "rep-verify[run 2]"),
        ({"status": "incorrect", "reason": "sanitizer: heap-buffer-overflow"}, "heap-buffer-overflow"),
    ],
)
def test_reasons_are_told_without_what_is_hidden(verdict: Verdict, change: dict[str, Any], told: str) -> None:
    changed = dataclasses.replace(verdict, **change)
    for body in (answers.score_answer(changed), answers.submit_answer(changed, "r", "full")["grade"]):
        assert told in body["detail"]
        assert "77" not in json.dumps(body["detail"])
        assert (body.get("judge_fault"), body["harness_fault"]) == (changed.fault or None, changed.fault)


def test_a_number_that_is_none_becomes_null() -> None:
    assert [answers.finite(value) for value in (1.5, math.nan, math.inf, -math.inf, None)] == [
        1.5,
        None,
        None,
        None,
        None,
    ]
