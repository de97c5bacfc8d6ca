"""Submissions of one small kernel, in honest and dishonest versions, and a judge in this process for them."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hpcagent_bench import config, translators
from hpcagent_bench.corpus import spec
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.harness import anticheat, grade_under, scoring
from hpcagent_bench.harness.building import builds
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.seeds import GradingSeeds
from hpcagent_bench.harness.submission import Grading, Rejection, Submission

KERNEL = spec.load("polygon_area_terms")
"""Reads x and y, uniform in [-1000, 1000), and writes area; the timed rung has 2**14 elements."""

SIZES = config.Sizes("tiny", 3 * 8 * 2**14)
PYTHON = """import numpy as np

def polygon_area_terms(x, y, area, LEN_1D):
    area[:] = (x + np.roll(x, 1)) * (y - np.roll(y, 1))
"""
FORTRAN = translators.emit(KERNEL, "fortran")


def version(before: str = "", after: str = "", head: str = "", language: str = "c") -> str:
    """The honest C or C++ source with statements before and after its work, and text ahead of it."""
    text = translators.emit(KERNEL, "c")
    opening = text.index("{\n", text.index(KERNEL.symbol)) + 2
    closing = text.rindex("}")
    body = f"{text[:opening]}{before}\n{text[opening:closing]}{after}\n{text[closing:]}"
    includes = "#include <stdlib.h>\n#include <limits.h>\n#include <time.h>\n#include <omp.h>\n"
    if language == "cpp":
        body = re.sub(r"\brestrict\b", "__restrict__", body).replace(
            f"void {KERNEL.symbol}", f'extern "C" void {KERNEL.symbol}'
        )
    return includes + head + body


def submission(source: str, language: str = "c", **more: object) -> Submission:
    """A submission of the kernel."""
    return Submission(KERNEL, language, source, **more)  # type: ignore[arg-type]


@contextmanager
def judge(cores: tuple[int, ...] = (0,)) -> Iterator[GradingContext]:
    """A judge on the tiny rung with the C reference as denominator."""
    settings = config.Judge()
    settings.measurement.denominator.loop_level_reasoning = "c"
    settings.measurement.node_check = "off"
    settings.timeouts.compile_s = 30.0
    settings.timeouts.kernel_s_override = 10.0
    made = GradingContext(settings, SIZES, cores, GradingSeeds(11, 22, 33))
    try:
        yield made
    finally:
        made.close()


def submit(context: GradingContext, source: str, language: str = "c", **more: object) -> scoring.Verdict:
    """The final grade of a source."""
    return grade_under.submit_grade(context, submission(source, language, **more))


def grading_of(context: GradingContext, kernel: Kernel, folder: Path = Path("/nowhere")) -> Grading:
    """A final grade of an empty submission, for what asks no candidate."""
    return Grading(context, Submission(kernel, "c", ""), grade_under.final_settings(context, kernel), folder)


@contextmanager
def built(context: GradingContext, given: Submission) -> Iterator[Grading]:
    """A final grade up to its builds, so that one later gate can be tried alone."""
    with tempfile.TemporaryDirectory() as folder:
        settings = grade_under.final_settings(context, given.kernel)
        grading = Grading(context, given, settings, Path(folder))
        builds.start(grading)
        assert grading.build is not None
        assert grading.build.ok, grading.build.log
        try:
            yield grading
        finally:
            if grading.untimed is not None:
                grading.untimed.close()


def gate(
    context: GradingContext, name: str, source: str, language: str = "c", **more: object
) -> tuple[Rejection | None, Grading]:
    """What one gate alone says to a source, and the grade it said it in."""
    check = next(one.check for one in anticheat.GATES if one.name == name)
    with built(context, submission(source, language, **more)) as grading:
        return check(grading), grading
