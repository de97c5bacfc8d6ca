"""Speaking for another worker: without a token, with a made-up one, with the name of a token's file."""

from __future__ import annotations

import hashlib

import httpx
import pytest
from attack_api import KERNEL, World, source

FORGED = {
    "none": "",
    "empty": "Bearer",
    "guessed": "Bearer " + "f" * 64,
    "another scheme": "Basic {token}",
    "path": "Bearer ../fused-tokens/{file}",
    "half": "Bearer {half}",
    "two": "Bearer {token} {token}",
    "spelled large": "Bearer {large}",
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_token_is_403_and_grades_nothing(world: World, kind: str) -> None:
    token = world.worker().replace("0", "a", 60)
    (world.run_dir / "fused-tokens" / hashlib.sha256(token.encode()).hexdigest()).write_text("{}")
    header = FORGED[kind].format(
        token=token, file=hashlib.sha256(token.encode()).hexdigest(), half=token[:32], large=token.upper()
    )
    before = world.rows("SELECT count(*) FROM grades")
    answer = httpx.post(
        world.url + "/submit",
        json={"kernel": KERNEL, "rank": 0, "source": source()},
        headers={"Authorization": header},
        timeout=60,
    )
    assert answer.status_code == 403
    assert "token" in answer.json()["error"]
    assert world.rows("SELECT count(*) FROM grades") == before


def test_the_name_of_a_token_file_is_no_token(world: World) -> None:
    token = world.worker()
    listed = hashlib.sha256(token.encode()).hexdigest()
    assert world.ask("/score", listed, source=source()).status_code == 403


def test_a_body_cannot_name_another_episode_or_setup(world: World) -> None:
    mine, other = world.worker(), world.worker()
    answer = world.ask(
        "/score",
        mine,
        source="broken",
        episode_id=world.label(other),
        setup="t-c-other",
        study="other",
        optimizer="promoted-unsubmitted",
    )
    assert answer.status_code == 200
    assert [row[:2] for row in world.graded(mine)] == [("score", "build_error")]
    assert world.graded(other) == []


def test_another_workers_kernel_is_refused(world: World) -> None:
    answer = world.ask("/score", world.worker(), kernel="tsvc_2_s311", source=source())
    assert answer.status_code == 400
    assert "not this worker's" in answer.json()["error"]


def test_the_holder_of_a_token_is_graded_under_its_own_episode(world: World) -> None:
    token = world.worker()
    assert world.ask("/score", token, source=source()).json()["correct"] is True
    assert world.graded(token) == [("score", "ok", "")] or world.graded(token)[0][:2] == ("score", "ok")
