"""Which value draw each call runs on, so that no input repeats within a measurement (scoring.md 1.3)."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from hpcagent_bench import protocols
from hpcagent_bench.corpus import fuzz

POOL_SIZE = max(protocol.calls for protocol in protocols.REGISTRY.values())
"""Draws of a pool: six, one for each call of the credited protocol, so that none repeats in a measurement."""

CANONICAL = -1
"""Pool index of an input's base draw, graded untimed after the timed runs."""


def salted(seed: int, nonce: int) -> int:
    """A route seed mixed with a per-call nonce, so that no two submits grade the same inputs."""
    return fuzz.pool_seed(seed, "salt", "", "", str(nonce), 0)


def fresh_nonce() -> int:
    """63 bits from the operating system."""
    return secrets.randbits(63)


def pool_seeds(base: int, kernel: str, preset: str, datatype: str, cell: str) -> tuple[int, ...]:
    """The value seeds of one (kernel, preset, datatype, cell), derived from the route's seed."""
    return tuple(fuzz.pool_seed(base, kernel, preset, datatype, cell, i) for i in range(POOL_SIZE))


def canonical_seed(base: int, kernel: str, preset: str, datatype: str, cell: str) -> int:
    """The value seed of the input's base draw; its structural arrays serve every draw of the input."""
    return fuzz.pool_seed(base, kernel, preset, datatype, cell, CANONICAL)


def timed_seeds(pool: Sequence[int], calls: int, offset: int) -> tuple[int, ...]:
    """Seeds of calls 0..calls-1: call i runs on pool draw (offset + i) mod len(pool), on both sides."""
    return tuple(pool[(offset + i) % len(pool)] for i in range(calls))
