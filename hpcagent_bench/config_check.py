"""Checks configuration text against the typed groups before anything is composed.

YAML and the override grammar both guess types: ``12e4567`` becomes infinity, ``1.10`` becomes 1.1 and
``1:30:00`` becomes 5400. So values are read here as text, with the type of their field in hand, and whatever
does not fit is refused in one line that names the place, the key, the value and what to type.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hpcagent_bench.errors import UserError, did_you_mean

_NUMBER = re.compile(r"[-+]?(\d[\d_]*)?(\.[\d_]*)?([eE][-+]?\d+)?")
_NULL = ("", "~", "null", "Null", "NULL")
_TRUE = ("true", "True", "TRUE")
_FALSE = ("false", "False", "FALSE")


@dataclass(frozen=True)
class Source:
    """Where a value was written: a file (and its line), or the command line."""

    label: str
    line: int | None = None

    def at(self, line: int) -> Source:
        """The same file at another line; the command line has none."""
        return self if self.line is None else dataclasses.replace(self, line=line)

    def __str__(self) -> str:
        return self.label if self.line is None else f"{self.label}:{self.line}"


def _fail(source: Source, key: str, value: str, problem: str, hint: str = "") -> UserError:
    return UserError(f"{source}: {key}={value} {problem}", hint)


def fields_of(cls: type) -> dict[str, tuple[Any, Mapping[str, Any]]]:
    """Field name -> (resolved type, metadata) of a settings class."""
    hints = typing.get_type_hints(cls)
    return {f.name: (hints[f.name], f.metadata) for f in dataclasses.fields(cls)}


def unknown_key(
    source: Source, key: str, name: str, valid: Iterator[str] | list[str], value: str
) -> UserError:
    """The refusal of a key that does not exist; ``key`` is the dotted one, ``name`` its last part."""
    return _fail(source, key, value, "names an unknown key", did_you_mean(name, valid))


def _optional(kind: Any) -> tuple[Any, bool]:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        inner = [a for a in typing.get_args(kind) if a is not type(None)]
        return inner[0], len(inner) < len(typing.get_args(kind))
    return kind, False


def _shown(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return str(node.value) if node.style is None else repr(node.value)
    return "{...}" if isinstance(node, yaml.MappingNode) else "[...]"


def _looks_typed(text: str) -> str | None:
    """What a plain scalar is taken for when it is not text ('a number', ...), else None."""
    if text in _NULL:
        return "nothing"
    tag = str(yaml.SafeLoader("").resolve(yaml.ScalarNode, text, (True, False)))  # type: ignore[no-untyped-call]
    if tag.endswith(":bool"):
        return "a truth value"
    if tag.endswith((":int", ":float")) or (any(c.isdigit() for c in text) and _NUMBER.fullmatch(text)):
        return "a number"
    return "a date" if tag.endswith(":timestamp") else None


def _text(source: Source, key: str, node: yaml.ScalarNode) -> str:
    taken_for = _looks_typed(node.value) if node.style is None else None
    if taken_for and "${" not in node.value:
        in_file = f'{key.rpartition(".")[2]}: "{node.value}"'
        quoted = f"'{key}=\"{node.value}\"'" if source.line is None else in_file
        problem = f"is read as {taken_for}, and text is wanted"
        raise _fail(source, key, node.value or "''", problem, f"quote it: {quoted}")
    return str(node.value)


def _number(source: Source, key: str, node: yaml.ScalarNode, kind: type) -> int | float:
    text = node.value.replace("_", "")
    try:
        if node.style is not None:
            raise ValueError
        value = int(text) if kind is int else float(text)
    except ValueError:
        wanted = "a whole number" if kind is int else "a number"
        raise _fail(source, key, _shown(node), f"is not {wanted}") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise _fail(source, key, node.value, "is not a finite number")
    return value


def _truth(source: Source, key: str, node: yaml.ScalarNode) -> bool:
    if node.style is None and node.value in _TRUE + _FALSE:
        return node.value in _TRUE
    raise _fail(source, key, _shown(node), "is not a truth value", "type true or false")


def _bounds(source: Source, key: str, value: Any, metadata: Mapping[str, Any]) -> None:
    if isinstance(value, str) and "${" in value:
        return
    choices = metadata.get("choices")
    if choices and value not in choices:
        raise _fail(
            source, key, repr(value), f"is none of {', '.join(choices)}", did_you_mean(value, choices)
        )
    pattern = metadata.get("pattern")
    if pattern and not re.fullmatch(pattern, value):
        raise _fail(source, key, repr(value), f"is not of the form {metadata['shape']}")
    least = metadata.get("at_least")
    if least is not None and value < least:
        raise _fail(source, key, str(value), f"is below {least}")


def _any(node: yaml.Node) -> Any:
    """An untyped value (a harness option), read as plain YAML."""
    return yaml.SafeLoader("").construct_object(node, deep=True)


def coerce(source: Source, key: str, node: yaml.Node, kind: Any, metadata: Mapping[str, Any]) -> Any:
    """The value of ``node`` as the type of its field, or a UserError that names place, key and value."""
    source = source.at(node.start_mark.line + 1) if node.start_mark else source
    kind, optional = _optional(kind)
    if optional and isinstance(node, yaml.ScalarNode) and node.style is None and node.value in _NULL:
        return None
    if kind is Any:
        return _any(node)
    if isinstance(node, yaml.ScalarNode) and "${" in node.value:
        return node.value
    origin = typing.get_origin(kind)
    if dataclasses.is_dataclass(kind) or origin is dict:
        if not isinstance(node, yaml.MappingNode):
            raise _fail(source, key, _shown(node), "is a single value, and a group of keys is wanted")
        return _mapping(source, key, node, kind)
    if origin is list:
        if not isinstance(node, yaml.SequenceNode):
            raise _fail(source, key, _shown(node), "is not a list", f"type {key}: [{_shown(node)}]")
        item = typing.get_args(kind)[0]
        return [coerce(source, f"{key}[{i}]", n, item, metadata) for i, n in enumerate(node.value)]
    if not isinstance(node, yaml.ScalarNode):
        raise _fail(source, key, _shown(node), "is not a single value")
    value: Any
    if kind is bool:
        value = _truth(source, key, node)
    elif kind is str:
        value = _text(source, key, node)
    else:
        value = _number(source, key, node, kind)
    _bounds(source, key, value, metadata)
    return value


def _mapping(source: Source, key: str, node: yaml.MappingNode, kind: Any) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    known = fields_of(kind) if dataclasses.is_dataclass(kind) else None  # type: ignore[arg-type]
    for name_node, child in node.value:
        here = source.at(name_node.start_mark.line + 1)
        name: Any = str(name_node.value)
        full = f"{key}.{name}" if key else name
        if name in found:
            raise _fail(here, full, _shown(child), "is given twice")
        if known is not None:
            if name not in known:
                raise unknown_key(here, full, name, list(known), _shown(child))
            found[name] = coerce(here, full, child, *known[name])
        else:
            key_kind, item_kind = typing.get_args(kind)
            name = _number(here, full, name_node, int) if key_kind is int else name
            found[name] = coerce(here, full, child, item_kind, {})
    return found


def parse_file(path: Path, label: str) -> yaml.MappingNode:
    """The YAML tree of ``path``; unreadable text is a UserError with its line. An empty file has no keys."""
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{label}:{line}: not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{label}: not valid YAML: {str(error).splitlines()[0]}") from None
    if node is None:
        return yaml.MappingNode("tag:yaml.org,2002:map", [])
    if not isinstance(node, yaml.MappingNode):
        raise UserError(f"{label}:1: holds no keys", "write one 'key: value' a line")
    return node


def check_file(path: Path, label: str, kind: Any, prefix: str = "") -> dict[Any, Any]:
    """The values of one configuration file, checked against ``kind``; its ``defaults`` list is left out."""
    node = parse_file(path, label)
    kept = [(k, v) for k, v in node.value if str(k.value) != "defaults"]
    body = yaml.MappingNode(node.tag, kept, node.start_mark, node.end_mark)
    return _mapping(Source(label, 1), prefix, body, kind)


def field_at(source: Source, key: str, root: type, value: str) -> tuple[Any, Mapping[str, Any]]:
    """Type and metadata of the dotted ``key`` below ``root``; an unknown part is refused with the nearest."""
    kind: Any = root
    metadata: Mapping[str, Any] = {}
    for part in key.split("."):
        kind, _ = _optional(kind)
        if dataclasses.is_dataclass(kind):
            known = fields_of(kind)  # type: ignore[arg-type]
            if part not in known:
                raise unknown_key(source, key, part, list(known), value)
            kind, metadata = known[part]
        elif typing.get_origin(kind) is dict:
            kind, metadata = typing.get_args(kind)[1], {}
        elif kind is Any:
            return Any, {}
        else:
            raise _fail(source, key, value, f"goes below a single value at '{part}'")
    return kind, metadata


def _plain(text: str) -> yaml.ScalarNode:
    """A command-line word as a scalar; quotes around it make it text."""
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return yaml.ScalarNode("", text[1:-1], style=text[0])
    return yaml.ScalarNode("", text)


def check_override(key: str, text: str, root: type) -> Any:
    """The value of ``key=text`` typed on the command line, checked against the field it sets.

    Text fields take their words literally (``a&b``, ``x=y``, ``gemm#1``), lists split at commas.
    """
    source = Source("command line")
    kind, metadata = field_at(source, key, root, text)
    inner, _ = _optional(kind)
    is_list = typing.get_origin(inner) is list
    if is_list and not text.startswith("["):
        words = [_plain(word) for word in text.split(",")] if text else []
        return coerce(source, key, yaml.SequenceNode("", list(words)), kind, metadata)
    if inner in (str, int, float, bool):
        return coerce(source, key, _plain(text), kind, metadata)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        raise _fail(source, key, text, "cannot be read", "type lists as [a,b] and groups as {a: 1}") from None
    if node is None:
        node = yaml.ScalarNode("", "")
    return coerce(source, key, node, kind, metadata)
