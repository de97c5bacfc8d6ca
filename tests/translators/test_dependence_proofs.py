"""A loop called parallel is parallel: random nests, every iteration enumerated, orders shuffled."""

from __future__ import annotations

import itertools

from hypothesis import assume, given, note, settings
from hypothesis import strategies as st
from loop_nests import Machine, parse

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.analysis import linear
from hpcagent_bench.translators.analysis.dependence import verdicts
from hpcagent_bench.translators.analysis.polynomials import Polynomial

ARRAYS = {"x": 1, "y": 1, "m": 2, "ip": 1, "tmp": 1}
SIZES = ({"N": 1, "M": 1}, {"N": 4, "M": 3}, {"N": 7, "M": 9})
INDICES = "ijk"


@st.composite
def subscripts(draw, open_):
    constant = draw(st.integers(-2, 3))
    if not open_:
        return str(draw(st.sampled_from([constant, "t", "N - 1"])))
    first, second = draw(st.sampled_from(open_)), draw(st.sampled_from(open_))
    factor = draw(st.sampled_from([1, 1, 1, 2, 3, -1]))
    forms = [
        f"{first} + {constant}",
        f"{first} + {constant}",
        f"{factor} * {first} + {constant}",
        f"{first} - {second} + {constant}",
        f"{factor} * {first} + {second}",
        f"{constant}",
        f"{first} * M + {second}",
        f"N - 1 - {first}",
        f"{first} // 2 + {constant}",
        f"{first} % 2",
        f"{first} + N // 2",
        f"ip[{first}]",
        f"{first} + ip[0]",
        "t",
        f"t + {first}",
        f"min({first}, {constant + 2})",
    ]
    return draw(st.sampled_from(forms))


@st.composite
def elements(draw, open_, stored=False):
    array = draw(st.sampled_from(["x", "x", "y", "m", "m", "tmp"] if stored else [*"xxym", "ip", "tmp"]))
    return f"{array}[{', '.join(draw(subscripts(open_)) for _ in range(ARRAYS[array]))}]"


@st.composite
def values(draw, open_):
    leaf = st.one_of(elements(open_), st.sampled_from(["s", "t", "2", *open_]))
    return f"{draw(leaf)} {draw(st.sampled_from('+-*'))} {draw(leaf)}" if draw(st.booleans()) else draw(leaf)


@st.composite
def conditions(draw, open_):
    left = draw(st.one_of(values(open_), st.sampled_from([*open_, "N"])))
    right = draw(st.sampled_from(["1", "3", "N - 2", *open_]))
    test = f"{left} {draw(st.sampled_from(['<', '<=', '>', '>=', '==', '!=']))} {right}"
    return f"{test} and {draw(conditions(open_))}" if draw(st.integers(0, 5)) == 0 else test


@st.composite
def ranges(draw, open_):
    low = draw(st.sampled_from(["0", "0", "1", "2", *open_, *(f"{o} + 1" for o in open_)]))
    high = draw(st.sampled_from(["N", "M", "N - 1", "N // 2", "4", *(f"{o} + 2" for o in open_), *open_]))
    if open_ and draw(st.integers(0, 4)) == 0:
        low, high = f"max(1, {open_[-1]} - 2)", f"min({open_[-1]} + 3, {high})"
    step = draw(st.sampled_from([1, 1, 1, 1, 2, 3, -1, -2]))
    return f"range({low}, {high}, {step})" if step > 0 else f"range({high} - 1, {low} - 1, {step})"


@st.composite
def statements(draw, open_, depth):
    kinds = ["store", "store", "store", "scalar", "update", "extremum", "cell", "if", "skip", "fill"]
    kinds += ["for"] * 3 if len(open_) < len(INDICES) else []
    kinds += ["break", "while"] if draw(st.integers(0, 6)) == 0 and open_ else []
    kind = draw(st.sampled_from(kinds))
    pad = "    " * depth
    match kind:
        case "store":
            return [f"{pad}{draw(elements(open_, stored=True))} = {draw(values(open_))}"]
        case "scalar":
            return [f"{pad}{draw(st.sampled_from('st'))} = {draw(values(open_))}"]
        case "update":
            return [f"{pad}s {draw(st.sampled_from(['+=', '-=', '*=']))} {draw(elements(open_))}"]
        case "extremum":
            sign, value = draw(st.sampled_from("<>")), draw(elements(open_))
            return [f"{pad}if {value} {sign} s:", f"{pad}    s = {value}"]
        case "cell":
            element = draw(elements(open_, stored=True))
            return [f"{pad}{element} += {draw(values(open_))}"]
        case "fill":
            name = f"f{len(open_)}"
            filled, used = draw(ranges(open_)), draw(ranges(open_))
            shift = draw(st.integers(-1, 1))
            return [
                *(
                    f"{pad}for {name} in {filled}:",
                    f"{pad}    tmp[{name}] = {name} + {draw(elements(open_))}",
                ),
                *(f"{pad}for {name} in {used}:", f"{pad}    y[{name}] += tmp[{name} + {shift}]"),
            ]
        case "skip" if open_:
            return [f"{pad}if {draw(conditions(open_))}:", f"{pad}    continue"]
        case "break":
            return [f"{pad}if {draw(conditions(open_))}:", f"{pad}    break"]
        case "while":
            return [f"{pad}while t > 0:", f"{pad}    t = t - 1", *draw(statements(open_, depth + 1))]
        case "for":
            index = INDICES[len(open_)]
            inner = [*open_, index]
            lines = draw(st.lists(statements(inner, depth + 1), min_size=1, max_size=3))
            return [f"{pad}for {index} in {draw(ranges(open_))}:", *itertools.chain(*lines)]
        case _:
            lines = [f"{pad}if {draw(conditions(open_))}:", *draw(statements(open_, depth + 1))]
            if draw(st.booleans()):
                lines += [f"{pad}else:", *draw(statements(open_, depth + 1))]
            return lines


