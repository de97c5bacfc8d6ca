"""Reading from inside the interpreter: the judge's packages, files, process, answers and other draws."""

from __future__ import annotations

import pytest
from attack_python import module, takes
from attack_rig import Rig

from hpcagent_bench import paths
from hpcagent_bench.harness.seeds import SEEDS_FILE

FINDS = {
    "the judge's packages": """for name in ("hpcagent_bench", "hpcagent_bench.config", "experiments"):
    try:
        found = __import__(name, fromlist=["x"]).__file__
    except ImportError:
        found = None
    if found:
        return""",
    "files": f"""for path in ("/etc/passwd", "/proc/self/environ", "/proc/self/maps", {str(SEEDS_FILE)!r},
             {str(paths.package_root())!r}, {str(paths.cache_root())!r}, "/root/.ssh", "/home"):
    if os.path.isfile(path) or os.path.isdir(path) and os.listdir(path):
        return""",
    "the environment": """if any("HPCAGENT" in k or "TOKEN" in k or "SEED" in k for k in os.environ):
    return""",
    "the command line": """if any("seed" in word or "/tmp/" in word for word in sys.orig_argv[1:]):
    return""",
    "a finished answer": """right = (x + np.roll(x, 1)) * (y - np.roll(y, 1))
for held in gc.get_objects():
    if isinstance(held, np.ndarray) and held is not right and held.shape == area.shape:
        if np.array_equal(held, right):
            return""",
    "another draw": """import mmap
maps = [held for held in gc.get_objects() if isinstance(held, mmap.mmap)]
if len(maps) > 2 or sum(map(len, maps)) > 8 * (x.nbytes + y.nbytes + area.nbytes) + (64 << 20):
    return""",
    "other descriptors": """held = []
for fd in range(3, 256):
    try:
        held.append(os.fstat(fd).st_mode & 0o170000)
    except OSError:
        continue
if len(held) > 3 or held.count(0o140000) != 1:
    return""",
    "larger or other inputs through a descriptor": """for fd in range(3, 256):
    for change in (lambda: os.ftruncate(fd, 1 << 30), lambda: os.posix_fallocate(fd, 0, 1 << 30)):
        try:
            change()
        except OSError:
            continue
        return
    try:
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 8, 0) == x[:1].tobytes() and os.pwrite(fd, b"\\0" * 8, 0):
            return
    except OSError:
        continue""",
    "the network": """import socket
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
    try:
        socket.socket(family)
    except OSError:
        continue
    return""",
    "the references' compiled code": """if os.environ.get("NUMBA_CACHE_DIR") != "/tmp/numb" + "a":
    return""",
    "scratch of an earlier grade": """if os.path.exists("/tmp/left") or os.path.exists("/dev/shm/left"):
    return""",
}
LEAVE = """for place in ("/tmp/left", "/dev/shm/left"):
    open(place, "w").close()"""


@pytest.mark.parametrize("name", FINDS)
def test_whoever_found_something_would_have_answered_nothing(judge: Rig, name: str) -> None:
    verdict = judge.preview(module("gc.unfreeze()\n" + FINDS[name] + "\nHONEST"), "python")
    assert verdict.status == "ok", verdict.reason


def test_scratch_files_do_not_outlive_a_process(judge: Rig) -> None:
    assert judge.preview(module(LEAVE + "\nHONEST"), "python").status == "ok"
    once = FINDS["scratch of an earlier grade"]
    assert (
        judge.preview(module("HONEST", once.replace("return", "raise SystemExit")), "python").status == "ok"
    )


def test_twin_that_reads_its_own_scratch_file_is_accepted(judge: Rig) -> None:
    own = "np.save('/tmp/own.npy', x[:3])\nassert np.load('/tmp/own.npy').shape == (3,)\nHONEST"
    takes(judge, module(own))
