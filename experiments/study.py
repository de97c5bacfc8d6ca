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
from hpcagent_bench.toolchain import languages


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


def _fit(
    model: config.Model, language: config.Language, packet: config.Packet, harness: config.Harness
) -> bool:
    """Whether four members make a setup: a harness asks the model it needs and hands it the packet."""
    if harness.needs_model != (model.model is not None) or (packet.packet and not harness.needs_model):
        return False
    made_for = [limited.languages for limited in (packet, harness) if limited.languages]
    return all(language.name in languages for languages in made_for)


def expand(root: config.Root) -> tuple[StudySetup, ...]:
    """Every combination of the study's axes whose members fit, in the order the study names them.

    A harness that needs a model is not combined with the row that has none, and a model is not combined with
    a harness that would not ask it, nor is a packet; a packet or harness made for some languages meets no
    other. A study with no combination left is refused.
    """
    study, found = root.study, {}
    for m, lang, p, h in itertools.product(study.models, study.languages, study.packets, study.harnesses):
        model, language = root.models[m], root.languages[lang]
        packet, harness = root.packets[p], root.harnesses[h]
        if not _fit(model, language, packet, harness):
            continue
        in_name = (
            packet.in_names or packet.packet,
            harness.name if harness.in_names is None else harness.in_names,
        )
        name = setup_name(study.experiment, model, language.name, *in_name)
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


def controls(root: config.Root, setups: Sequence[StudySetup]) -> dict[str, str]:
    """Setup -> the setup it is compared with; a control has none, nor has what the study names none for.

    A control that is no setup of the study is refused.
    """
    names, found = [setup.name for setup in setups], {}
    for setup in setups:
        key = next((k for k in (setup.harness.name, setup.language.name) if k in root.study.controls), None)
        if key is None:
            continue
        control = root.study.controls[key].replace("{model}", slug(setup.model.name))
        if control not in names:
            where = f"study {root.study.experiment}: controls.{key}={root.study.controls[key]}"
            raise UserError(f"{where} is no setup for {setup.name}", did_you_mean(control, names))
        if control != setup.name:
            found[setup.name] = control
    return found


def partition_of(root: config.Root, device: str) -> config.Partition:
    """Where jobs for ``device`` run: its own partition of the study, else the launch's."""
    return root.partitions.get(device, root.partition)


def obstacle(setup: StudySetup) -> str | None:
    """Why this version cannot run a setup that a study may plan; None when it can."""
    if setup.row.device != "cpu":
        return f"device {setup.row.device} is not graded by this version"
    if setup.language.name not in languages.REGISTRY:
        return f"language {setup.language.name} is not built by this version"
    if setup.packet.packet:
        return f"packet {setup.packet.name} is not handed out by this version"
    if setup.harness.needs_model:
        return f"harness {setup.harness.name} asks a model, and this version relays to none"
    if not setup.harness.argv:
        return f"harness {setup.harness.name} names no program to run (argv)"
    return None


def refuse_obstacles(setups: Sequence[StudySetup], wanted: Iterable[str]) -> None:
    """Refuse a launch of which some wanted setup cannot run, before anything is queued."""
    names = set(wanted)
    stopped = [(s.name, why) for s in setups if s.name in names and (why := obstacle(s))]
    if not stopped:
        return
    able = [setup.name for setup in setups if obstacle(setup) is None]
    more = f" (and {len(stopped) - 1} more of {len(names)} setups)" if len(stopped) > 1 else ""
    hint = f"can run: setups={','.join(able)}" if able else ""
    raise UserError(f"{stopped[0][0]} cannot run: {stopped[0][1]}{more}", hint)


def kernels_of(root: config.Root) -> tuple[str, ...]:
    """The kernels of the study's tag; each must exist in the corpus."""
    names = study_tags.load_tag(root.study.tag)
    known = spec.discover()
    for name in names:
        if name not in known:
            raise UserError(f"tag {root.study.tag}: no kernel '{name}'", did_you_mean(name, known))
    return tuple(names)


def chosen(names: Sequence[str], patterns: Iterable[str], key: str) -> tuple[str, ...]:
    """The names that some pattern matches, all without patterns; a pattern that matches none is refused.

    ``*-autotune-*`` finds that part of a name at its end as well.
    """
    wanted = list(patterns)
    for pattern in wanted:
        if not any(_matches(name, pattern) for name in names):
            hint = did_you_mean(pattern, names)
            raise UserError(f"command line: {key}={pattern} matches none of {len(names)} {key}", hint)
    return tuple(n for n in names if not wanted or any(_matches(n, p) for p in wanted))


def _matches(name: str, pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(text, pattern) for text in (name, f"{name}-"))


def work_of(setups: Iterable[str], kernels: Iterable[str], repeat: int) -> tuple[Work, ...]:
    """Every (setup, kernel, slot), setup by setup; slots count from 1 to ``repeat``."""
    slots = range(1, repeat + 1)
    return tuple(Work(s, k, n) for s, k, n in itertools.product(setups, kernels, slots))


def check(root: config.Root) -> None:
    """Refuse settings that contradict each other, before anything is planned."""
    protocols.credited(root.judge.measurement.credited_protocol)
    protocols.get(root.judge.measurement.preview_protocol)
    for part in (root.partition, *root.partitions.values()):
        _check_partition(part)
    if root.cluster.executor == "local" and root.partition.gpus:
        raise UserError(
            f"partition {root.partition.name}: gpus={root.partition.gpus} with cluster={root.cluster.name}",
            "choose a Slurm cluster",
        )


def _check_partition(part: config.Partition) -> None:
    where = f"partition {part.name}"
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
