"""The one error class for mistakes a user can mend: printed in one line, exit code 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A mistake the user can mend: what is wrong, and what to type next.

    Printed as one line without a traceback; the process ends with exit code 2.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """The choice most like ``name``, or None when none is close."""
    found = difflib.get_close_matches(str(name), list(choices), n=1, cutoff=0.5)
    return found[0] if found else None


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """A hint that names the nearest valid choice, else all of them."""
    known = sorted(choices)
    close = nearest(name, known)
    if close:
        return f"did you mean '{close}'?"
    return f"valid: {', '.join(known)}" if known else ""
