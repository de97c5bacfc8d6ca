"""Reading a manifest's YAML, and turning what a model refuses into one line with file, key and hint."""

from __future__ import annotations

import re
import types
import typing
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hpcagent_bench.errors import UserError, did_you_mean

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one is ten times as fast, where it was built


class _UniqueKeys(_Loader):  # type: ignore[misc, valid-type]
    """Plain YAML, except that a key written twice is an error instead of the last one winning."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[Any, int] = {}
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            if isinstance(key, str) and key in lines:
                raise yaml.constructor.ConstructorError(
                    None,
                    None,
                    f"key '{key}' is written twice, in lines {lines[key]} and {line}",
                    key_node.start_mark,
                )
            if isinstance(key, str):
                lines[key] = line
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def load(path: Path) -> dict[str, Any]:
    """The mapping a YAML file holds; anything else is a UserError with file and line."""
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), _UniqueKeys)
    except OSError as error:
        raise UserError(f"{path}: cannot be read", error.strerror or str(error)) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise UserError(f"{path}{line}: not valid YAML", str(getattr(error, "problem", error))) from None
    if not isinstance(raw, dict):
        raise UserError(f"{path}: a manifest is a mapping of keys", "see any kernel's .yaml")
    return raw


def explain(error: ValidationError, model: type[BaseModel], path: Path) -> UserError:
    """The first problem as one line: file, key, value, and what is allowed."""
    first = _telling(error)
    place = _place(first)
    key = ".".join(place) or "manifest"
    if first["type"] == "extra_forbidden":
        known = _keys_at(model, place[:-1])
        return UserError(f"{path}: unknown key '{key}'", did_you_mean(place[-1], known))
    if first["type"] == "missing":
        return UserError(f"{path}: key '{key}' is missing")
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error" or isinstance(first["input"], (dict, list)):
        return UserError(f"{path}: {key}: {message}")
    return UserError(f"{path}: {key} = {first['input']!r}: {message}")


def _telling(error: ValidationError) -> ErrorDetails:
    """The error to show: an unknown key if there is one, else the first place, at its deepest.

    A union reports every form it tried: the form that got furthest is the one that was meant.
    """
    found = error.errors()
    unknown = [e for e in found if e["type"] == "extra_forbidden"]
    start = _place(found[0])
    same = [e for e in found if _place(e)[: len(start)] == start]
    return unknown[0] if unknown else max(same, key=lambda e: len(_place(e)))


def _place(error: ErrorDetails) -> list[str]:
    return [str(part) for part in error["loc"] if not _names_a_type(str(part), error["loc"])]


def _names_a_type(part: str, place: tuple[int | str, ...]) -> bool:
    """Whether a part of an error's place is pydantic's name of a union's member, not a key of the file."""
    return bool(re.search(r"[\[\]()]", part)) or (
        part in ("str", "int", "float", "Knob", "ScalarDecl") and len(place) > 1
    )


def _keys_at(model: type[BaseModel], place: list[str]) -> list[str]:
    """The keys of the block at ``place``: through the models' own fields, and the entries of mappings."""
    here: Any = model
    for part in place:
        fields = here.model_fields if isinstance(here, type) and issubclass(here, BaseModel) else None
        if fields is None:
            break
        named = {field.alias or name: field for name, field in fields.items()}
        if part in named:
            inner = _model_in(named[part].annotation)
            here = inner or here
    return [field.alias or name for name, field in here.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model an annotation holds, itself or as the entries of a mapping or union."""
    if (
        isinstance(annotation, type)
        and issubclass(annotation, BaseModel)
        and not isinstance(annotation, types.GenericAlias)
    ):
        return annotation
    for argument in typing.get_args(annotation):
        found = _model_in(argument)
        if found is not None:
            return found
    return None
