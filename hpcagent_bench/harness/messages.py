"""Frames between judge and grading child: one packet each on a SOCK_SEQPACKET pair, native byte order.

Every frame starts with a 32-bit kind and 32 further bits. The judge believes a child's frame only where it
was expected, and a DONE only when it repeats the number its GO carried.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from hpcagent_bench.harness.memory import Layout

if TYPE_CHECKING:
    from hpcagent_bench.toolchain.abi import Arg, Binding

HELLO, LOAD, READY, GO, DONE, FAIL = range(1, 7)
NEW_OUTPUTS, NEW_DRAW = 1, 2
IN_DRAW, IN_OUTPUTS = 0, 1
FRAME_MAX = 1 << 16

_HEAD = struct.Struct("=II")
_GO = struct.Struct("=IIQ")
_DONE = struct.Struct("=IIQQQ")
_LOAD = struct.Struct("=IIIIQQQ")
_POINTER = struct.Struct("=QQ")


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


def done(frame: bytes) -> tuple[int, int, int] | None:
    """(nonce, inside ns, process CPU ns) of a DONE frame, None when it is none."""
    if len(frame) != _DONE.size or kind(frame) != DONE:
        return None
    _, _, nonce, inside_ns, cpu_ns = _DONE.unpack(frame)
    return nonce, inside_ns, cpu_ns


def _scalar(arg: Arg, value: int | float) -> bytes:
    """The 8-byte slot of one scalar argument."""
    return np.asarray(value, dtype=arg.dtype).tobytes().ljust(8, b"\0")


def load(
    binding: Binding,
    layout: Layout,
    outputs: Layout,
    scalars: Mapping[str, int | float],
    *,
    fresh: int,
    workspace_bytes: int,
) -> bytes:
    """What to call next: where each pointer lies, in the draw or in the output buffers.

    ``fresh`` says which memory comes along as a descriptor: NEW_DRAW, then NEW_OUTPUTS.
    """
    head = (LOAD, len(binding.pointers), len(binding.scalars), fresh)
    frame = [_LOAD.pack(*head, layout.total, outputs.total, workspace_bytes)]
    for arg in binding.pointers:
        frame.append(_POINTER.pack(*_place(arg.name, layout, outputs)))
    frame.extend(_scalar(arg, scalars[arg.name]) for arg in binding.scalars)
    return b"".join(frame)


def _place(name: str, layout: Layout, outputs: Layout) -> tuple[int, int]:
    """(where, offset) of an array: IN_OUTPUTS or IN_DRAW."""
    if name in outputs.offsets:
        return IN_OUTPUTS, outputs.offsets[name]
    return IN_DRAW, layout.offsets[name]


def output_names(binding: Binding) -> Iterable[str]:
    """The pointers a kernel may write, in call order."""
    return (arg.name for arg in binding.pointers if arg.role == "output")


def load_json(
    binding: Binding,
    layout: Layout,
    outputs: Layout,
    scalars: Mapping[str, int | float],
    *,
    fresh: int,
    workspace_bytes: int,
) -> bytes:
    """``load`` for the Python runner: the same head, then JSON with arrays by name."""
    words = (LOAD, len(binding.pointers), 0, fresh)
    head = _LOAD.pack(*words, layout.total, outputs.total, workspace_bytes)
    arrays = {}
    for arg in binding.pointers:
        where, offset = _place(arg.name, layout, outputs)
        block = outputs if where == IN_OUTPUTS else layout
        arrays[arg.name] = [block.dtypes[arg.name].str, block.shapes[arg.name], where, offset]
    values = {arg.name: scalars[arg.name] for arg in binding.scalars}
    return head + json.dumps({"arrays": arrays, "scalars": values}).encode()
