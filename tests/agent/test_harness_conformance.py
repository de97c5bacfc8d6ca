"""What every harness that needs no model must do, whichever it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from agent_rig import CORRECT, FakeJudge, Run
from hpcagent_agent.harnesses import HARNESSES

from hpcagent_bench import seal

CONF = Path(__file__).resolve().parents[2] / "conf" / "harness"
SOURCE = """#include <stdint.h>
void tsvc_2_s311_fp64(const double *restrict a, double *restrict sum_out, const int64_t LEN_1D,
                      uint8_t *restrict workspace, const int64_t workspace_size)
{
    double s = 0.0;
    for (int64_t i = 0; i < LEN_1D; i++) { s = s + a[i]; }
    sum_out[0] = s;
}
"""
SHAPE = {"kind": "ptr", "dtype": "float64", "shape": ["LEN_1D"]}
BINDING = {
    "symbol": "tsvc_2_s311_fp64",
    "args": [{**SHAPE, "name": "a", "const": True}, {**SHAPE, "name": "sum_out", "const": False}],
}


@pytest.fixture(params=sorted(HARNESSES))
def harness(request: pytest.FixtureRequest, run: Run) -> str:
    task = run.root / "shared" / "tasks" / "tsvc_2_s311"
    (task / "tsvc_2_s311.c").write_text(SOURCE)
    (task / "binding.json").write_text(json.dumps(BINDING))
    return str(request.param)


def drive(run: Run, harness: str, **changes: Any) -> tuple[int, str]:
    config = run.config(list(HARNESSES[harness]), **changes)
    told = json.loads(config.read_text())
    told["harness"] |= {"name": harness, "options": {"budget": 2}}
    config.write_text(json.dumps(told))
    process = run.start(config)
    out, _ = process.communicate(timeout=90)
    return process.returncode, out


def test_it_submits_once_and_closes(run: Run, judge: FakeJudge, harness: str) -> None:
    code, out = drive(run, harness)
    assert code == 0, out
    assert len(judge.posts("/submit")) == 1
    sent = judge.posts("/submit")[0]
    assert (sent["kernel"], sent["language"], sent["rank"]) == ("tsvc_2_s311", "c", 0)
    assert "tsvc_2_s311_fp64" in sent["source"]
    assert (
        json.loads((run.worker_dir() / "workspace" / "harness-end.json").read_text())["reason"] == "finished"
    )
    assert (run.worker_dir() / ".submission-spent").exists()


def test_its_tokens_are_zero_and_say_so(run: Run, harness: str) -> None:
    drive(run, harness)
    tokens = run.tokens()
    assert (tokens["tokens_effective"], tokens["output_source"], tokens["attempts"]) == (0, "none", 1)


def test_it_takes_no_second_try_at_a_wrong_answer(run: Run, judge: FakeJudge, harness: str) -> None:
    judge.script["/submit"] = [(200, {"correct": "no", "request_id": "r"})]
    code, _ = drive(run, harness)
    assert (code, len(judge.posts("/submit")), run.tokens()["attempts"]) == (0, 1, 1)


def test_a_refusal_is_final(run: Run, judge: FakeJudge, harness: str) -> None:
    judge.script["/submit"] = [(400, {"error": "not like this"})]
    drive(run, harness)
    assert run.tokens()["attempts"] == 1
    assert not (run.worker_dir() / ".submission-spent").exists()


def test_a_fault_of_the_judge_is_tried_again(run: Run, judge: FakeJudge, harness: str) -> None:
    fault = {"correct": "no", "judge_fault": True, "request_id": "r"}
    judge.script["/submit"] = [(200, fault), (200, {"correct": "yes", "request_id": "s"})]
    code, _ = drive(run, harness)
    assert (code, run.tokens()["attempts"]) == (0, 2)
    assert (run.worker_dir() / ".submission-spent").exists()


def test_blind_it_never_scores(run: Run, judge: FakeJudge, harness: str) -> None:
    code, _ = drive(run, harness, submission_mode="blind")
    assert (code, judge.posts("/score"), len(judge.posts("/submit"))) == (0, [], 1)


def test_without_a_source_it_ends_with_a_reason(run: Run, judge: FakeJudge, harness: str) -> None:
    (run.root / "shared" / "tasks" / "tsvc_2_s311" / "tsvc_2_s311.c").unlink()
    drive(run, harness)
    end = json.loads((run.worker_dir() / "workspace" / "harness-end.json").read_text())
    assert end["reason"] == "error"
    assert "tsvc_2_s311.c" in end["detail"]
    assert judge.posts("/submit") == []


def test_it_runs_under_the_projects_seal(run: Run, judge: FakeJudge, harness: str) -> None:
    judge.script["/score"] = [(200, {**CORRECT, "cells": [{"ratio": 1.5, "native_ns": 1.0}]})]
    prefix = seal.agent(workdir=Path("{workdir}"), env={}, judge_socket=Path("{socket}"))
    problem = json.loads(run.config("pass").read_text())["problems"][0]
    code, out = drive(run, harness, problems=[{**problem, "seal_argv": prefix}], seal={"enabled": True})
    assert code == 0, out
    assert len(judge.posts("/submit")) == 1


def test_its_configuration_names_the_registered_program(harness: str) -> None:
    loaded = yaml.safe_load((CONF / f"{harness}.yaml").read_text())
    assert tuple(loaded["argv"]) == HARNESSES[harness]
    assert loaded["needs_model"] is False
