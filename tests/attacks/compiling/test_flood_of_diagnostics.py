"""Megabytes of messages: the log that is kept, and what is answered, stays at 64 KiB."""

from __future__ import annotations

from attack_rig import Rig, refused, version

from hpcagent_bench.harness.building.build_log import LOG_MAX

FLOODS = {
    "errors": "".join(f"undeclared_{k}!;\n" for k in range(2_000)),
    "warnings": "".join(f"#warning {'w' * 100} {k}\n" for k in range(2_000)) + "int broken[-1];",
    "long lines": f'_Static_assert(0, "{"x" * 300_000}");',
    "macros": "#define A(x) x x\n#define B(x) A(A(A(A(x))))\n#define C(x) B(B(B(x)))\nC(undeclared!;)\n",
}


def test_a_flood_is_a_failed_build_with_a_bounded_log(judge: Rig) -> None:
    for name, flood in FLOODS.items():
        verdict = judge.attack(version("HONEST;", flood))
        refused(verdict, "build_error", "error|time limit|left out")
        assert verdict.build is not None
        assert len(verdict.build.log) <= LOG_MAX + 100, name
        assert len(verdict.reason) <= 400, name


def test_twin_that_compiles_with_many_warnings_is_accepted(judge: Rig) -> None:
    verdict = judge.accepts(version("HONEST;", "".join(f"#warning {k}\n" for k in range(200))))
    assert verdict.build is not None
    assert len(verdict.build.log) <= LOG_MAX + 100
