"""Which commit a grade names."""

from __future__ import annotations

import pytest

from hpcagent_bench.harness import recording


@pytest.mark.parametrize(("told", "recorded"), [("12e4567", "12e4567"), ("", None)])
def test_frozen_code_names_the_commit_it_was_taken_from(
    told: str, recorded: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(recording.COMMIT, told)
    recording.commit.cache_clear()
    assert recording.commit() == recorded
    recording.commit.cache_clear()
