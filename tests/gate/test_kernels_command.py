"""``hpcagent-bench kernels``: what one types, what one reads, and the code it ends with."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from hpcagent_bench import cli
from hpcagent_bench.corpus import spec
from hpcagent_bench.corpus_check import gate, pool
from hpcagent_bench.toolchain.abi import binding


class Done(NamedTuple):
    code: int
    out: str
    err: str


Kernels = Callable[..., Done]


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Kernels:
    def run(*words: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["hpcagent-bench", "kernels", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, *capsys.readouterr())

    return run


def test_list_filters(kernels: Kernels) -> None:
    everything = json.loads(kernels("list", "--json").out)
    assert {row["kernel"] for row in everything} == set(spec.discover())
    chosen = json.loads(kernels("list", "--json", "--track", "loop_level_reasoning", "--level", "2").out)
    assert chosen == [
        row for row in everything if row["track"] == "loop_level_reasoning" and row["level"] == 2
    ]
    tagged = json.loads(kernels("list", "--json", "--tag", "quickstart").out)
    assert len(tagged) == 8
    assert all("quickstart" in row["tags"] for row in tagged)
    grids = json.loads(kernels("list", "--json", "--dwarf", "structured_grids").out)
    assert "heat_3d_jacobi" in {row["kernel"] for row in grids}
    assert {row["dwarf"] for row in grids} == {"structured_grids"}


def test_list_for_people(kernels: Kernels) -> None:
    lines = kernels("list", "--tag", "quickstart").out.splitlines()
    assert lines[-1] == "8 kernels"
    (row,) = [line for line in lines if "tsvc_2_s311" in line]
    assert "Sum Reduction" in row
    assert "3.88 GiB" in row  # 2 arrays of 260382392 doubles


def test_show(kernels: Kernels) -> None:
    page = json.loads(kernels("show", "tsvc_2_s115", "--json").out)
    kernel = spec.load("tsvc_2_s115")
    assert page["mathematics"].startswith("Forward substitution")
    assert page["bytes"]["S"] == 8 * (64 * 64 + 64)
    assert page["operations"]["counted"] == "exactly"
    assert page["operations"]["XL"]["flops"] == 22819 * 22818  # a product and a difference below the diagonal
    assert page["binding"] == binding(kernel).to_json()
    assert page["fingerprint"] == spec.task_fingerprint(kernel)
    assert [(loop["index"], loop["parallel"]) for loop in page["loops"]] == [("j", False), ("i", True)]
    assert page["tolerances"]["a"]["atol"] == kernel.manifest.conditioning_atol
    assert {"c", "cpp", "fortran", "numba"} <= page["references"].keys()
    text = kernels("show", "tsvc_2_s115").out
    assert "line 5, loop j: sequential: line 7 reads a[i], which an earlier iteration of j stores" in text
    assert "5.207e+08" in text


def test_emit(kernels: Kernels, tmp_path: Path) -> None:
    sequential = kernels("emit", "tsvc_2_s311", "--language", "c").out
    parallel = kernels("emit", "tsvc_2_s311", "--language", "c", "--parallel").out
    assert "void tsvc_2_s311_fp64(" in sequential
    assert "#pragma omp" not in sequential
    assert "reduction(+:" in parallel
    single = kernels("emit", "tsvc_2_s311", "--language", "c", "--datatype", "float32").out
    assert "const float *restrict a" in single
    target = tmp_path / "s311.f90"
    assert kernels("emit", "tsvc_2_s311", "--language", "fortran", "--out", str(target)).code == 0
    assert "subroutine tsvc_2_s311_fp64" in target.read_text()


WRONG = {
    (
        "list",
        "--track",
        "loops",
    ): "--track loops: no kernel has it; valid: loop_level_reasoning, scientific_computing",
    ("list", "--dwarf", "structured_grid"): "did you mean 'structured_grids'?",
    ("list", "--tag", "llr4"): "did you mean 'llr40'?",
    ("show", "tsvc_2_vtvt"): "kernel 'tsvc_2_vtvt' does not exist; did you mean 'tsvc_2_vtvtv'?",
    ("emit", "tsvc_2_s311", "--language", "cc"): "--language cc: not supported; did you mean 'c'?",
    ("emit", "tsvc_2_s311", "--language", "c", "--datatype", "fp46"): "did you mean 'fp64'?",
    ("emit", "tsvc_2_s311", "--language", "c", "--out", "/proc/x"): "--out /proc/x: ",
    ("check", "tsvc_2_s3111x"): "kernel 'tsvc_2_s3111x' does not exist; did you mean 'tsvc_2_s3111'?",
    ("check", "--corpus", "/nowhere"): "--corpus /nowhere: no such folder",
    ("new", "tsvc_2_s311"): "kernel 'tsvc_2_s311' exists: ",
    ("new", "Wave"): "'Wave' cannot be a kernel's name; use lower-case letters, digits and _",
    ("new", "while"): "'while' cannot be a kernel's name",
    ("new", "wave", "--track", "scientific_computing"): "needs --dwarf; one of dense_linear_algebra,",
    ("new", "wave", "--dwarf", "grids"): "--dwarf grids: not known; valid: branch_and_bound,",
    (
        "new",
        "wave",
        "--track",
        "loops",
    ): "--track loops: no kernels can be added there; valid: loop_level_reasoning,",
}


@pytest.mark.parametrize(("words", "message"), WRONG.items(), ids=[" ".join(words) for words in WRONG])
def test_mistakes_are_one_line_and_exit_code_2(
    words: tuple[str, ...], message: str, kernels: Kernels
) -> None:
    done = kernels(*words)
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "folder"),
    [
        ((), "loop_level_reasoning/damped_wave"),
        (
            ("--dwarf", "structured_grids", "--level", "2"),
            "scientific_computing/structured_grids/damped_wave",
        ),
    ],
)
def test_a_new_kernel_passes_with_no_other_edit(
    words: tuple[str, ...], folder: str, kernels: Kernels, tmp_path: Path
) -> None:
    corpus = ("--corpus", str(tmp_path))
    done = kernels("new", "damped_wave", *words, *corpus)
    assert done.code == 0
    written = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert written == [f"{folder}/damped_wave.yaml", f"{folder}/damped_wave_numpy.py"]
    assert f"kernels check damped_wave --corpus {tmp_path}" in done.out
    checked = kernels("check", "damped_wave", *corpus)
    assert checked.code == 0, checked.out
    assert checked.out.startswith("ok     damped_wave")
    assert "inputs in c cpp fortran numba" in checked.out
    assert "1 of 1 kernels pass" in checked.out
    assert kernels("new", "damped_wave", *corpus).code == 2


def test_titles_of_new_kernels_are_free(kernels: Kernels, tmp_path: Path) -> None:
    for name in ("a_rather_long_name_of_a_kernel_one", "a_rather_long_name_of_a_kernel_two"):
        assert kernels("new", name, "--corpus", str(tmp_path)).code == 0
    read = [yaml.safe_load(path.read_text()) for path in sorted(tmp_path.rglob("*.yaml"))]
    titles = [item["name"] for item in read] + [item["short-name"] for item in read]
    assert len(set(titles)) == 4
    assert all(len(item["name"]) <= 30 and len(item["short-name"]) <= 14 for item in read)


def test_a_failing_kernel_is_told_with_what_to_do(kernels: Kernels, tmp_path: Path) -> None:
    kernels("new", "damped_wave", "--corpus", str(tmp_path))
    (reference,) = tmp_path.rglob("*_numpy.py")
    reference.write_text(reference.read_text().replace("weight * abs(b[i])", "weight"))
    done = kernels("check", "--corpus", str(tmp_path))
    assert done.code == 1
    assert "failed damped_wave" in done.out
    assert done.out.rstrip().endswith("failed: damped_wave")
    (report,) = json.loads(kernels("check", "--json", "--corpus", str(tmp_path)).out)
    assert report["ok"] is False
    assert {finding["check"] for finding in report["findings"]} >= {"manifest", "numpy", "language: c"}


def test_every_check_can_be_printed(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def in_this_process(names: list[str], *, root: Path | None, **rest: object) -> object:
        return (gate.check_kernel(name, root) for name in names)

    monkeypatch.setattr(pool, "check", in_this_process)
    monkeypatch.setattr(gate, "LANGUAGES", ("c",))
    kernels("new", "damped_wave", "--corpus", str(tmp_path))
    text = kernels("check", "-v", "--corpus", str(tmp_path)).out
    assert "n/a    reject: transposed: out: makes no sense here" in text
    assert "ok     reject: single precision: out: caught on 15 of 15 inputs" in text
    assert "accept: gcc -O1: 0 % of the band" in text
