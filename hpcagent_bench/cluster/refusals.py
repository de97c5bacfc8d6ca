"""A request answered without grading."""

from __future__ import annotations

from typing import Any


class Refused(Exception):
    """HTTP code and one line, with extra fields for some codes; ``retry_s`` becomes Retry-After."""

    def __init__(self, code: int, error: str, *, retry_s: int | None = None, **extra: Any) -> None:
        super().__init__(error)
        self.code = code
        self.headers = {} if retry_s is None else {"Retry-After": str(retry_s)}
        self.body: dict[str, Any] = {"error": error, **extra}
