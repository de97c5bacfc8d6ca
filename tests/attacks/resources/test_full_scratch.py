"""Filling every place a child can write: each is small, in memory, and gone with the child."""

from __future__ import annotations

import pytest
from attack_rig import Rig, version

from hpcagent_bench import seal

FILL = """static long fill(const char *folder, long most) {
    static char block[1 << 20];
    long written = 0;
    signal(SIGXFSZ, SIG_IGN);
    for (int k = 0; written < most; k++) {
        char name[64]; snprintf(name, sizeof name, "%s/bomb-%d", folder, k);
        int fd = open(name, O_CREAT | O_WRONLY, 0600);
        if (fd < 0) break;
        long here = 0, got = 0;
        while (here < (8 << 20) && (got = write(fd, block, sizeof block)) > 0) here += got;
        written += here;
        close(fd);
        if (!here) break;
    }
    return written;
}"""
ROOM = 2 * seal.SCRATCH_BYTES


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
def test_scratch_ends_at_its_size(judge: Rig, folder: str) -> None:
    """Accepted is who could not write twice the room; who could would have answered nothing."""
    body = f'if (fill("{folder}", {ROOM}) >= {ROOM}) return; HONEST;'
    judge.accepts(version(body, FILL))


@pytest.mark.parametrize(
    "folder", ["/", "/dev", "/grading", "/usr", "/etc", "/run", "/dev/pts", "/dev/mqueue"]
)
def test_no_other_place_can_be_written(judge: Rig, folder: str) -> None:
    judge.accepts(version(f'if (fill("{folder}", 1)) return; HONEST;', FILL))


def test_a_file_ends_at_its_size(judge: Rig) -> None:
    one = """int fd = open("/tmp/bomb", O_CREAT | O_WRONLY, 0600); signal(SIGXFSZ, SIG_IGN);
    if (ftruncate(fd, 1L << 30) == 0 || pwrite(fd, area, 8, 1L << 30) > 0) return; HONEST;"""
    judge.accepts(version(one))


def test_twin_with_a_scratch_file_is_accepted(judge: Rig) -> None:
    judge.accepts(version('if (fill("/tmp", 1) < 1) return; unlink("/tmp/bomb-0"); HONEST;', FILL))
