"""Small references written on the spot, with inputs of every dtype, run in NumPy and in the typed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from typed_form import run

from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.translators import frontend

DTYPES = (
    *("int8", "uint8", "int16", "uint32", "int32", "int64", "uint64"),
    *("float32", "float64", "complex64", "bool"),
)
ARRAYS: dict[str, Any] = {
    **{name: {"shape": "(N,)", "dtype": name} for name in DTYPES},
    **{"x": "(N,)", "y": "(N,)", "z": "(N,)", "m": "(N, N)", "w": "(N, N)", "t": "(3, N, 5)", "one": "(1,)"},
}
INPUTS: dict[str, Any] = {
    "ip": {"shape": "(N,)", "dtype": "int64", "domain": [0, 4]},
    "jp": {"shape": "(N,)", "dtype": "int32"},
    "ptr": {"shape": "(N + 1,)", "dtype": "int64"},
}
"""Index arrays: places below 4 (many twice), a permutation, row pointers."""


def draws(size: int, datatype: str = "float64") -> dict[str, np.ndarray]:
    """Full-range integers (the extreme values among them) and floats of both signs.

    ``datatype`` is that of the arrays that declare none.
    """
    rng = np.random.default_rng(11)
    arrays: dict[str, np.ndarray] = {}
    for name in DTYPES:
        dtype = np.dtype(name)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            values = rng.integers(limits.min, limits.max, size, dtype=dtype, endpoint=True)
            values[: min(3, size)] = (limits.min, limits.max, 0)[: min(3, size)]
        elif dtype.kind == "b":
            values = rng.random(size) < 0.5
        else:
            values = rng.normal(size=size) + (1j * rng.normal(size=size) if dtype.kind == "c" else 0)
        arrays[name] = values.astype(dtype)
    for name in ("x", "y", "z"):
        arrays[name] = rng.normal(size=size) * 10
    arrays["m"], arrays["w"] = rng.normal(size=(2, size, size))
    arrays["t"], arrays["one"] = rng.normal(size=(3, size, 5)), rng.normal(size=1)
    for name in ("x", "y", "z", "m", "w", "t", "one"):
        arrays[name] = arrays[name].astype(datatype)
    arrays["ip"], arrays["jp"] = rng.integers(0, min(4, size), size), rng.permutation(size).astype("int32")
    arrays["ptr"] = np.sort(rng.integers(0, size + 1, size + 1))
    arrays["ptr"][[0, -1]] = 0, size
    return arrays


def probe(make_kernel: Callable[..., Kernel], body: str, functions: str = "", **keys: Any) -> Kernel:
    """A kernel called ``probe`` with this body, in which every array of ARRAYS is an output."""
    names = [*ARRAYS, *INPUTS, "N", *keys.get("config", ())]
    text = f"import numpy as np\n\n{functions}\n\ndef probe({', '.join(names)}):\n    {body}\n"
    return make_kernel(text, {**ARRAYS, **INPUTS}, list(ARRAYS), **keys)


def agree(kernel: Kernel, size: int = 9, datatype: str = "float64") -> dict[str, np.ndarray]:
    """Assert that the typed form and NumPy leave the same in every array; return what they leave."""
    translated = frontend.translate(kernel, datatype)
    expected = draws(size, datatype)
    actual = {name: array.copy() for name, array in expected.items()}
    scalars = kernel.scalars({"N": size})
    with np.errstate(all="ignore"):
        kernel.load_numpy()(*({**scalars, **expected}[name] for name in kernel.arg_order))
    run(translated, {**scalars, **actual})
    for name, array in expected.items():
        floating = array.dtype.kind in "fc"  # libraries and orders of addition differ that much
        close = (
            {"rtol": 64 * np.finfo(array.dtype).eps, "atol": 64 * np.finfo(array.dtype).eps}
            if floating
            else {}
        )
        np.testing.assert_allclose(actual[name], array, **(close or {"rtol": 0}), strict=True, err_msg=name)
    return actual
