"""For submissions that eat resources: small limits, and nothing of them left on this machine afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import attack_rig
import pytest


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[attack_rig.Rig]:
    """A judge that gives a call a second and a quarter of a GiB, and has graded an honest source."""
    with attack_rig.rig() as made:
        made.context.settings.timeouts.kernel_s_override = 1.0
        made.context.settings.timeouts.guillotine_floor_s = 0.2
        made.context.settings.limits.kernel_memory_gb = 0.25
        made.context.settings.limits.thread_stack_mb = 8
        made.context.work = tmp_path_factory.mktemp("grades")
        made.accepts(attack_rig.honest())
        yield made


def family() -> dict[int, str]:
    """State of this process and all that descend from it."""
    parents, states = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        parents[int(stat.parent.name)], states[int(stat.parent.name)] = int(fields[1]), fields[0]
    mine, more = {os.getpid()}, True
    while more:
        more = bool({pid for pid, parent in parents.items() if parent in mine} - mine)
        mine |= {pid for pid, parent in parents.items() if parent in mine}
    return {pid: states.get(pid, "") for pid in mine}


@pytest.fixture(autouse=True)
def nothing_left(judge: attack_rig.Rig) -> Iterator[None]:
    """No process, zombie, shared memory or scratch file stays behind once the next grade is made."""
    before = family()
    yield
    judge.serves()
    after = family()
    assert set(after) <= set(before)
    assert "Z" not in after.values()
    assert judge.context.work is not None
    assert list(judge.context.work.iterdir()) == []
    for folder in ("/dev/shm", "/tmp"):
        assert [path for path in Path(folder).iterdir() if path.name.startswith("bomb")] == []
