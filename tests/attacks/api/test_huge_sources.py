"""Sources as large as the judge takes and larger: cut off, compiled within limits, or graded."""

from __future__ import annotations

from attack_api import World, source

LIMIT = 8 << 20


def test_a_source_over_the_limit_is_400_and_grades_nothing(world: World) -> None:
    token = world.worker()
    answer = world.ask("/submit", token, source=source() + "/*" + "x" * LIMIT + "*/")
    assert answer.status_code == 400
    assert "over 8 MB" in answer.json()["error"]
    assert world.graded(token) == []


def test_a_source_that_only_its_escapes_make_large_is_400(world: World) -> None:
    answer = world.ask("/score", world.worker(), source=source() + "/*" + "\x01" * (LIMIT // 5) + "*/")
    assert answer.status_code == 400


def test_one_line_of_megabytes_is_graded(world: World) -> None:
    text = source(
        before='static const char *const text = "' + "x" * (LIMIT // 2) + '";\n'
        "__attribute__((unused)) static int first(void) { return *text; }"
    )
    assert world.ask("/score", world.worker(), source=text).json()["correct"] is True


def test_twin_just_under_the_limit_is_graded_and_kept_whole(world: World) -> None:
    text = source() + "/*" + "x" * (LIMIT - 4000) + "*/"
    token = world.worker()
    assert world.ask("/score", token, source=text).json()["correct"] is True
    kept = world.rows("SELECT max(length(text)) FROM sources")
    assert kept == [(len(text),)]
