"""What the dependences forbid is refused, and what they allow is found."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hpcagent_agent.harnesses.autotune import fuse, ir, jam, order, pragmas, reduce
from hpcagent_agent.harnesses.autotune.affine import Poly, feasible
from hpcagent_agent.harnesses.autotune.dependence import Analysis
from hpcagent_agent.harnesses.autotune.normalise import normalise
from hpcagent_agent.harnesses.autotune.parse import Unparsable, parse

EACH, ROW = "for (int64_t i = 1; i < N; i++)", "for (int64_t j = 1; j < N - 1; j++)"
SHAPES = {"a": ["N"], "b": ["N"], "x": ["N", "N"], "y": ["N", "N"]}


def function(body: str, restrict: str = "restrict") -> ir.Function:
    params = ", ".join(f"double *{restrict} {name}" for name in SHAPES)
    return normalise(parse(f"void f({params}, const int64_t N, const double K)\n{{ {body} }}", "f"))


def first_loop(fn: ir.Function) -> ir.Loop:
    return next(s for s in fn.body if isinstance(s, ir.Loop))


def nest(body: str) -> tuple[Analysis, ir.Loop, ir.Loop]:
    fn = function(f"{EACH} {{ {ROW} {{ {body} }} }}")
    outer = first_loop(fn)
    inner = outer.body[0]
    assert isinstance(inner, ir.Loop)
    return Analysis(fn, SHAPES), outer, inner


@pytest.mark.parametrize(
    ("body", "carried"),
    [
        ("a[i] = a[i - 1] + b[i];", True),
        ("a[i] = a[i + 1] + b[i];", True),
        ("a[i] = a[i] + b[i - 1];", False),
        ("a[2 * i] = a[2 * i + 1];", False),
        ("a[2 * i] = a[i];", True),
        ("a[i] = a[(int64_t)b[i]];", True),
        ("a[i] = frobnicate(b[i]);", True),
        ("double t = b[i]; a[i] = t * t;", False),
        ("a[0] = b[i];", True),
        ("if (b[i] > 0.0) { a[i] = 1.0; }", False),
    ],
)
def test_carried_dependences(body: str, carried: bool) -> None:
    fn = function(f"{EACH} {{ {body} }}")
    assert Analysis(fn, SHAPES).carries(first_loop(fn), ()) is carried


def test_pointers_without_restrict_may_overlap() -> None:
    body = f"{EACH} {{ a[i] = b[i]; }}"
    for restrict, carried in (("restrict", False), ("", True)):
        fn = function(body, restrict)
        assert Analysis(fn, SHAPES).carries(first_loop(fn), ()) is carried


def test_a_second_name_for_an_array_is_distrusted() -> None:
    fn = function(f"double *c = a; {EACH} {{ a[i] = c[i - 1]; }}")
    assert Analysis(fn, SHAPES).carries(first_loop(fn), ())


@pytest.mark.parametrize(
    ("body", "blocked"),
    [
        ("x[i * N + j] = x[(i - 1) * N + j] + 1.0;", False),
        ("x[i * N + j] = x[(i - 1) * N + j - 1] + 1.0;", False),
        ("x[i * N + j] = x[(i - 1) * N + j + 1] + 1.0;", True),
        ("x[i * N + j] = y[(i - 1) * N + j + 1] + 1.0;", False),
        ("x[i * N + j] = x[j * N + i] + 1.0;", True),
        ("a[j] = a[j] + x[i * N + j];", False),
        ("b[0] = b[0] + x[i * N + j];", True),
    ],
)
def test_interchange(body: str, blocked: bool) -> None:
    analysis, outer, inner = nest(body)
    assert analysis.blocks_interchange(outer, inner, ()) is blocked
    jammed = jam.jam(analysis.fn, analysis, 4).body != analysis.fn.body
    assert jammed is not blocked


def test_a_jam_reaches_only_as_far_as_it_joins() -> None:
    analysis, outer, inner = nest("x[(i + 2) * N + j] = x[i * N + j + 1];")
    far = Analysis(analysis.fn, {**SHAPES, "x": ["N + 2", "N"]})
    assert not far.blocks_jam(outer, inner, (), 2)
    assert far.blocks_jam(outer, inner, (), 3)


@pytest.mark.parametrize(
    ("second", "fused"), [("b[i] = a[i];", True), ("b[i] = a[i - 1];", True), ("b[i] = a[i + 1];", False)]
)
def test_fusion(second: str, fused: bool) -> None:
    fn = function(f"{EACH} {{ a[i] = 1.0; }} {EACH} {{ {second} }}")
    loops = [s for s in fuse.fuse(fn, Analysis(fn, SHAPES)).body if isinstance(s, ir.Loop)]
    assert len(loops) == (1 if fused else 2)


def test_a_nest_of_two_recurrences_is_split_only_where_it_may_be() -> None:
    free = f"{EACH} {{ a[i] = b[i]; {ROW} {{ x[j * N + i] = x[(j - 1) * N + i] + a[i]; }} }}"
    tied = f"{EACH} {{ a[i] = x[(i - 1) * N + 1]; {ROW} {{ x[i * N + j] = a[i]; }} }}"
    for body, loops in ((free, 2), (tied, 1)):
        fn = function(body)
        assert len(order.reorder(fn, Analysis(fn, SHAPES)).body) == loops


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ("s = s + a[i] - b[i];", {"s": "+"}),
        ("s = a[i] * s;", {"s": "*"}),
        ("if (a[i] > s) { s = a[i]; }", {"s": "max"}),
        ("s = a[i] < s ? a[i] : s;", {"s": "min"}),
        ("if (a[i] > 0.0) { s = s + a[i]; }", {"s": "+"}),
        ("s = a[i] - s;", {}),
        ("s = s + a[i]; b[i] = s;", {}),
        ("if (a[i] > s) { s = b[i]; }", {}),
        ("if (s > 0.0) { s = s + a[i]; }", {}),
        ("s = s + s * a[i];", {}),
    ],
)
def test_reductions(body: str, kinds: dict[str, str]) -> None:
    fn = function(f"double s = K; {EACH} {{ {body} }} a[0] = s;")
    assert reduce.loop_reductions(first_loop(fn)) == kinds
    marked = first_loop(pragmas.simd(fn, Analysis(fn, SHAPES))).pragma
    assert bool(marked) is bool(kinds)


def test_threads_get_only_independent_iterations() -> None:
    bodies = {"x[i * N + j] = x[i * N + j - 1] + 1.0;": True, "x[i * N + j] = x[(i - 1) * N + j - 1];": False}
    for body, spread in bodies.items():
        analysis, _, _ = nest(body)
        outer = first_loop(pragmas.parallel(analysis.fn, analysis))
        assert ("parallel" in outer.pragma) is spread


def test_a_loop_that_may_stop_early_is_left_alone() -> None:
    fn = function(f"int64_t at = -1; {EACH} {{ if (a[i] > K) {{ at = i; break; }} }} b[0] = (double)at;")
    analysis = Analysis(fn, SHAPES)
    for change in (pragmas.simd, pragmas.parallel, fuse.fuse, order.reorder):
        assert change(fn, analysis).body == fn.body
    assert reduce.guard(fn, analysis, 4).body == fn.body


@pytest.mark.parametrize(
    "text", ["int f(", "#define X 1\nvoid f(void) {}", "void g(void) {}", "int y; void f(void) {}"]
)
def test_foreign_sources_are_refused(text: str) -> None:
    with pytest.raises(Unparsable):
        parse(text, "f")


def poly(constant: int, **coefficients: int) -> Poly:
    return Poly.of({(): constant, **{(name,): value for name, value in coefficients.items()}})


@pytest.mark.parametrize(
    ("rows", "equal", "possible"),
    [
        ([poly(0, x=1), poly(5, x=-1)], [], True),
        ([poly(-6, x=1), poly(5, x=-1)], [], False),
        ([], [poly(1, x=2, y=4)], False),  # 2x + 4y + 1 = 0 has no integers
        ([poly(-1, x=3), poly(2, x=-3)], [], False),  # 1 <= 3x <= 2 has none either
        ([poly(-1, x=1, y=-1), poly(-1, y=1, z=-1), poly(-1, z=1, x=-1)], [], False),  # x > y > z > x
        ([poly(0, x=1), poly(0, y=1), poly(-7, x=1, y=1)], [poly(-3, x=1, y=-2)], True),
    ],
)
def test_feasibility(rows: Sequence[Poly], equal: Sequence[Poly], possible: bool) -> None:
    assert feasible(rows, equal) is possible
