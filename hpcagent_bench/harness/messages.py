"""Frames between judge and grading child: one packet each on a SOCK_SEQPACKET pair, native byte order.

Every frame starts with a 32-bit kind and 32 further bits: in READY and DONE the floating-point modes that
the code left changed. The judge believes a child's frame only where it was expected, and a DONE only when it
repeats the number its GO carried.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hpcagent_bench.harness.memory import Layout, Outputs

if TYPE_CHECKING:
    from hpcagent_bench.toolchain.abi import Arg, Binding

HELLO, LOAD, READY, GO, DONE, FAIL = range(1, 7)
NEW_OUTPUTS, NEW_DRAW = 1, 2
IN_DRAW, IN_OUTPUTS = 0, 1
FRAME_MAX = 1 << 16
FP_MODES = {1: "flush-to-zero", 2: "denormals-are-zero", 4: "rounding", 8: "traps", 16: "precision"}

CLOCK_SKEWED = 32
"""Beside the modes: the child's own clock fell behind the kernel's, whose reading was taken instead."""

_HEAD = struct.Struct("=II")
_GO = struct.Struct("=IIQ")
_DONE = struct.Struct("=IIQQQ")
_LOAD = struct.Struct("=IIIIQQQQ")
_POINTER = struct.Struct("=QQQ")


def kind(frame: bytes) -> int:
    """The frame's kind, 0 for what is no frame."""
    return int(_HEAD.unpack_from(frame)[0]) if len(frame) >= _HEAD.size else 0


def fail_text(frame: bytes) -> str:
    """The reason a FAIL frame carries, in one printable line."""
    text = frame[_HEAD.size :].decode(errors="replace")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def go(nonce: int) -> bytes:
    """The call may start; ``nonce`` is unknown to the child until now."""
    return _GO.pack(GO, 0, nonce)


class Done(NamedTuple):
    """What a child says of its call."""

    nonce: int
    inside_ns: int
    cpu_ns: int
    fp_modes: str
    skewed: bool


def done(frame: bytes) -> Done | None:
    """A DONE frame, None when it is none."""
    if len(frame) != _DONE.size or kind(frame) != DONE:
        return None
    _, changed, nonce, inside_ns, cpu_ns = _DONE.unpack(frame)
    return Done(nonce, inside_ns, cpu_ns, fp_modes(frame), bool(changed & CLOCK_SKEWED))


def fp_modes(frame: bytes) -> str:
    """The floating-point modes that a READY or DONE frame says were changed."""
    bits = int(_HEAD.unpack_from(frame)[1])
    return ", ".join(name for bit, name in FP_MODES.items() if bits & bit)


def _scalar(arg: Arg, value: int | float) -> bytes:
    """The 8-byte slot of one scalar argument."""
    return np.asarray(value, dtype=arg.dtype).tobytes().ljust(8, b"\0")


def load(
    binding: Binding,
    draw: Layout,
    outputs: Outputs,
    scalars: Mapping[str, int | float],
    *,
    fresh: int,
    workspace_bytes: int,
) -> bytes:
    """What to call next: where each pointer lies, in the draw or in the output buffers, and its bytes.

    ``fresh`` says which memory comes along as a descriptor: NEW_DRAW, then NEW_OUTPUTS.
    """
    head = (LOAD, len(binding.pointers), len(binding.scalars), fresh)
    frame = [_LOAD.pack(*head, draw.total, outputs.total, outputs.workspace_offset, workspace_bytes)]
    for arg in binding.pointers:
        where, block = _place(arg.name, draw, outputs.layout)
        frame.append(_POINTER.pack(where, block.offsets[arg.name], block.nbytes(arg.name)))
    frame.extend(_scalar(arg, scalars[arg.name]) for arg in binding.scalars)
    return b"".join(frame)


def _place(name: str, draw: Layout, outputs: Layout) -> tuple[int, Layout]:
    """Where an array lies: IN_OUTPUTS or IN_DRAW, and the layout there."""
    return (IN_OUTPUTS, outputs) if name in outputs.offsets else (IN_DRAW, draw)


def output_names(binding: Binding) -> Iterable[str]:
    """The pointers a kernel may write, in call order."""
    return (arg.name for arg in binding.pointers if arg.role == "output")


def load_json(
    binding: Binding,
    draw: Layout,
    outputs: Outputs,
    scalars: Mapping[str, int | float],
    *,
    fresh: int,
    workspace_bytes: int,
) -> bytes:
    """``load`` for the Python runner: the same head, then JSON with arrays by name; there is no workspace."""
    words = (LOAD, len(binding.pointers), 0, fresh)
    head = _LOAD.pack(*words, draw.total, outputs.total, 0, 0)
    arrays = {}
    for arg in binding.pointers:
        where, block = _place(arg.name, draw, outputs.layout)
        arrays[arg.name] = [
            block.dtypes[arg.name].str,
            block.shapes[arg.name],
            where,
            block.offsets[arg.name],
        ]
    values = {arg.name: scalars[arg.name] for arg in binding.scalars}
    return head + json.dumps({"arrays": arrays, "scalars": values}).encode()
