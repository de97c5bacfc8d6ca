"""Random NumPy references of the covered subset, as text: every run of one is in range for every size.

What a program may overflow or divide by is left to chance: where NumPy itself raises, the caller drops it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

ARRAYS: dict[str, Any] = {
    "a": "(N,)",
    "b": "(N,)",
    "r": "(M,)",
    "m": "(N, M)",
    "g": "(M, N)",
    "f": {"shape": "(N,)", "dtype": "float32"},
    "u": {"shape": "(N,)", "dtype": "int64"},
    "v": {"shape": "(N,)", "dtype": "int32"},
    "w": {"shape": "(N,)", "dtype": "uint8"},
    "h": {"shape": "(N,)", "dtype": "bool"},
    "q": {"shape": "(N,)", "dtype": "uint64"},
    "z": {"shape": "(N,)", "dtype": "complex128"},
    "ip": {"shape": "(N,)", "dtype": "int64"},
    "jp": {"shape": "(N,)", "dtype": "int64"},
    "out": "(N,)",
    "om": "(N, M)",
    "of": {"shape": "(N,)", "dtype": "float32"},
    "oi": {"shape": "(N,)", "dtype": "int64"},
    "ov": {"shape": "(N,)", "dtype": "int32"},
    "ow": {"shape": "(N,)", "dtype": "uint8"},
    "oq": {"shape": "(N,)", "dtype": "uint64"},
    "oz": {"shape": "(N,)", "dtype": "complex128"},
    "ob": {"shape": "(N,)", "dtype": "bool"},
}
OUTPUTS = ["out", "om", "of", "oi", "ov", "ow", "oq", "oz", "ob"]
SIZES = ["N", "M"]
HELPERS = {
    "clipped": "def clipped(p, q):\n    if p > q:\n        return q\n    return p\n",
    "blend": "def blend(p, q):\n    d = p - q\n    return p + 0.5 * d\n",
    "spread": "def spread(p, q):\n    d = p - q\n    return np.sum(d * d)\n",
    "turned": "def turned(p):\n    return p[::-1] + p\n",
    "steps": "def steps(p):\n    c = 0\n    while p > 1:\n        p = p // 2\n        c += 1\n    return c\n",
}
"""Functions a program may call: floats (clipped, blend), vectors (spread, turned), an integer (steps)."""


@dataclass
class Program:
    """``text`` is the module; ``exact`` when every order of evaluation NumPy may choose gives the same."""

    text: str
    exact: bool

    def __repr__(self) -> str:
        return f"\n{self.text}"


GRAMMAR: dict[str, list[str]] = {
    # real numbers of any width; D is float64 for certain
    "R": ["{D}", "{D}", "{f}", "{of}", "{W0}"],
    "D": [
        *(
            "{D0}",
            "({D} + {R})",
            "({D} - {R})",
            "({R} * {D})",
            "np.minimum({D}, {R})",
            "np.maximum({R}, {D})",
        ),
        *("abs({D})", "min({D}, {D})", "max({D}, {D})", "(-{D})", "np.sqrt(abs({D}))", "({D} / {R})"),
        *(
            "({W} / {W0})",
            "({D} / 3.0)",
            "({D} % {R})",
            "({D} // {R})",
            "({D} if {T} else {D})",
            "({D}) ** 2",
        ),
        *("np.floor({D})", "np.where({T}, {D}, {R})", "clipped({D}, {D})", "blend({D}, {D})"),
    ],
    "D0": ["x", "y", "2.0", "0.5", "-1.5", "{a}", "{b}", "{m}", "{r}", "{g}", "{out}", "{om}"],
    "E0": ["2.0", "{a}", "{b}", "{m}"],
    # integers of any width; Z is int64 for certain
    "W": ["{Z}", "{Z}", "{v}", "{w}", "{ov}", "{ow}", "({v} + {w})", "({v} * {v})", "({w} - {w})", "(-{v})"],
    "W0": ["{Z0}", "{v}", "{w}"],
    "Z": [
        *("{Z0}", "({Z} + {W})", "({Z} - {W})", "({W} * {Z})", "({Z} // {W})", "({Z} % {W})", "({W} // {Z})"),
        *(
            "({Z} & {W})",
            "({Z} | {W})",
            "({Z} ^ {Z})",
            "min({Z}, {Z})",
            "max({Z}, {Z})",
            "abs({Z})",
            "(-{Z})",
        ),
        *("({Z} << 2)", "({Z} >> 1)", "(~{Z})", "({Z} // 3)", "({Z} % 5)", "({Z} // -3)", "({Z} % -5)"),
        *(
            "({Z} if {T} else {Z})",
            "np.minimum({Z}, {W})",
            "steps({Z} % 100)",
            "np.int64({w})",
            "np.abs({Z})",
        ),
    ],
    "Z0": ["{u}", "{oi}", "{ip}", "k", "1", "3", "-2", "7", "N", "{I}"],
    # conditions
    "T": [
        "{D} {op} {R}",
        "{D0} {op} {D0}",
        "{Z} {op} {W0}",
        "{h}",
        "{ob}",
        "ok",
        "not ({T0})",
        "({T0}) or ({T0})",
    ],
    "T0": ["{D0} {op} {D0}", "{Z0} {op} {W0}", "{h}", "ok"],
    "op": ["<", "<=", ">", ">=", "==", "!="],
    "set": ["=", "=", "+=", "-=", "*="],
}
"""What may stand for each symbol; symbols end in 0 where the depth is used up. Any other symbol is an element
of the array of that name, or I for a loop index."""


@dataclass
class Gen:
    """Draws pieces of a program; ``rows`` and ``columns`` are the loop indices now below N and below M."""

    draw: Any
    rows: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    exact: bool = True
    used: int = 0

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.draw(st.integers(0, len(options) - 1))]

    def chance(self, one_in: int) -> bool:
        return bool(self.draw(st.integers(0, one_in - 1)) == one_in - 1)

    def fresh(self, stem: str) -> str:
        self.used += 1
        return f"{stem}{self.used}"

    def fill(self, template: str, depth: int = 2) -> str:
        """The template with every symbol replaced by something it may stand for."""
        return SYMBOL.sub(lambda found: self.symbol(found[1], depth), template)

    def symbol(self, name: str, depth: int) -> str:
        if name in ARRAYS:
            return self.place(name)
        if name == "I":
            return str(self.pick([*self.rows, *self.columns, "2"]))
        if name in ("R", "D", "W", "Z", "T") and depth <= 0:
            name = {"R": "D0", "W": "W0"}.get(name, f"{name}0")
        return self.fill(self.pick(GRAMMAR[name]), depth - 1)

    # ---- indices

    def row(self) -> str:
        """An integer in [0, N)."""
        if not self.rows:
            return str(self.pick(["0", "N - 1", "N // 2"]))
        i = self.pick(self.rows)
        forms = [i, i, i, f"N - 1 - {i}", f"ip[{i}]", f"({i} * 3 + 1) % N", f"{i} // 2"]
        forms += ["0", f"min({i} + 1, N - 1)", f"max({i} - 1, 0)", f"u[{i}] % N", f"ip[N - 1 - {i}]"]
        return str(self.pick(forms))

    def column(self) -> str:
        """An integer in [0, M)."""
        if self.columns:
            j = self.pick(self.columns)
            return str(self.pick([j, j, f"M - 1 - {j}", "0", f"({j} + 1) % M"]))
        return str(self.pick(["0", "M - 1"] + [f"{i} % M" for i in self.rows]))

    def place(self, array: str) -> str:
        if array in ("m", "om"):
            return f"{array}[{self.row()}, {self.column()}]"
        if array == "g":
            return f"g[{self.column()}, {self.row()}]"
        return f"{array}[{self.column() if array == 'r' else self.row()}]"

    # ---- statements

    def block(self, depth: int, inside: bool) -> list[str]:
        count = self.draw(st.integers(1, 3))
        lines = [line for _ in range(count) for line in self.statement(depth, inside)]
        return [f"    {line}" for line in lines]

    def statement(self, depth: int, inside: bool) -> list[str]:
        kinds = ["store"] * 4 + ["scalar"] * 2
        kinds += ["for", "for", "for", "if", "if", "while"] if depth < 3 else []
        kinds += ["skip", "leave"] if inside else []
        match self.pick(kinds):
            case "store":
                return [self.fill(self.pick(_STORES))]
            case "scalar":
                return self.fill(self.pick(_SCALARS)).split("\n")
            case "if":
                lines = [self.fill("if {T}:"), *self.block(depth + 1, inside)]
                return [*lines, "else:", *self.block(depth + 1, inside)] if self.chance(2) else lines
            case "skip":
                return [self.fill("if {T}:"), "    continue"]
            case "leave":
                return [self.fill("if {T}:"), "    break"]
            case "while":
                name = self.fresh("c")
                body = self.block(depth + 1, False)
                return [f"{name} = {self.pick([2, 3])}", f"while {name} > 0:", f"    {name} -= 1", *body]
        return self.loop(depth)

    def loop(self, depth: int) -> list[str]:
        indices = self.rows if not self.rows or self.chance(2) else self.columns
        end = "N" if indices is self.rows else "M"
        name = self.fresh("i" if indices is self.rows else "j")
        forms = [f"range({end})", f"range({end})", f"range(1, {end})", f"range({end} - 1)"]
        forms += [f"range(0, {end}, 2)", f"range({end} - 1, -1, -1)", f"range({end} - 1, 0, -2)"]
        forms += [f"range({i}, {end})" for i in indices] + [f"range({i})" for i in indices]
        text = self.pick(forms)
        indices.append(name)
        body = self.block(depth + 1, True)
        indices.remove(name)
        return [f"for {name} in {text}:", *body]


SYMBOL = re.compile(r"\{([\w.]+)\}")
_STORES = [
    *("{out} {set} {D}", "{out} {set} {R}", "{om} {set} {D}", "{of} {set} {R}", "{oi} {set} {W}"),
    *("{oq} = {q} * 6364136223846793005 + {oq}", "{oq} ^= {q} >> 7", "{oq} = ({oq} << 3) % 1000003"),
    *("{oz} {set} {z}", "{oz} = {z} * {oz} - {z}", "{oz} += {E0} * {z}", "{oz} = ({z} + 2j).conjugate()"),
    *(
        "{out} = {z}.real - {oz}.imag",
        "{ov} {set} {W}",
        "{ow} {set} {w}",
        "{ob} = {T}",
        "{ow} = {w} + {w}",
        "{of} = {f} * {of} - {f}",
    ),
]
_SCALARS = [
    *("x = {D}", "y = {D}", "ok = {T}", "x, y = y, x", "k += 1", "k = (k * 3 + 1) % 7", "x += {R}"),
    *("k = k - 1 if k > 3 else k + 2", "if {D0} < x:\n    x = {D0}", "y = max(y, {D})"),
]
START = ["x = 1.5", "y = 0.0", "k = 2", "ok = False"]


def assembled(gen: Gen, lines: list[str]) -> Program:
    arguments = ", ".join([*ARRAYS, *SIZES])
    ending = ["out[0] += x", "out[N - 1] -= y", "oi[0] += k", "ob[0] = ok"]
    names = {word for line in lines for word in "".join(c if c.isalnum() else " " for c in line).split()}
    kept = [line for line in ending if line.split()[-1] in names]
    helpers = "\n\n".join(HELPERS[name] for name in sorted(names & HELPERS.keys()))
    start = [line for line in START if line.split()[0] in names]
    body = "\n".join(f"    {line}" for line in [*start, *lines, *kept])
    head = f"import numpy as np\n\n\n{helpers}\n\n" if helpers else "import numpy as np\n\n\n"
    return Program(f"{head}def probe({arguments}):\n{body}\n", gen.exact)


@st.composite
def loop_programs(draw: Any) -> Program:
    """Explicit loops over elements, with scalars carried through them."""
    gen = Gen(draw)
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 2))):
        lines += gen.loop(1) if not gen.chance(5) else gen.statement(1, False)
    return assembled(gen, lines)
