"""From the words on a command line to one typed configuration; everything wrong is refused here.

Hydra composes the chosen groups; values given on the command line are checked against the type of their
field and set on the result. Hydra's multirun, run folders and logging stay off: launching is our own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from hpcagent_bench import config, paths
from hpcagent_bench.config_check import Source, check_file, check_override, fields_of, unknown_key
from hpcagent_bench.errors import UserError, did_you_mean

COMMAND_LINE = "command line"
_MEMBER_GROUPS = frozenset(config.AXES.values())


class CompositionError(Exception):
    """The chosen groups do not compose; the message is the innermost cause."""


@dataclass
class Overrides:
    """Command-line words, split into the group members they choose and the values they set."""

    groups: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Composed:
    """A configuration, typed, and as the text that freezes it in a run tree."""

    root: config.Root
    text: str


def members(group: str, conf: Path | None = None) -> list[str]:
    """The names a configuration group offers, sorted."""
    return sorted(p.stem for p in ((conf or paths.conf_root()) / group).glob("*.yaml"))


def _label(conf: Path, path: Path) -> str:
    return f"{conf.name}/{path.relative_to(conf)}"


def _member(where: str, group: str, name: str, conf: Path) -> str:
    """``name`` when ``group`` offers it, else a refusal that names the nearest."""
    known = members(group, conf)
    if name not in known:
        raise UserError(
            f"{where}: {group}={name} is no {group} in {conf.name}/{group}", did_you_mean(name, known)
        )
    return name


def parse_words(words: Iterable[str], conf: Path) -> Overrides:
    """Split ``key=value`` words; a leading + is allowed, deletions and sweeps are not."""
    found = Overrides()
    for word in words:
        key, equals, value = word.partition("=")
        key = key.lstrip("+").strip()
        if word.startswith("~") or not equals or not key:
            raise UserError(
                f"{COMMAND_LINE}: '{word}' is not of the form key=value", "see --help for examples"
            )
        target = found.groups if key in config.GROUPS else found.values
        if key in target:
            raise UserError(f"{COMMAND_LINE}: {key} is given twice", "keep one of the two")
        if key in _MEMBER_GROUPS:
            axis = next(a for a, g in config.AXES.items() if g == key)
            raise UserError(
                f"{COMMAND_LINE}: {key}={value} names a member of an axis", f"type study.{axis}={value}"
            )
        target[key] = _member(COMMAND_LINE, key, value, conf) if key in config.GROUPS else value
    known = [*fields_of(config.Root)]
    for key, value in found.values.items():
        head = key.split(".")[0]
        if head not in known:
            raise unknown_key(Source(COMMAND_LINE), key, head, [*known, *config.GROUPS], value)
    return found


def _check_defaults(path: Path, conf: Path) -> None:
    """The group members that a file's ``defaults`` list chooses must exist."""
    loaded = OmegaConf.load(path)
    for entry in OmegaConf.to_container(loaded).get("defaults", []):  # type: ignore[union-attr]
        if not isinstance(entry, dict):
            continue
        for key, name in entry.items():
            group = key.removeprefix("override ").strip().lstrip("/").split("@")[0]
            if group not in config.GROUPS:
                raise UserError(
                    f"{_label(conf, path)}: defaults: {group} is no group", did_you_mean(group, config.GROUPS)
                )
            _member(_label(conf, path), group, str(name), conf)


def _check_group_file(conf: Path, group: str, name: str) -> None:
    path = conf / group / f"{name}.yaml"
    values = check_file(path, _label(conf, path), config.GROUPS[group])
    if "name" in values and values["name"] != name:
        raise UserError(
            f"{_label(conf, path)}: name={values['name']} is not the file's name", f"type name: {name}"
        )
    _check_defaults(path, conf)


def _check_all(conf: Path, first: dict[str, str]) -> None:
    """Check the files the command line chose, then config.yaml, then every other one."""
    for group, name in first.items():
        _check_group_file(conf, group, name)
    main = conf / "config.yaml"
    check_file(main, _label(conf, main), config.Root)
    _check_defaults(main, conf)
    for group in config.GROUPS:
        for name in members(group, conf):
            _check_group_file(conf, group, name)


