"""The line before the judge's desk: work for one thread, in which those who wait take turns."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any


class Full(Exception):
    """No more may wait; ``waiting`` do already."""

    def __init__(self, waiting: int) -> None:
        super().__init__(f"{waiting} requests wait already")
        self.waiting = waiting


@dataclass
class _Item:
    work: Callable[[], Any]
    name: Hashable
    future: Future[Any] = field(default_factory=Future)


class Line:
    """Runs work in one thread of its own. Of those who wait, each has one piece done in turn.

    ``most`` bounds how many pieces wait in all, and ``put``'s ``most_own`` those of one. ``prepare`` runs
    first in the thread. A piece whose Future is dropped is done all the same.
    """

    def __init__(self, most: int, prepare: Callable[[], None] = lambda: None) -> None:
        self._most = most
        self._prepare = prepare
        self._changed = threading.Condition()
        self._rows: OrderedDict[Hashable, deque[_Item]] = OrderedDict()
        self._running: tuple[Hashable, Hashable] | None = None
        self._closed = False
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """How many pieces wait or are being done."""
        with self._changed:
            return self._waiting() + (self._running is not None)

    def put(
        self, who: Hashable, work: Callable[[], Any], *, name: Hashable = None, most_own: int | None = None
    ) -> Future[Any]:
        """Queue ``work`` of ``who``; Full when too many wait, RuntimeError once closed."""
        item = _Item(work, name)
        with self._changed:
            if self._closed:
                raise RuntimeError("the line is closed")
            own = self._rows.get(who, ())
            if self._waiting() >= self._most or (most_own is not None and len(own) >= most_own):
                raise Full(self._waiting())
            self._rows.setdefault(who, deque()).append(item)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="grader")
                self._thread.start()
            self._changed.notify()
        return item.future

    def position(self, who: Hashable, name: Hashable = None) -> int | None:
        """How many go before the piece of ``who`` called ``name`` (None: the first); 0 is being done."""
        with self._changed:
            if self._running is not None and self._running[0] == who and name in (None, self._running[1]):
                return 0
            names = [item.name for item in self._rows.get(who, ())]
            if not names or (name is not None and name not in names):
                return None
            turn = 0 if name is None else names.index(name)
            rows = list(self._rows)
            place = rows.index(who)
            before = sum(
                min(len(self._rows[other]), turn + (k < place)) for k, other in enumerate(rows) if k != place
            )
            return before + turn + 1

    def close(self) -> None:
        """Drop what waits and let nothing new in; what is being done goes on."""
        with self._changed:
            self._closed = True
            dropped = [item for row in self._rows.values() for item in row]
            self._rows.clear()
            self._changed.notify()
        for item in dropped:
            item.future.cancel()

    def _waiting(self) -> int:
        return sum(len(row) for row in self._rows.values())

    def _next(self) -> _Item | None:
        with self._changed:
            while not self._rows and not self._closed:
                self._changed.wait()
            if not self._rows:
                return None
            who, row = self._rows.popitem(last=False)
            item = row.popleft()
            if row:
                self._rows[who] = row
            self._running = (who, item.name)
            return item

    def _run(self) -> None:
        self._prepare()
        while (item := self._next()) is not None:
            if not item.future.set_running_or_notify_cancel():
                self._finish()
                continue
            try:
                result = item.work()
            except BaseException as error:
                self._finish()
                item.future.set_exception(error)
            else:
                self._finish()
                item.future.set_result(result)
            del item

    def _finish(self) -> None:
        with self._changed:
            self._running = None
