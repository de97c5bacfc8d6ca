"""Requests the judge refuses: the code and the one line of the contract, and it keeps serving."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from hpcagent_bench import config
from hpcagent_bench.cluster import identity
from hpcagent_bench.cluster.judge_service import create_app
from hpcagent_bench.cluster.serve import ServeOptions, make_office
from hpcagent_bench.errors import UserError

TOKEN = "a" * 64
SOURCE = "void tsvc_2_s311_fp64(void) {}"
GOOD = {"kernel": "tsvc_2_s311", "language": "c", "rank": 3, "source": SOURCE}


def file_token(run_dir: Path, token: str, mode: str = "single") -> None:
    folder = run_dir / "fused-tokens"
    folder.mkdir(exist_ok=True)
    body = {
        "setup": {"setup": "s", "study": "quickstart", "language": "c", "harness": "reference"},
        "episode": {"job": 7, "label": "s.n0.p0.w0", "kernel": "tsvc_2_s311"},
        "language": "c",
        "submission_mode": mode,
    }
    identity.token_file(folder, token).write_text(json.dumps(body))


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    (tmp_path / "shared").mkdir()
    file_token(tmp_path, TOKEN)
    file_token(tmp_path, "blind", "blind")
    options = ServeOptions(tmp_path, rank=3, record=True, tokens=tmp_path / "fused-tokens")
    office = make_office(options, config.Judge(), config.Sizes("tiny", 2**20))
    with TestClient(create_app(office), headers={"Authorization": f"Bearer {TOKEN}"}) as session:
        yield session


def without(key: str) -> dict[str, Any]:
    return {k: v for k, v in GOOD.items() if k != key}


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (without("kernel"), 400, "no kernel"),
        ({**GOOD, "kernel": "tsvc_2_s3111x"}, 404, "tsvc_2_s311"),
        ({**GOOD, "kernel": "ext_war_unit"}, 400, "not this worker's"),
        ({**GOOD, "language": "cobol"}, 400, "language is 'cobol'"),
        ({**GOOD, "language": "fortran"}, 400, "this worker's; it writes c"),
        ({**GOOD, "library": "/shared/x.so"}, 400, "exactly one of"),
        (without("source"), 400, "got none"),
        ({**without("source"), "library": "/shared/x.so"}, 400, "input_mode"),
        ({**GOOD, "source": 5}, 400, "not text"),
        (without("rank"), 400, "rank is None"),
        ({**GOOD, "rank": "x"}, 400, "rank is 'x'"),
        ({**GOOD, "rank": True}, 400, "rank is True"),
        ({**GOOD, "build": ["-lcuda"]}, 400, "-lcuda"),
        ({**GOOD, "build": "-O3"}, 400, "list of strings"),
        ({**GOOD, "workspace_bytes": -1}, 400, "workspace_bytes"),
        ({**GOOD, "workspace_bytes": 1 << 60}, 400, "workspace_bytes"),
        ([1, 2], 400, "list"),
    ],
)
def test_bad_request_is_refused_in_one_line(client: TestClient, body: Any, code: int, words: str) -> None:
    answer = client.post("/score", json=body)
    assert answer.status_code == code
    assert words in answer.json()["error"]
    assert "\n" not in answer.json()["error"]
    assert client.get("/health").status_code == 200


def test_other_rank_is_told_both_ranks_and_nothing_is_graded(client: TestClient) -> None:
    answer = client.post("/submit", json={**GOOD, "rank": 4})
    assert answer.status_code == 421
    assert (answer.json()["judge_rank"], answer.json()["requested_rank"]) == (3, 4)


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"\xff\xfe", b"[" * 100_000], ids=["empty", "cut", "bytes", "deep"]
)
def test_body_that_is_no_json(client: TestClient, raw: bytes) -> None:
    answer = client.post("/submit", content=raw)
    assert answer.status_code == 400
    assert "not JSON" in answer.json()["error"]


def test_huge_body_is_refused_with_and_without_its_length(client: TestClient) -> None:
    chunk = b" " * 2**20
    for content in (chunk * 50, (chunk for _ in range(50))):
        answer = client.post("/submit", content=content)
        assert answer.status_code == 400
        assert "over 8 MB" in answer.json()["error"]


@pytest.mark.parametrize("header", ["", "Bearer ", "Bearer wrong", "Basic " + TOKEN, "Bearer ../" + TOKEN])
def test_wrong_token_is_refused(client: TestClient, header: str) -> None:
    answer = client.post("/score", json=GOOD, headers={"Authorization": header})
    assert answer.status_code == 403
    assert "token" in answer.json()["error"]


def test_judge_of_a_job_does_not_start_without_its_tokens(tmp_path: Path) -> None:
    options = ServeOptions(tmp_path, record=True, tokens=tmp_path / "fused-tokens")
    with pytest.raises(UserError, match="fused-tokens: no such folder"):
        make_office(options, config.Judge(), config.Sizes("tiny", 2**20))
    assert list(tmp_path.iterdir()) == []


def test_judge_of_a_person_needs_no_token(tmp_path: Path) -> None:
    file_token(tmp_path, TOKEN)
    office = make_office(ServeOptions(tmp_path, rank=3), config.Judge(), config.Sizes("tiny", 2**20))
    with TestClient(create_app(office)) as session:
        assert "got none" in session.post("/score", json=without("source")).json()["error"]


def test_blind_worker_has_no_preview(client: TestClient) -> None:
    answer = client.post("/score", json=GOOD, headers={"Authorization": "Bearer blind"})
    assert answer.status_code == 403
    assert "/submit" in answer.json()["error"]


def test_recording_judge_refuses_public_seeds(client: TestClient) -> None:
    answer = client.post("/submit", json=GOOD)
    assert answer.status_code == 503
    assert answer.json()["error"] == "public_seeds"


def test_unknown_routes_and_languages(client: TestClient) -> None:
    assert client.get("/nothing").status_code == 404
    assert client.get("/build/cobol", params={"rank": 3}).status_code == 400
    assert client.get("/baseline/nothing", params={"rank": 3}).status_code == 404
    argv = client.get("/build/c", params={"rank": 3}).json()["argv"]
    assert argv[0] == "gcc"
    assert "-O3" in argv


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../fused-tokens/tsvc_2_s311.c", "link/tsvc_2_s311.c", "a.c"]
)
def test_source_file_stays_in_the_shared_folder(client: TestClient, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "tsvc_2_s311.c").write_text("secret")
    (tmp_path / "shared" / "link").symlink_to(outside)
    answer = client.post("/score", json={**without("source"), "source_file": name})
    assert answer.status_code == 400
    assert "secret" not in answer.text
