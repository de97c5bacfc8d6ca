"""What a final grade must be under a judge's configuration (scoring.md 1.6)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from hpcagent_bench import config, paths, protocols
from hpcagent_bench.corpus import spec
from hpcagent_bench.errors import UserError
from hpcagent_bench.finals import Cut, FinalRule
from hpcagent_bench.harness import grading_cuts

CONFIG = "config.yaml"
"""The configuration a launch freezes in its run root, beside results.db."""


def of(judge: config.Judge, stamp: str | None = None, cuts_file: Path = grading_cuts.FILE) -> FinalRule:
    """The rule of a judge's settings; ``stamp`` asks for another final protocol than the credited one."""
    protocol = protocols.credited(stamp or judge.measurement.credited_protocol)
    names = _denominators(judge.measurement)
    return FinalRule(
        stamp=protocol.stamp,
        denominators=names,
        sealed=judge.grading.seal,
        cuts=_cuts(names, cuts_file),
    )


def _denominators(settings: config.Measurement) -> dict[str, str]:
    """``denominator.for_kernel`` of every kernel, without reading whole manifests: a plan asks often."""
    base, found = paths.benchmarks_root(), {}
    for kernel, folder in spec.discover().items():
        track = folder.relative_to(base).parts[0]
        if _ships_baseline(folder / f"{kernel}.yaml"):
            found[kernel] = "vendored"
        elif hasattr(settings.denominator, track):
            found[kernel] = getattr(settings.denominator, track)
    return found


@functools.cache
def _ships_baseline(manifest: Path) -> bool:
    """Whether a kernel is measured against a baseline of its own (scoring.md 1.4)."""
    text = manifest.read_text(encoding="utf-8")
    if "baseline" not in text:
        return False
    raw = yaml.safe_load(text)
    return isinstance(raw, dict) and raw.get("baseline") is not None


def raced(denominator: str) -> tuple[str, ...]:
    """The reference kinds a named denominator races."""
    return tuple(denominator.removeprefix("best-of(").removesuffix(")").split(","))


def _cuts(denominators: Mapping[str, str], path: Path) -> dict[str, Cut]:
    cuts = grading_cuts.load(denominators, path)
    if not cuts.kernels and not cuts.references:
        return {}
    found = {kernel: cuts.of(kernel, raced(name)) for kernel, name in denominators.items()}
    return {kernel: cut for kernel, cut in found.items() if cut is not None}


def beside(results_db: Path) -> FinalRule | None:
    """The rule of the configuration frozen beside a results database; None where there is none."""
    path = results_db.parent / CONFIG
    return of(frozen_judge(path)) if path.is_file() else None


def frozen_judge(path: Path) -> config.Judge:
    """The judge's settings of a frozen configuration; UserError when the file is something else."""
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
        told: Any = raw.get("judge", {}) if isinstance(raw, dict) else None
        if not isinstance(told, dict):
            raise UserError(f"{path}: not a configuration of a run")
        settings = OmegaConf.merge(OmegaConf.structured(config.Judge), OmegaConf.create(told))
        return cast(config.Judge, OmegaConf.to_object(settings))
    except (OSError, yaml.YAMLError, OmegaConfBaseException) as error:
        raise UserError(f"{path}: {str(error).splitlines()[0]}", "name a config.yaml of a run tree") from None
