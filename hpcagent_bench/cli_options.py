"""Options that several verbs of the command line read alike."""

from __future__ import annotations

from hpcagent_bench.errors import UserError


def core_list(text: str) -> tuple[int, ...]:
    """``--cores``: numbers separated by commas; empty text is no core."""
    try:
        return tuple(int(part) for part in text.split(",") if part)
    except ValueError:
        raise UserError(
            f"--cores {text}: not a list of core numbers", "write for example --cores 2,3"
        ) from None
