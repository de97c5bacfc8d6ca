"""A study expanded into setups and their work, and the digest by which a study is known again."""

from __future__ import annotations

import dataclasses
import fnmatch
import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hpcagent_bench import config, protocols, study_tags
from hpcagent_bench.corpus import spec
from hpcagent_bench.episodes import Work
from hpcagent_bench.errors import UserError, did_you_mean
from hpcagent_bench.results_db import Setup


@dataclass(frozen=True)
class StudySetup:
    """One setup: the row that is recorded, and the settings its jobs run with."""

    row: Setup
    model: config.Model
    language: config.Language
    packet: config.Packet
    harness: config.Harness

    @property
    def name(self) -> str:
        """The setup's recorded name."""
        return self.row.setup


def slug(text: str) -> str:
    """``text`` as a part of names: lower case, everything but letters, digits, '.' and '_' becomes '-'."""
    return re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-.")


def setup_name(experiment: str, model: config.Model, language: str, packet: str, harness: str) -> str:
    """``<experiment>-<model>-<language>[-<packet>][-<harness>]``; no model, no packet: left out."""
    parts = [experiment, "" if model.model is None else model.name, language, packet, harness]
    return "-".join(slug(part) for part in parts if part)


def expand(root: config.Root) -> tuple[StudySetup, ...]:
    """Every combination of the study's axes, in the order the study names them.

    A harness that needs a model is not combined with the row that has none, and a model is not combined with
    a harness that would not ask it; a study with no combination left is refused.
    """
    study, found = root.study, {}
    for m, lang, p, h in itertools.product(study.models, study.languages, study.packets, study.harnesses):
        model, language = root.models[m], root.languages[lang]
        packet, harness = root.packets[p], root.harnesses[h]
        if harness.needs_model != (model.model is not None):
            continue
        name = setup_name(study.experiment, model, language.name, packet.packet, harness.name)
        if name in found:
            raise UserError(
                f"study {study.experiment}: two setups are called {name}", "rename one of their members"
            )
        row = Setup(
            setup=name,
            study=study.experiment,
            model=model.model,
            language=language.name,
            device=language.device,
            packet=packet.packet,
            harness=harness.name,
            temperature=model.temperature,
        )
        found[name] = StudySetup(row, model, language, packet, harness)
    if not found:
        raise UserError(
            f"study {study.experiment}: no model fits a harness",
            "harnesses with needs_model: true want a model, the others want model none",
        )
    return tuple(found.values())


def kernels_of(root: config.Root) -> tuple[str, ...]:
    """The kernels of the study's tag; each must exist in the corpus."""
    names = study_tags.load_tag(root.study.tag)
    known = spec.discover()
    for name in names:
        if name not in known:
            raise UserError(f"tag {root.study.tag}: no kernel '{name}'", did_you_mean(name, known))
    return tuple(names)


def chosen(names: Sequence[str], patterns: Iterable[str], key: str) -> tuple[str, ...]:
    """The names that some pattern matches, all without patterns; a pattern that matches none is refused."""
    wanted = list(patterns)
    for pattern in wanted:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
            hint = did_you_mean(pattern, names)
            raise UserError(f"command line: {key}={pattern} matches none of {len(names)} {key}", hint)
    return tuple(n for n in names if not wanted or any(fnmatch.fnmatchcase(n, p) for p in wanted))


def work_of(setups: Iterable[str], kernels: Iterable[str], repeat: int) -> tuple[Work, ...]:
    """Every (setup, kernel, slot), setup by setup; slots count from 1 to ``repeat``."""
    slots = range(1, repeat + 1)
    return tuple(Work(s, k, n) for s, k, n in itertools.product(setups, kernels, slots))


def check(root: config.Root) -> None:
    """Refuse settings that contradict each other, before anything is planned."""
    protocols.credited(root.judge.measurement.credited_protocol)
    protocols.get(root.judge.measurement.preview_protocol)
    part, where = root.partition, f"partition {root.partition.name}"
    if part.mem and part.mem_per_cpu:
        raise UserError(
            f"{where}: mem={part.mem} and mem_per_cpu={part.mem_per_cpu} are both set", "keep one"
        )
    if part.judge_cores + part.agent_cores > part.cores:
        wanted = part.judge_cores + part.agent_cores
        raise UserError(
            f"{where}: judge_cores + agent_cores = {wanted} exceed cores={part.cores}", "raise cores"
        )
    if part.gpu_type and not part.gpus:
        raise UserError(
            f"{where}: gpu_type={part.gpu_type} without gpus", "set gpus, or leave gpu_type empty"
        )
    if root.cluster.executor == "local" and part.gpus:
        raise UserError(
            f"{where}: gpus={part.gpus} with cluster={root.cluster.name}", "choose a Slurm cluster"
        )


def identity(root: config.Root, setups: Iterable[StudySetup], kernels: Iterable[str]) -> str:
    """Digest of what makes results belong together; where and under which limits they ran is left out."""
    judge = root.judge
    body: dict[str, Any] = {
        "experiment": root.study.experiment,
        "setups": sorted(json.dumps(dataclasses.asdict(s.row), sort_keys=True) for s in setups),
        "options": {s.name: s.harness.options for s in setups},
        "tag": root.study.tag,
        "kernels": sorted(kernels),
        "repeat": root.study.repeat,
        "submission_mode": root.study.submission_mode,
        "sizes": root.sizes.name,
        "bytes": root.sizes.bytes,
        "datatype": judge.service.datatype,
        "protocols": [judge.measurement.credited_protocol, judge.measurement.preview_protocol],
        "denominator": dataclasses.asdict(judge.measurement.denominator),
        "seeds": dataclasses.asdict(judge.seeds),
        "fuzz": dataclasses.asdict(judge.fuzz),
        "seal": judge.grading.seal,
    }
    text = json.dumps(body, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
