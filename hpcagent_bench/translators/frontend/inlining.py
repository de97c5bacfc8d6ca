"""A function's statements under names of their own, to be read in place of a call."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)


def scalars_only(definition: ast.FunctionDef) -> bool:
    """Whether a function handles nothing but single values (tuples of targets apart) and returns one."""
    for node in ast.walk(definition):
        if isinstance(node, (ast.Subscript, ast.List)):
            return False
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            return False
        if isinstance(node, ast.Attribute) and node.attr in (
            "zeros",
            "empty",
            "ones",
            "full",
            "arange",
            "shape",
        ):
            return False
    return any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(definition))


def returned(definition: ast.FunctionDef) -> ast.Return | None:
    """The return that ends a function, an empty one when it has none; None when there are others."""
    returns = [node for node in ast.walk(definition) if isinstance(node, ast.Return)]
    if not returns:
        return ast.copy_location(ast.Return(None), definition)
    last = definition.body[-1]
    return last if isinstance(last, ast.Return) and len(returns) == 1 else None


@dataclass
class Renaming:
    """New names for a function's parameters and locals, as ``fresh`` gives them.

    An index of loops keeps its name where the caller uses that for nothing but loops that are not open.
    """

    fresh: Callable[[str], str]
    indices: set[str]
    open: set[str]
    names: dict[str, str] = field(default_factory=dict)
    stores: Counter[str] = field(default_factory=Counter)
    loops: set[str] = field(default_factory=set)

    def function(
        self, definition: ast.FunctionDef, end: ast.Return
    ) -> tuple[list[ast.stmt], ast.expr | None]:
        """Body without its return, and what is returned."""
        own = [arg.arg for arg in definition.args.args]
        every = [node for top in definition.body for node in ast.walk(top)]
        stored = Counter(n.id for n in every if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        targets = [n.target.id for n in every if isinstance(n, ast.For) and isinstance(n.target, ast.Name)]
        loops = {name for name, count in Counter(targets).items() if stored[name] == count}
        for name in dict.fromkeys([*own, *stored]):
            keep = name in loops and name in self.indices and name not in self.open
            self.names[name] = name if keep else self.fresh(name)
        self.loops = {self.names[name] for name in loops}
        self.stores = Counter({self.names[name]: count for name, count in stored.items()})
        for name in own:
            self.stores[self.names[name]] += 1
        body = [self._renamed(stmt) for stmt in definition.body if stmt is not end]
        return body, None if end.value is None else self._renamed(end.value)

    def _renamed(self, node: Node) -> Node:
        result = copy.deepcopy(node)
        for part in ast.walk(result):
            if isinstance(part, ast.Name):
                part.id = self.names.get(part.id, part.id)
        return result
