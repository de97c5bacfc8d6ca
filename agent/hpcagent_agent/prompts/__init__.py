"""The text an agent starts from, where the launcher gives none of its own."""

from __future__ import annotations

from pathlib import Path
from string import Template

SUBMISSION_POLICY = {
    "multi": "You may score and submit as often as you like; the last verified submission counts.",
    "single": "You may score as often as you like, but submit only once: /submit ends the episode.",
    "blind": "There is no /score here. You may submit once: /submit ends the episode.",
}


def render(kernel: str, language: str, mode: str, timeout_s: float | None) -> str:
    """The prompt of one episode; the budget it names is 90 % of the real one."""
    if timeout_s is None:
        budget = "No time limit is imposed."
    else:
        budget = f"Finish within {int(0.9 * timeout_s)} seconds."
    text = (Path(__file__).parent / "prompt.md").read_text(encoding="utf-8")
    policy = SUBMISSION_POLICY[mode]
    return Template(text).substitute(kernel=kernel, language=language, policy=policy, budget=budget)
