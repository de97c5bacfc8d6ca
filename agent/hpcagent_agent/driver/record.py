"""An episode's ``tokens.json``: one object, whatever the end (names of scoring.md section 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hpcagent_agent.driver.attempts import Ending
from hpcagent_agent.driver.settings import Problem
from hpcagent_agent.driver.token_cost import Usage


@dataclass
class Attempt:
    """What one attempt was and cost; times in UTC epoch milliseconds."""

    number: int
    start_ms: int
    end_ms: int = 0
    ending: Ending = field(default_factory=lambda: Ending(1, "error", True, None, ""))
    usage: Usage = field(default_factory=Usage)


def tokens_record(
    problem: Problem, worker: int, attempts: Sequence[Attempt], cancelled: bool
) -> dict[str, Any]:
    """The final attempt's components; earlier attempts go to the crashed totals, never added (T2)."""
    final, crashed = attempts[-1], attempts[:-1]
    usage = final.usage
    return {
        **_identity(problem, worker),
        "returncode": final.ending.returncode,
        "result": final.ending.result,
        "detail": final.ending.detail,
        "turns": final.ending.turns,
        "tokens": usage.billed,
        "tokens_fresh_input": usage.fresh_input,
        "tokens_cached_input": usage.cached_input,
        "tokens_output": usage.output,
        "tokens_thinking": None,
        "tokens_effective": usage.effective,
        "tokens_billed": usage.billed,
        "attempts": len(attempts),
        "tokens_effective_crashed": sum(a.usage.effective for a in crashed),
        "tokens_billed_crashed": sum(a.usage.billed for a in crashed),
        "final_attempt_start_ms": final.start_ms,
        "output_source": usage.output_source,
        "output_delta_shape": None,
        "compactions": usage.compactions,
        "wall_ms": final.end_ms - final.start_ms,
        "api_ms": None,
        "cancelled": cancelled,
    }


def fault(problem: Problem, worker: int, error: Exception) -> dict[str, Any]:
    """The record of an episode the driver itself could not run: nothing was counted."""
    detail = f"{type(error).__name__}: {error}"[:500]
    return {**_identity(problem, worker), "returncode": 1, "result": "driver_error", "detail": detail}


def _identity(problem: Problem, worker: int) -> dict[str, Any]:
    return {
        "problem": problem.id,
        "setup": problem.setup,
        "job": problem.job,
        "rep": problem.rep,
        "slot": problem.slot,
        "kernel": problem.kernel,
        "worker": problem.worker if problem.worker is not None else worker,
        "episode_id": problem.episode_id,
    }