@st.composite
def nests(draw):
    lines = ["s = 1", "t = 2"]
    for _ in range(draw(st.integers(1, 2))):
        body = draw(st.lists(statements(["i"], 1), min_size=1, max_size=3))
        lines += [f"for i in {draw(ranges([]))}:", *itertools.chain(*body)]
    return "\n".join([*lines, "x[0] = s" if draw(st.booleans()) else "x[1] = t"])


def started(function, sizes, **hooks):
    return Machine({**sizes}, {name: {} for name in function.arrays}, **hooks)


def conflicts(run, own):
    """Elements stored in one iteration and touched in another."""
    seen, stored = {}, {}
    for number, (reads, writes) in enumerate(run):
        for place in reads | writes:
            seen.setdefault(place, set()).add(number)
        for place in writes:
            stored.setdefault(place, set()).add(number)
    return {
        p for p, writers in stored.items() if p[0] not in own and (len(writers) > 1 or seen[p] != writers)
    }


@settings(max_examples=300, deadline=None, derandomize=True)
@given(nests(), st.randoms(use_true_random=False))
def test_a_parallel_loop_has_no_conflict_and_runs_in_any_order(text, rng):
    note(text)
    function = parse(text, ARRAYS, ["tmp"])
    known = verdicts(function)
    parallel = {key: verdict for key, verdict in known.items() if verdict.parallel}
    assume(parallel)

    def shuffled(loop, order):
        return rng.sample(order, len(order)) if id(loop) in parallel else order

    def spoil(loop, machine):
        if id(loop) in parallel:
            machine.spoil((*parallel[id(loop)].private, *parallel[id(loop)].private_arrays), rng)

    for sizes in SIZES:
        plain = started(function, sizes)
        mixed = started(function, sizes, order=shuffled, begin=spoil, end=spoil)
        try:
            plain.run(function.body)
        except TimeoutError:
            assume(False)
        for loop, run in plain.touched:
            if id(loop) in parallel:
                verdict = parallel[id(loop)]
                own = {*verdict.private_arrays, *(r.name for r in verdict.reductions)}
                assert not conflicts(run, own), (sizes, loop.line)
        mixed.run(function.body)
        for name, array in function.arrays.items():
            if not array.local:
                assert mixed.arrays[name] == plain.arrays[name], (sizes, name)


@st.composite
def systems(draw):
    names = "abc"
    row = st.dictionaries(st.sampled_from(names), st.integers(-4, 4), min_size=1)
    poly = st.tuples(row, st.integers(-9, 9)).map(
        lambda pair: sum((Polynomial.name(n) * c for n, c in pair[0].items()), Polynomial.constant(pair[1]))
    )
    return draw(st.lists(poly, max_size=2)), draw(st.lists(poly, max_size=5))


def evaluated(poly, point):
    total = poly.offset
    for monomial, factor in poly.terms.items():
        if monomial:
            total += factor * point[monomial[0]]
    return total


@settings(max_examples=400, deadline=None, derandomize=True)
@given(systems())
def test_what_is_called_impossible_has_no_integer_solution(system):
    equal, least = system
    box = [Polynomial.name(name) * sign + 4 for name in "abc" for sign in (1, -1)]
    points = [dict(zip("abc", (a, b, c), strict=True)) for a in R for b in R for c in R]
    solutions = [
        p
        for p in points
        if all(evaluated(e, p) == 0 for e in equal) and all(evaluated(e, p) >= 0 for e in least)
    ]
    if linear.impossible(equal, [*least, *box]):
        assert not solutions
    target = Polynomial.name("a") + Polynomial.name("b") * 2
    low, high = linear.span(target, equal, [*least, *box])
    reached = [evaluated(target, p) for p in solutions]
    if reached:
        assert low is not None
        assert high is not None
        assert low <= min(reached) <= max(reached) <= high


R = range(-4, 5)


def test_a_loop_that_stands_twice_in_the_tree_is_judged_by_both_places():
    text = "for i in range(N):\n    x[i] = x[i + t]\n"
    inner = parse(text, ARRAYS).body
    first = parse(f"t = 0\n{text}t = 1\n", ARRAYS)
    twice = ir.Function(
        "twice",
        first.arg_order,
        first.arrays,
        first.scalars,
        {"t": "int64"},
        (first.body[0], *inner, first.body[2], *inner),
    )
    assert [verdict.parallel for verdict in verdicts(twice).values()] == [False]
