"""The judge's API fuzzed from its own OpenAPI document: it never fails, hangs or tells what it must not."""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import integers
from judge_rig import Judge, file_token
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from hpcagent_bench import translators
from hpcagent_bench.corpus import spec

KERNEL = "tsvc_2_vtvtv"
TOKEN = "fuzz"
SECRETS = {"first": 4611686018427387847, "second": 3037000499976049692, "third": 2862933555777941757}
CANARY = "canary-91d4e6"
ROUTES = {
    "/health",
    "/baseline/{kernel}",
    "/build/{language}",
    "/canonical_parallel_form/{kernel}",
    "/task/{kernel}",
    "/score",
    "/submit",
    "/profile",
    "/search",
}
EXAMPLES = 25
"""Generated calls a route and kind: most are refused at once, the others are small grades."""

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)


class Fuzzed:
    """A judge with canaries in everything it alone may read, and all that it answered."""

    def __init__(self, folder: Path) -> None:
        file_token(folder, TOKEN, KERNEL, "multi", packet="cpf-tool")
        file_token(folder, CANARY, KERNEL, "multi", worker=1)
        shared = folder / "shared" / "tasks"
        shared.mkdir(parents=True)
        (folder / "secret.txt").write_text(CANARY)
        self.judge = Judge(
            folder,
            settings={"service.input_mode": "any", "service.profile_timeout_s": 5.0},
            seeds={**SECRETS, "note": CANARY},
        )
        self.said: list[str] = []
        self.codes: Counter[tuple[str, int]] = Counter()
        self.source = translators.emit(spec.load(KERNEL), "c")
        self._plant()
        self.schema = schemathesis.openapi.from_url(f"{self.judge.url}/openapi.json")

    def _plant(self) -> None:
        """A grade in the database whose source is a canary, by another worker of the job."""
        answer = self.judge.post("/submit", CANARY, KERNEL, f"/* {CANARY} */ nonsense", request_id="planted")
        assert answer.json()["correct"] == "no"

    def call(self, case: Any, steer: int) -> None:
        """One generated call: answered in time, as documented, without a secret.

        ``steer`` makes it less likely to be refused: 0 leaves it as it is, 1 names the worker's kernel and
        the right rank, 2 also language and one delivery, 3 sends source that builds.
        """
        if steer:
            self._steer(case, steer)
        response = case.call(
            base_url=self.judge.url, timeout=60, headers={"Authorization": f"Bearer {TOKEN}"}
        )
        self.said.append(response.text)
        self.codes[case.operation.path, response.status_code] += 1
        if response.status_code in (502, 503) and response.json().get("cause"):
            return  # what this host or setup does not have is said so
        case.validate_response(response, checks=CHECKS)

    def _steer(self, case: Any, steer: int) -> None:
        if isinstance(case.path_parameters, dict) and "kernel" in case.path_parameters:
            case.path_parameters["kernel"] = KERNEL
        if case.method == "GET" and case.operation.path != "/health":
            case.query = {**(case.query or {}), "rank": "0"}
        if not isinstance(case.body, dict) or case.operation.path == "/search":
            return
        case.body.update(kernel=KERNEL, rank=0)
        if steer > 1:
            case.body["language"] = "c"
            for name in ("source_file", "library"):
                case.body.pop(name, None)
            case.body["source"] = self.source if steer > 2 else str(case.body.get("source"))


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    made = Fuzzed(tmp_path_factory.mktemp("job"))
    yield made
    made.judge.end()


def test_every_route_is_documented_with_its_answers(fuzzed: Fuzzed) -> None:
    document = httpx.get(f"{fuzzed.judge.url}/openapi.json").json()
    assert set(document["paths"]) == ROUTES
    for operations in document["paths"].values():
        for operation in operations.values():
            assert "422" not in operation["responses"]
            for answer in operation["responses"].values():
                assert "schema" in answer["content"]["application/json"]
    for route in ("/score", "/submit", "/profile", "/search"):
        body = document["paths"][route]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert body["properties"]


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "broken"])
@pytest.mark.parametrize("route", sorted(ROUTES))
def test_generated_calls_never_break_a_route(fuzzed: Fuzzed, route: str, mode: GenerationMode) -> None:
    method = "POST" if route in ("/score", "/submit", "/profile", "/search") else "GET"
    operation = fuzzed.schema[route][method]
    if mode is GenerationMode.NEGATIVE and route == "/health":
        pytest.skip("nothing about it can be wrong")

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), steer=integers(0, 3))
    def calls(case: Any, steer: int) -> None:
        fuzzed.call(case, steer)

    calls()
    assert httpx.get(f"{fuzzed.judge.url}/health", timeout=30).json()["status"] == "ok"


def test_nothing_that_was_said_holds_a_secret(fuzzed: Fuzzed) -> None:
    """After everything above: no seed, no planted word of seeds, tokens, files or the database."""
    asked = httpx.get(f"{fuzzed.judge.url}/openapi.json").text
    everything = "\n".join([*fuzzed.said, asked])
    for route in ("/score", "/submit", "/profile"):  # much was refused, and something was graded
        assert fuzzed.codes[route, 400] > 0
        assert fuzzed.codes[route, 200] > 0
    for secret in (CANARY, *(str(seed) for seed in SECRETS.values()), str(fuzzed.judge.run_dir)):
        assert secret not in everything


def test_the_judge_still_grades_and_its_database_is_whole(fuzzed: Fuzzed) -> None:
    assert fuzzed.judge.post("/submit", TOKEN, KERNEL).json()["correct"] == "yes"
    with contextlib.closing(sqlite3.connect(f"file:{fuzzed.judge.shard}?mode=ro", uri=True)) as conn:
        assert conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert conn.execute("SELECT count(*) FROM grades WHERE status = 'score_error'").fetchone() == (0,)
