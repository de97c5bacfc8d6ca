"""Every kernel of the corpus passes the gate."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hpcagent_bench.corpus import spec
from hpcagent_bench.corpus_check import gate, pool
from hpcagent_bench.corpus_check.findings import Report

FIXTURES = Path(__file__).parent.parent / "corpus" / "fixtures"


@pytest.fixture(scope="session")
def report_of(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Report]]:
    """The reports of the kernels that this session asks for, made by as many workers as there are cores."""
    tests = (item for item in request.session.items if item.name.startswith("test_kernel["))
    wanted = [test.callspec.params["name"] for test in tests if isinstance(test, pytest.Function)]
    running = pool.check(wanted, jobs=len(os.sched_getaffinity(0)), fixtures=FIXTURES)
    done: dict[str, Report] = {}

    def report(name: str) -> Report:
        while name not in done:
            found = next(running)
            done[found.kernel] = found
        return done[name]

    yield report
    running.close()


@pytest.mark.parametrize("name", sorted(spec.discover()))
def test_kernel(name: str, report_of: Callable[[str], Report]) -> None:
    report = report_of(name)
    assert report.ok, [(finding.check, finding.detail) for finding in report.failures]
    assert report.languages == gate.LANGUAGES


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.c")), ids=lambda path: path.stem)
def test_every_hand_written_rewrite_belongs_to_a_kernel(path: Path) -> None:
    owners = [name for name in spec.discover() if path.name.startswith(f"{name}_")]
    symbols = [spec.load(name).symbol for name in owners]
    assert any(f"{symbol}(" in path.read_text() for symbol in symbols)