def _compose(conf: Path, words: list[str]) -> tuple[DictConfig, dict[str, str]]:
    """Hydra's composition, and which member of each group it chose; CompositionError says why not."""
    from hydra import compose as hydra_compose  # here, so that a judge starts without loading Hydra
    from hydra import initialize_config_dir
    from hydra.core.config_store import ConfigStore
    from hydra.errors import HydraException

    ConfigStore.instance().store(name="root_schema", node=config.Root)
    try:
        with initialize_config_dir(str(conf), version_base="1.3", job_name="launch"):
            composed = hydra_compose("config", overrides=words, return_hydra_config=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise CompositionError(_first_line(error)) from error
    choices = {
        str(k): str(v) for k, v in composed.hydra.runtime.choices.items() if not str(k).startswith("hydra/")
    }
    OmegaConf.set_struct(composed, False)
    del composed["hydra"]
    OmegaConf.set_struct(composed, True)
    return composed, choices


def _apply(composed: DictConfig, values: dict[str, Any]) -> None:
    for key, value in values.items():
        try:
            parent, _, last = key.rpartition(".")
            by_number = last.isdigit() and isinstance(OmegaConf.select(composed, parent), DictConfig)
            if by_number:  # a table keyed by level
                OmegaConf.select(composed, parent)[int(last)] = value
            else:
                OmegaConf.update(composed, key, value, merge=False)
        except OmegaConfBaseException as error:
            reason = str(error).splitlines()[0]
            raise UserError(f"{COMMAND_LINE}: {key}={value} cannot be set: {reason}") from None


def _member_words(composed: DictConfig, study: str, from_line: Iterable[str], conf: Path) -> list[str]:
    """One composition word for each member of each axis of the study, and for each device's partition."""
    words = []
    for device, name in composed.study.partitions.items():
        where = (
            COMMAND_LINE if f"study.partitions.{device}" in from_line else f"{conf.name}/study/{study}.yaml"
        )
        if device not in config.DEVICES:
            hint = did_you_mean(device, config.DEVICES)
            raise UserError(f"{where}: study.partitions.{device}={name}: {device} is no device", hint)
        _member(where, "partition", name, conf)
        _check_group_file(conf, "partition", name)
        words.append(f"+partition@partitions.{device}={name}")
    for axis, group in config.AXES.items():
        where = COMMAND_LINE if f"study.{axis}" in from_line else f"{conf.name}/study/{study}.yaml"
        chosen = list(composed.study[axis])
        if not chosen:
            raise UserError(
                f"{where}: study.{axis} is empty", f"name one of: {', '.join(members(group, conf))}"
            )
        for name in chosen:
            _member(where, group, name, conf)
            _check_group_file(conf, group, name)
            if chosen.count(name) > 1:
                raise UserError(f"{where}: study.{axis} names '{name}' twice", "keep one of the two")
            words.append(f"+{group}@{axis}.{name}={name}")
    return words


def compose(words: Sequence[str], conf: Path | None = None) -> Composed:
    """The configuration that ``words`` (``+study=...``, ``group=name``, ``key=value``) describe.

    Raises UserError for anything that does not exist or does not fit, naming file or command line, key,
    value and the nearest valid one. Nothing is written and no job is touched.
    """
    conf = conf or paths.conf_root()
    overrides = parse_words(words, conf)
    if "study" not in overrides.groups:
        raise UserError("no study is named", f"type +study=NAME, one of: {', '.join(members('study', conf))}")
    values = {k: check_override(k, v, config.Root) for k, v in overrides.values.items()}
    groups = [f"{'+' if g == 'study' else ''}{g}={n}" for g, n in overrides.groups.items()]
    for group, name in overrides.groups.items():
        _check_group_file(conf, group, name)
    try:
        first, choices = _compose(conf, groups)
        for group, name in choices.items():
            if group in config.GROUPS:
                _check_group_file(conf, group, name)
        check_file(conf / "config.yaml", _label(conf, conf / "config.yaml"), config.Root)
        later = (*config.AXES, "partitions")  # what the study's own members become
        _apply(first, {k: v for k, v in values.items() if k.split(".")[0] not in later})
        chosen = _member_words(first, overrides.groups["study"], overrides.values, conf)
        composed, _ = _compose(conf, groups + chosen)
        _apply(composed, values)
        root = cast(config.Root, OmegaConf.to_object(composed))
    except (CompositionError, OmegaConfBaseException) as error:
        _check_all(conf, overrides.groups)
        raise UserError(f"{conf.name}: {_first_line(error)}") from None
    return Composed(root, OmegaConf.to_yaml(composed, resolve=True))


def _first_line(error: BaseException) -> str:
    """The most telling line of a composition error: the innermost cause's first."""
    while error.__cause__ is not None:
        error = error.__cause__
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def load(path: Path) -> config.Root:
    """The configuration frozen at ``path`` in a run tree."""
    if not path.is_file():
        raise UserError(f"{path} does not exist", "name a config.yaml of a run tree")
    values = check_file(path, str(path), config.Root)
    return cast(config.Root, _typed(config.Root, values))


def judge_and_sizes(frozen: Path | None, judge: str, sizes: str) -> tuple[config.Judge, config.Sizes]:
    """Settings of a judge: a frozen configuration, else the named members of conf/judge and conf/sizes."""
    if frozen is not None:
        root = load(frozen)
        return root.judge, root.sizes
    conf = paths.conf_root()
    return (
        cast(config.Judge, _member_settings(conf, "judge", judge)),
        cast(config.Sizes, _member_settings(conf, "sizes", sizes)),
    )


def _member_settings(conf: Path, group: str, name: str) -> Any:
    path = conf / group / f"{_member(COMMAND_LINE, group, name, conf)}.yaml"
    return _typed(config.GROUPS[group], check_file(path, _label(conf, path), config.GROUPS[group]))


def _typed(kind: type, values: dict[Any, Any]) -> Any:
    return OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(kind), OmegaConf.create(values)))
