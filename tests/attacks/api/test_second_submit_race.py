"""Several submissions at once where one is allowed: the first is graded, the others are 409."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from attack_api import World, source


@pytest.mark.parametrize("mode", ["single", "blind"])
def test_only_one_of_six_racing_submissions_is_graded(world: World, mode: str) -> None:
    token = world.worker(mode)
    with ThreadPoolExecutor(6) as pool:
        codes = list(
            pool.map(lambda k: world.ask("/submit", token, source=f"broken {k}").status_code, range(6))
        )
    assert sorted(codes) == [200, 409, 409, 409, 409, 409]
    assert [row[:2] for row in world.graded(token) if row[0] == "submit"] == [("submit", "build_error")]


def test_a_spent_submission_stays_spent_under_the_other_route_names(world: World) -> None:
    token = world.worker("single")
    assert world.ask("/submit", token, source="broken").status_code == 200
    for route in ("/submit", "/oracle"):
        answer = world.ask(route, token, source=source(), optimizer="promoted-unsubmitted")
        assert answer.status_code == 409
        assert "already graded" in answer.json()["error"]


def test_a_worker_of_many_submissions_has_each_graded(world: World) -> None:
    token = world.worker("multi")
    with ThreadPoolExecutor(3) as pool:
        codes = list(
            pool.map(lambda k: world.ask("/submit", token, source=f"broken {k}").status_code, range(3))
        )
    assert codes == [200, 200, 200]
    assert [row[0] for row in world.graded(token) if row[0] != "final"] == ["submit"] * 3
