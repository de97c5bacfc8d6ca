"""A request key of another worker, or of another request, brings back nobody else's answer."""

from __future__ import annotations

from attack_api import World, source

WRONG = source("for (int64_t i = 0; i < n; i++) a[i] = 0.5;")


def test_the_key_of_another_worker_gives_ones_own_grade(world: World) -> None:
    right, thief = world.worker(), world.worker()
    assert world.ask("/submit", right, source=source(), request_id="shared-key").json()["correct"] == "yes"
    assert world.ask("/submit", thief, source=WRONG, request_id="shared-key").json()["correct"] == "no"
    assert world.graded(thief)[0][:2] == ("submit", "incorrect")


def test_the_key_of_a_preview_is_not_the_answer_of_a_submission(world: World) -> None:
    token = world.worker("single")
    assert world.ask("/score", token, source=source(), request_id="preview").json()["correct"] is True
    answer = world.ask("/submit", token, source=WRONG, request_id="preview")
    assert answer.status_code in (400, 409) or answer.json()["correct"] == "no"
    assert ("submit", "ok") not in [row[:2] for row in world.graded(token)]


def test_twin_that_repeats_its_own_request_gets_the_same_answer_and_one_grade(world: World) -> None:
    token = world.worker("single")
    first = world.ask("/submit", token, source=source(), request_id="again")
    second = world.ask("/submit", token, source=source(), request_id="again")
    assert first.json() == second.json()
    assert [row[0] for row in world.graded(token)] == ["submit", "final"]
