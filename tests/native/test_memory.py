"""Layouts and sealed draws."""

from __future__ import annotations

import fcntl
import mmap
import os
from pathlib import Path

import numpy as np
import pytest

from hpcagent_bench.harness.blocks import Pool
from hpcagent_bench.harness.memory import Draw, Outputs, Start, layout_for, pack
from tests.native.native_kernels import BINDING, draw


def test_arrays_are_page_aligned_and_do_not_overlap() -> None:
    shapes = {"x": (513,), "y": (0, 4)}
    layout = layout_for(BINDING, shapes, {"x": "float64", "y": "float32", "N": "int64"})
    assert layout.names == ("x", "y")
    assert layout.offsets == {"x": 0, "y": 8192}  # 513 doubles are 4104 bytes: two pages
    assert (layout.nbytes("x"), layout.nbytes("y"), layout.total) == (4104, 0, 8192)
    assert layout.part(["y"]).total == 4096  # never empty: a block has at least a page


def test_a_sealed_draw_cannot_be_changed_by_any_way_in() -> None:
    made = draw()
    before = made.arrays["x"].copy()
    kept = made.arrays["x"]
    made.seal()
    with pytest.raises(ValueError, match="read-only"):
        made.arrays["x"][0] = 1
    with pytest.raises(PermissionError):
        os.pwrite(made.fd, b"x", 0)
    with pytest.raises(PermissionError):
        mmap.mmap(made.fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    with pytest.raises(PermissionError):
        os.open(f"/proc/self/fd/{made.fd}", os.O_RDWR | os.O_TRUNC)
    for size in (0, 1 << 20):
        with pytest.raises(PermissionError):
            os.ftruncate(made.fd, size)
    with pytest.raises(PermissionError):
        fcntl.fcntl(made.fd, fcntl.F_ADD_SEALS, 0)
    assert np.array_equal(kept, before)
    made.close()


def test_views_outlive_the_draw() -> None:
    made = draw()
    made.seal()
    kept = made.arrays["y"]
    made.close()
    assert made.fd == -1
    assert kept.sum() == 1003 * 1004 / 2  # the memory goes with its last view, not before


def test_memory_comes_back() -> None:
    def shared_kb() -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("RssShmem:")).split()[1])

    layout = pack({"x": (64 << 17,)}, {"x": "float64"})
    start = shared_kb()
    for _ in range(4):
        made = Draw.allocate(layout)
        made.arrays["x"][:] = 1
        made.seal()
        made.close()
        assert shared_kb() - start < 1 << 10


def test_output_buffers_cannot_be_pulled_away() -> None:
    outputs = Outputs(pack({"y": (8,)}, {"y": "int64"}))
    with pytest.raises(PermissionError):
        os.ftruncate(outputs.fd, 0)
    os.pwrite(outputs.fd, (7).to_bytes(8, "little"), 8)
    assert outputs.arrays["y"].tolist() == [0, 7, 0, 0, 0, 0, 0, 0]
    assert not outputs.arrays["y"].flags.writeable
    outputs.close()


def test_a_pool_hands_the_same_memory_out_again_and_outputs_zeroed() -> None:
    pool = Pool()
    layout = pack({"y": (1000,)}, {"y": "int64"})
    first = Draw.allocate(layout, pool)
    first.arrays["y"][:] = 7
    serial = first.block.serial
    first.close()
    again = Draw.allocate(layout, pool)
    assert (again.block.serial, again.arrays["y"].flags.writeable) == (serial, True)
    outputs = Outputs(layout, pool)
    os.pwrite(outputs.fd, b"\xff" * 8000, 0)
    fd = outputs.fd
    outputs.close()
    reused = Outputs(layout, pool)
    assert reused.fd == fd
    assert not reused.arrays["y"].any()


def test_a_pool_gives_up_what_is_far_too_large() -> None:
    pool = Pool()
    large = pool.take("draw", Pool.WASTE)
    pool.give("draw", large)
    small = pool.take("draw", 4096)
    assert small.total < 1 << 20
    assert large.fd == -1
    small.close()


def test_pooled_draw_is_writable_by_nobody_else_even_between_draws() -> None:
    pool = Pool()
    made = Draw.allocate(pack({"y": (1000,)}, {"y": "int64"}), pool)
    with pytest.raises(PermissionError):
        os.pwrite(made.fd, b"x", 0)
    with pytest.raises(PermissionError):
        mmap.mmap(os.open(f"/proc/self/fd/{made.fd}", os.O_RDWR), 4096)
    made.arrays["y"][:] = 3
    assert os.pread(made.fd, 8, 0) == (3).to_bytes(8, "little")


def test_a_new_block_takes_the_place_of_one_that_is_too_small() -> None:
    pool = Pool()
    small = [pool.take("outputs", 10 * 4096) for _ in range(2)]
    for block in small:
        pool.give("outputs", block)
    large = [pool.take("outputs", 100 * 4096) for _ in range(2)]
    assert [block.fd for block in small] == [-1, -1]
    for block in large:
        pool.give("outputs", block)
    assert pool.take("outputs", 20 * 4096) in large
    pool.close()


def test_slack_of_a_block_is_reserved_and_not_held() -> None:
    pool = Pool()
    block = pool.take("outputs", 64 << 20)
    assert block.total > 64 << 20
    assert os.fstat(block.fd).st_blocks == 0  # nothing has been written yet
    block.fill(0, 64 << 20)
    assert os.fstat(block.fd).st_blocks * 512 == 64 << 20
    block.close()


def test_outputs_have_a_guard_behind_every_array_and_the_workspace() -> None:
    asked = pack({"y": (512,), "z": (3,)}, {"y": "float64", "z": "int8"})  # y fills its page
    held = Outputs(asked, workspace_bytes=100)
    held.begin(Start(asked, lambda arrays: arrays["y"].fill(7)), 100)
    assert held.layout.offsets == {"y": 0, "z": 2 * 4096}
    assert held.workspace_offset == 4 * 4096
    assert held.overrun() == ""
    for name, at in {"y": 4096, "z": 2 * 4096 + 3, "workspace": 4 * 4096 + 100}.items():
        before = os.pread(held.fd, 1, at)
        os.pwrite(held.fd, b"!", at)
        assert held.overrun() == name
        os.pwrite(held.fd, before, at)
        os.pwrite(held.fd, b"!", at - 1)  # the last byte of its own
    assert held.overrun() == ""
    held.close()


def test_a_workspace_is_zeroed_before_every_call_and_may_shrink() -> None:
    asked = pack({"y": (1,)}, {"y": "float64"})
    held = Outputs(asked, workspace_bytes=5000)
    for nbytes in (5000, 100, 5000):
        held.begin(Start(asked, lambda arrays: None), nbytes)
        assert os.pread(held.fd, nbytes, held.workspace_offset) == b"\0" * nbytes
        assert os.pread(held.fd, 1, held.workspace_offset + nbytes) != b"\0"
        os.pwrite(held.fd, b"x" * nbytes, held.workspace_offset)
        assert held.overrun() == ""
    held.close()
