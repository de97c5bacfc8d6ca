"""Answers by the request that asked for them, so that asking again grades nothing twice."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcagent_bench import paths
from hpcagent_bench.cluster.identity import Caller
from hpcagent_bench.cluster.refusals import Refused
from hpcagent_bench.cluster.requests import Request

REMEMBERED = 1024
"""Answers kept in memory by a judge that writes none down."""

Answer = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """One request under its key: ``name`` is of route, episode, kernel and key, ``digest`` of the rest."""

    name: str
    digest: str


def asked(route: str, request: Request, caller: Caller) -> Asked | None:
    """The request under its own key; None when it has none."""
    if request.request_id is None:
        return None
    submission = request.submission
    key = [route, *caller.episode.key, submission.kernel.name, request.request_id]
    held: list[Any] = [submission.language, submission.source_mode, submission.source, submission.family]
    held += [submission.build, submission.libraries, submission.workspace_bytes, submission.workspace]
    if submission.library is not None:
        held.append(hashlib.sha256(submission.library.read_bytes()).hexdigest())
    return Asked(_digest(key), _digest(held))


def _digest(parts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class Replies:
    """Answers given and under way. ``folder`` keeps them over a restart; None only remembers."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._guard = threading.Lock()
        self._under_way: dict[str, tuple[str, Future[Answer]]] = {}
        self._held: OrderedDict[str, tuple[str, Answer]] = OrderedDict()

    def find(self, wanted: Asked) -> Future[Answer] | None:
        """The answer to this very request, given or under way; Refused when its key stood for another one."""
        with self._guard:
            digest, found = self._under_way.get(wanted.name, ("", None))
        if found is None:
            kept = self._kept(wanted.name)
            if kept is None:
                return None
            digest, found = kept[0], Future()
            found.set_result(kept[1])
        if digest != wanted.digest:
            raise Refused(400, "request_id stands for another request already; choose a new one")
        return found

    def begin(self, wanted: Asked, future: Future[Answer]) -> None:
        """Note that the request is being answered."""
        with self._guard:
            self._under_way[wanted.name] = (wanted.digest, future)
        future.add_done_callback(lambda _: self._end(wanted.name))

    def _end(self, name: str) -> None:
        with self._guard:
            self._under_way.pop(name, None)

    def keep(self, wanted: Asked, answer: Answer) -> None:
        """Keep the answer. One that cannot be written is only not known later: its grade is recorded."""
        if self._folder is None:
            with self._guard:
                self._held[wanted.name] = (wanted.digest, answer)
                if len(self._held) > REMEMBERED:
                    self._held.popitem(last=False)
            return
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            body = json.dumps({"digest": wanted.digest, "answer": answer})
            paths.write_atomic(self._folder / f"{wanted.name}.json", body, mode=0o600)

    def _kept(self, name: str) -> tuple[str, Answer] | None:
        if self._folder is None:
            with self._guard:
                return self._held.get(name)
        try:
            kept = json.loads((self._folder / f"{name}.json").read_text())
            return kept["digest"], kept["answer"]
        except (OSError, ValueError, KeyError):
            return None
