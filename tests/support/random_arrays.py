"""Random whole-array programs: slices, broadcasting, reductions, gathers and scatters, products, overlaps.

A symbol is a kind and a shape. Kinds: ``D`` float64, ``R`` any real, ``W`` any integer, ``T`` truth values,
``E`` float64 on which sums are exact in any order; ``V``, ``U`` and ``C`` views of float64, integer, and of
read-only arrays. Shapes: ``n`` (N,), ``k`` (N-1,), ``i`` (N-2,), ``o`` (N//2,), ``m`` (M,), ``nm`` (N, M),
``mn``, ``mm``, ``in`` (N-2, M-2), ``p`` and ``q`` the first i and the rest of N, where i is a loop index, and
``s`` a single value. ``K`` is complex, exact as E. Nothing is divided by a zero that may have either sign.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from random_programs import Gen, Program, assembled

_VIEWS = {
    "n": ["{}", "{}", "{}[:]", "{}[::-1]", "{}[0:N]", "{}[ip]", "{}[jp]", "{}[ip[::-1]]"],
    "k": ["{}[1:]", "{}[:-1]", "{}[:N - 1]", "{}[N - 1:0:-1]", "{}[ip[1:]]", "{}[-1:0:-1]"],
    "i": ["{}[1:-1]", "{}[2:]", "{}[:-2]", "{}[jp[2:]]"],
    "o": ["{}[1::2]", "{}[:2 * (N // 2):2]", "{}[:N // 2]", "{}[N - N // 2:]"],
    "p": ["{}[:$]", "{}[N - $:]", "{}[jp[:$]]"],
    "q": ["{}[$:]", "{}[:N - $]"],
    "m": ["{}", "{}[:]", "{}[::-1]"],
    "nm": ["{}", "{}[:, :]", "{}[::-1]", "{}[:, ::-1]", "{}[ip]", "{}[jp, :]"],
    "mn": ["{}", "{}[::-1, :]"],
    "in": ["{}[1:-1, 1:-1]", "{}[2:, 1:-1]", "{}[:-2, 1:-1]", "{}[1:-1, 2:]", "{}[:-2, :-2]"],
}
"""Views of an array of full extents, per shape of the view; $ is a loop index."""

_ROWS = {"n": ["m[:, 0]", "om[:, M - 1]", "g[0, :]", "g[M - 1]", "m[jp, 0]"], "k": ["m[1:, 0]", "g[0, :-1]"]}
_ROWS |= {"m": ["m[0, :]", "om[N - 1]", "g[:, 0]", "m[ip[0]]"], "nm": ["g.T", "np.outer({E.n}, {E.m})"]}
_ROWS |= {"mn": ["m.T", "om.T"], "in": ["g[1:-1, 1:-1].T"]}
_SPREAD = {"nm": ["{}[:, None]", "{}[:, np.newaxis]"], "in": ["{}[1:-1, None]"]}
_FULL = {"nm": "m", "in": "m", "mn": "g", "m": "r"}
_OUT = {"nm": ["om"], "in": ["om"], "mn": [], "m": []}
_WHOLE = ["u", "u", "v", "w", "oi", "ov", "ow", "ip"]

_ELEMENTWISE = {
    "E": [
        *("({E.} + {E.})", "({E.} - {E.})", "({E.} * {C.})", "np.minimum({E.}, {E.})", "np.abs({E.})"),
        *("np.where({T.}, {E.}, {E.})", "(-{E.})", "({C.} * 2.0)", "({C.} + 1)", "np.maximum({C.}, 0.5)"),
    ],
    "D": [
        *(
            "{E.}",
            "({D.} + {R.})",
            "({R.} * {D.})",
            "({D.} - {D.s})",
            "({D.} / 3.0)",
            "({D.} / ({D.} + 0.25))",
        ),
        *("np.sqrt(np.abs({D.}))", "{V.} ** 2", "np.where({T.}, {D.}, {D.s})", "np.maximum({D.}, {R.})"),
        *("np.clip({D.}, -1.0, {V.})", "np.sign({D.})", "np.square({V.})", "{K.}.real", "np.imag({K.})"),
        *(
            "np.floor({D.})",
            "({D.} % 2.0)",
            "({D.} // 0.75)",
            "({D.} + {W.} / 4)",
            "({D.} - {W.}.astype(np.float64))",
        ),
    ],
    "R": ["{D.}", "{V.}", "{W.}"],
    "K": ["({K.} + {K.})", "({K.} * {C.})", "np.conj({K.})", "({E.} + 1j * {C.})", "(2.0 - {K.})"],
    "W": [
        *("{U.}", "{U.}", "({U.} + {W.})", "({W.} * {U.})", "({W.} - {U.})", "({W.} // 3)", "({W.} % -5)"),
        *("np.minimum({U.}, {W.})", "np.abs({W.})", "({W.} & {U.})", "(-{U.})", "np.where({T.}, {U.}, {U.})"),
        *("({U.} // {U.})", "({U.} % {U.})", "{U.}.astype(np.int64)", "({T.} + {U.})", "({U.} >> 1)"),
    ],
    "T": [
        *("({V.} {op} {V.})", "({E.} {op} {V.})", "({D.} {op} {D.s})", "({V.} > 0.0)", "(~{T.})"),
        *("({T.} & {T.})", "({T.} | {T.})", "np.logical_and({T.}, {T.})", "({V.} == {V.})"),
    ],
}
_REDUCED = {  # by the kind and shape of the result
    "Es": [
        *(
            "np.sum({E.n})",
            "np.sum({E.k})",
            "{C.n}.sum()",
            "np.sum({E.nm})",
            "np.max({E.n})",
            "np.min({E.nm})",
        ),
        *("np.dot({C.n}, {C.n})", "({C.m} @ {C.m})", "np.sum({E.q})", "np.max({C.m})", "np.prod({C.n})"),
        *("np.sum(a[h])", "spread({E.n}, {C.n})", "np.sum({K.n}).real", "np.vdot({C.n}, z).imag"),
    ],
    "Ds": ["np.mean({E.n})", "{C.nm}.mean()", "{V.m}.max()", "np.max({D.n})", "{E.s}"],
    "En": [
        *("np.sum({E.nm}, axis=1)", "{C.mn}.sum(axis=0)", "np.max({E.nm}, axis=1)", "({C.nm} @ {C.m})"),
        *("np.dot({C.nm}, {C.m})", "({C.m} @ {C.mn})", "np.min({C.mn}, axis=0)"),
    ],
    "Em": ["np.sum({E.nm}, axis=0)", "({C.n} @ {C.nm})", "np.max({C.nm}, axis=0)"],
    "Kn": ["({K.nm} @ {C.m})"],
    "Dnm": ["({E.nm} - np.max({C.nm}, axis=1, keepdims=True))", "({D.nm} * {D.n}[:, None])"],
    "Dn": [
        "np.cumsum({E.n})",
        "turned({D.n})",
        "{C.nm}.reshape(N * M)[:N]",
        "np.mean({E.nm}, axis=1)",
        "np.max({D.nm}, axis=1)",
    ],
    "Enm": ["({C.nm} @ {E.mm})", "({C.mn}.T @ np.outer({C.m}, {C.m}))"],
    "Emm": ["({C.mn} @ {C.nm})", "np.outer({C.m}, {C.m})"],
    "Ws": [
        "np.sum({U.n})",
        "np.argmax({D.n})",
        "np.argmin({V.m})",
        "np.max({U.n})",
        "np.count_nonzero({T.n})",
    ],
    "Wn": ["np.argmax({V.nm}, axis=1)", "np.argmin({D.mn}, axis=0)", "np.sum({T.nm}, axis=1)"],
    "Ts": ["np.any({T.n})", "np.all({T.nm})", "{T.m}.any()"],
    "Tn": ["np.any({T.nm}, axis=1)"],
}
_STORES = [
    *("out[:] = {D.n}", "out[1:] {set} {D.k}", "out[:-1] {set} {D.k}", "out[1:-1] {set} {D.i}"),
    *("out[::2] = x", "out[1::2] {set} {D.o}", "out[::-1] = {D.n}", "out[ip] = {D.n}", "out[ip] += {D.n}"),
    *(
        "out[jp] -= {D.n}",
        "om[:, :] = {D.nm}",
        "om[1:-1, 1:-1] {set} {D.in}",
        "om[:, 0] = {D.n}",
        "om *= {D.s}",
    ),
    *(
        "om[N - 1, :] {set} {D.m}",
        "om[ip] = {D.nm}",
        "of[:] = {R.n}",
        "of[:-1] = f[1:] * of[:-1]",
        "out += {D.n}",
    ),
    *("oi[:] = {W.n}", "ov[:] = {W.n}", "ow[:] = w + ow[::-1]", "oi[:-1] {set} {W.k}", "oi[ip] = {W.n}"),
    *("ob[:] = {T.n}", "ob[1:] = {T.k}", "om[:] = {D.m}", "out[:] = {D.s}", "out[N // 2:] = {D.s}"),
    *("oz[:] = {K.n}", "oz[1:] {set} {K.k}", "oz[ip] += {K.n}", "oq[:] = q * 2862933555777941757 + oq[ip]"),
    *("out[h] = {D.s}", "out[ob] += 1.0", "om[om > x] = 2.5", "oq[1:] ^= oq[:-1] >> 3"),
    *("x = {D.s}", "y = {E.s}", "k = {W.s} % 5", "ok = {T.s}", "x += {E.s}"),
]
_INSIDE = [
    *("out[:$] = {D.p}", "out[$:] {set} {D.q}", "out[$] = np.sum({E.p})", "om[$, :] {set} {D.m}"),
    *("out[$] += {E.s}", "om[$, $ % M:] = a[$]", "out[$] = {C.m} @ m[$, :]", "oi[$] = np.sum({U.q})"),
]


class ArrayGen(Gen):
    """Draws whole-array statements."""

    def __init__(self, draw: Any) -> None:
        super().__init__(draw)
        self.made: dict[str, list[str]] = {}

    def symbol(self, name: str, depth: int) -> str:
        if "." not in name:
            return super().symbol(name, depth)
        kind, shape = name.split(".")
        if shape in "pq" and not self.rows:
            shape = "n"
        if kind in "CVU" or (depth <= 0 and shape != "s") or (kind == "W" and shape not in _WHOLE_SHAPES):
            return self.leaf(kind, shape, depth)
        reduced = _REDUCED.get(f"{kind}{shape}", [])
        if shape == "s":
            single = {"E": "1.5", "D": self.pick("xy"), "R": "2.0", "W": "k", "T": "ok"}[kind]
            found = single if depth <= 0 or not reduced else str(self.pick([single, *reduced]))
            return self.fill(found, depth - 1)
        templates = [template.replace(".}", f".{shape}}}") for template in _ELEMENTWISE[kind]]
        return self.fill(self.pick([*templates, *reduced]), depth - 1)

    def leaf(self, kind: str, shape: str, depth: int) -> str:
        if shape == "mm":
            return "np.outer(r, r)"
        if kind == "T":
            flags = [view.replace("{}", array) for view in _VIEWS.get(shape, []) for array in ("h", "ob")]
            text = self.pick(flags) if shape in _WHOLE_SHAPES else f"({self.leaf('V', shape, 0)} > 0.5)"
        elif kind in "UW" and shape in _WHOLE_SHAPES:
            text = self.pick(_VIEWS[shape]).replace("{}", self.pick(_WHOLE))
        elif kind == "K":
            whole = _VIEWS[shape] if shape in _WHOLE_SHAPES else ["{}[0]"]
            text = self.pick(whole).replace("{}", self.pick(["z", "oz"]))
        elif kind in "UW":
            text = {"nm": "u[:, None]", "in": "v[1:-1, None]"}.get(shape, "u[0]")
        elif _SPREAD.get(shape) and self.chance(5):
            text = self.pick(_SPREAD[shape]).replace("{}", self.pick("ab"))
        elif _ROWS.get(shape) and self.chance(4) and depth >= 0:
            text = self.fill(self.pick(_ROWS[shape]), 0).replace("om", "m" if kind in "CE" else "om")
        else:
            arrays = list(_FULL.get(shape, "ab"))
            if kind not in "CE":
                arrays += [*_OUT.get(shape, ["out"]), *self.made.get(shape, [])]
            text = self.pick(_VIEWS[shape]).replace("{}", self.pick(arrays))
        return str(text).replace("$", self.rows[-1] if self.rows else "0")

    def array_statement(self) -> list[str]:
        kind = self.pick(["store"] * 6 + ["local", "loop", "loop"])
        if kind == "store":
            return [self.fill(self.pick(_STORES))]
        if kind == "local":
            name, shape = self.fresh("t"), self.pick(["n", "nm", "m"])
            value = self.fill(
                self.pick([f"{{D.{shape}}}", f"{{V.{shape}}}.copy()", f"np.abs({{E.{shape}}})"])
            )
            self.made.setdefault(shape, []).append(name)
            return [f"{name} = {value}"]
        index = self.fresh("i")
        self.rows.append(index)
        texts = [
            self.fill(self.pick([*_INSIDE, *_INSIDE, *_STORES])) for _ in range(self.draw(st.integers(1, 2)))
        ]
        if self.chance(3):
            texts.append(self.store())
        self.rows.pop()
        body = [f"    {text.replace('$', index)}" for text in texts]
        return [f"for {index} in {self.pick(['range(N)', 'range(1, N)', 'range(N - 1, -1, -1)'])}:", *body]

    def store(self) -> str:
        return self.fill(self.pick(["{out} {set} {D}", "{om} {set} {D}", "{oi} {set} {W}", "{ob} = {T}"]))


_WHOLE_SHAPES = ("n", "k", "i", "o", "p", "q")


@st.composite
def array_programs(draw: Any) -> Program:
    """Whole-array statements, some of them in a loop."""
    gen = ArrayGen(draw)
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        lines += gen.array_statement()
    return assembled(gen, lines)
