"""Names in emitted text: each one spelled as its language can, and helpers written out once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable


class Names:
    """The spelling of every name of a function in one language, each one different."""

    def __init__(self, spell: Callable[[str], str], key: Callable[[str], str] = str) -> None:
        self._spell, self._key = spell, key
        self._spelled: dict[str, str] = {}
        self._taken: set[str] = set()

    def add(self, names: Iterable[str]) -> None:
        """Spell names of the reference; one that clashes with an earlier one gets a number."""
        for name in names:
            if name not in self._spelled:
                self._spelled[name] = self.fresh(self._spell(name))

    def fresh(self, wanted: str) -> str:
        """``wanted`` or the first of wanted2, wanted3, ... that nothing else is called."""
        name, count = wanted, 1
        while self._key(name) in self._taken:
            count += 1
            name = f"{wanted}{count}"
        self._taken.add(self._key(name))
        return name

    def __contains__(self, name: object) -> bool:
        return name in self._spelled

    def __getitem__(self, name: str) -> str:
        return self._spelled[name]


class Library(ABC):
    """Helpers an emitted file needs, in the order of their first use."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.texts: list[str] = []
        self._known: dict[tuple[str, str], str] = {}

    def helper(self, base: str, dtype: str, name: str | None = None) -> str:
        """The name of a helper for ``dtype``, which is written out once."""
        wanted = name or widest(base, dtype)
        return self._once(
            wanted, dtype, lambda spelled: self.texts.append(self._written(base, dtype, spelled))
        )

    @property
    def spelled(self) -> tuple[str, ...]:
        """The names of the helpers so far."""
        return tuple(self._known.values())

    def _once(self, wanted: str, dtype: str, make: Callable[[str], None]) -> str:
        if (wanted, dtype) not in self._known:
            self._known[wanted, dtype] = spelled = self.names.fresh(wanted)
            make(spelled)
        return self._known[wanted, dtype]

    @abstractmethod
    def _written(self, base: str, dtype: str, spelled: str) -> str: ...


def widest(name: str, dtype: str) -> str:
    """A helper's name for a dtype: the plain one for the usual dtypes."""
    return name if dtype in ("float64", "int64", "complex128") else f"{name}_{dtype}"


def bits(dtype: str) -> int:
    """The width of an integer or float dtype: 32 of ``uint32``."""
    return int("".join(character for character in dtype if character.isdigit()))
