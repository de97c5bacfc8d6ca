"""The judge's client: what agents, harnesses and the shell twin use to score and to submit.

Every call answers with a dictionary and raises nothing once the client exists: ``{"ok": True, **answer}`` for
whatever the judge answered with 200 (a failed build and a wrong answer too), else
``{"ok": False, "status", "error", "body"}``, where status 0 says that no answer came.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from hpcagent_agent.driver.files import write_atomic
from hpcagent_agent.driver.token_cost import read_usage

DEFAULT_TIMEOUT_S = 1800.0
EXTENSIONS = {".c": "c", ".cpp": "cpp", ".f90": "fortran", ".cu": "cuda", ".hip": "hip", ".py": "python"}
KEPT_SCORE = ".last-correct-score.json"

Answer = dict[str, Any]


def spends_submission(status: int, body: object) -> bool:
    """Whether an answer to /submit was a grade: a refusal and a fault of the judge leave the submission."""
    return status == 200 and isinstance(body, dict) and "correct" in body and not body.get("judge_fault")


class JudgeClient:
    """Speaks with one judge for one episode and kernel.

    Everything left out comes from the environment an agent gets: ``JUDGE_URL``, ``JUDGE_RANK``, ``KERNEL``,
    ``LANGUAGE``, ``HPCAGENT_BENCH_EPISODE_ID``, ``HPCAGENT_BENCH_OPTIMIZER``, ``JUDGE_TIMEOUT_SECONDS``. A
    token is needed only where no relay adds it. Raises ValueError when the environment lacks what it needs.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        kernel: str | None = None,
        language: str | None = None,
        rank: int | None = None,
        episode_id: str | None = None,
        optimizer: str | None = None,
        token: str | None = None,
        timeout_s: float | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        env = os.environ if environ is None else environ
        self.url = (url or env.get("JUDGE_URL", "")).rstrip("/")
        self.kernel = kernel or env.get("KERNEL", "")
        if not self.url:
            raise ValueError("JUDGE_URL is not set: it names the judge, for example http://127.0.0.1:8800")
        if not self.kernel:
            raise ValueError("KERNEL is not set: it names the kernel, for example tsvc_2_s311")
        self.language = language or env.get("LANGUAGE") or "c"
        self.rank = rank if rank is not None else int(env.get("JUDGE_RANK") or 0)
        self.episode_id = episode_id or env.get("HPCAGENT_BENCH_EPISODE_ID") or "adhoc"
        self.optimizer = optimizer or env.get("HPCAGENT_BENCH_OPTIMIZER") or ""
        self._usage = env.get("HPCAGENT_BENCH_USAGE_PATH") or ""
        self._marker = env.get("AGENT_SUBMISSION_MARKER") or ""
        self._workdir = env.get("AGENT_WORKDIR") or ""
        limit = (
            timeout_s
            if timeout_s is not None
            else float(env.get("JUDGE_TIMEOUT_SECONDS") or DEFAULT_TIMEOUT_S)
        )
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        # A proxy of the site must never stand between an agent and its judge, hence trust_env=False.
        self._http = httpx.Client(
            base_url=self.url, headers=headers, timeout=httpx.Timeout(limit, connect=30.0), trust_env=False
        )

    def __enter__(self) -> JudgeClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the client is not usable afterwards."""
        self._http.close()

    def score(self, source: str | None = None, language: str | None = None, **fields: Any) -> Answer:
        """A preview grade of ``source`` (or of ``source_file=`` or ``library=``); never enters a result."""
        request = self._delivery(source, language, fields)
        if request.get("ok") is False:
            return request
        answer, _ = self._call("POST", "/score", request)
        if answer["ok"] and answer.get("correct") is True:
            self._keep(KEPT_SCORE, request)
        return answer

    def submit(self, source: str | None = None, language: str | None = None, **fields: Any) -> Answer:
        """The final grade: ``{"ok", "correct": "yes"|"no", "request_id"}``; once under single and blind."""
        request = self._delivery(source, language, fields)
        if request.get("ok") is False:
            return request
        answer, status = self._call("POST", "/submit", request)
        if self._marker and spends_submission(status, answer):
            write_atomic(Path(self._marker), json.dumps(answer))
        return answer

    def baseline(self, language: str | None = None) -> Answer:
        """The times to beat in nanoseconds, measured where the grade is."""
        query = {"language": language or self.language, "rank": self.rank}
        return self._call("GET", f"/baseline/{self.kernel}", query)[0]

    def build(self, language: str | None = None) -> Answer:
        """The exact compile and link command of ``language``."""
        return self._call("GET", f"/build/{language or self.language}", {"rank": self.rank})[0]

    def health(self) -> Answer:
        """Whether the judge serves."""
        return self._call("GET", "/health", {})[0]

    def _delivery(self, source: str | None, language: str | None, fields: dict[str, Any]) -> Answer:
        """The request body. A ``source_file`` is read here: the judge does not see this side's files."""
        body = {key: value for key, value in fields.items() if value is not None}
        if source is not None:
            body["source"] = source
        given = [key for key in ("source", "source_file", "library") if key in body]
        if len(given) != 1:
            named = " and ".join(given) or "none"
            return _failure(0, f"give exactly one of source, source_file, library (got {named})")
        if given[0] == "source_file":
            path = Path(str(body.pop("source_file")))
            if path.suffix not in EXTENSIONS:
                return _failure(0, f"source_file {path}: the name must end in one of {' '.join(EXTENSIONS)}")
            try:
                body["source"] = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                return _failure(0, f"source_file {path}: {getattr(error, 'strerror', None) or error}")
            language = language or EXTENSIONS[path.suffix]
        body.update(kernel=self.kernel, language=language or self.language)
        body.update(rank=self.rank, episode_id=self.episode_id)
        if self.optimizer:
            body.setdefault("optimizer", self.optimizer)
        if self._usage:
            body.setdefault("tokens", read_usage(Path(self._usage)).effective)
        return body

    def _call(self, method: str, path: str, payload: dict[str, Any]) -> tuple[Answer, int]:
        try:
            if method == "GET":
                response = self._http.get(path, params=payload)
            else:
                response = self._http.post(path, json=payload)
        except httpx.TimeoutException:
            return _failure(0, f"{path}: the judge did not answer in time"), 0
        except (httpx.HTTPError, ValueError, TypeError) as error:
            return _failure(0, f"{path}: {error or type(error).__name__}"), 0
        try:
            body = response.json()
        except ValueError:
            body = response.text
        if response.status_code == 200 and isinstance(body, dict):
            return {**body, "ok": True}, 200
        return _failure(response.status_code, _reason(response.status_code, body), body), response.status_code

    def _keep(self, name: str, request: Mapping[str, Any]) -> None:
        if self._workdir:
            write_atomic(Path(self._workdir) / name, json.dumps(request))


def _failure(status: int, error: str, body: object = None) -> Answer:
    return {"ok": False, "status": status, "error": error, "body": body}


def _reason(status: int, body: object) -> str:
    """One line of what a refusal says, whichever of the usual spellings it uses."""
    if isinstance(body, dict):
        for key in ("error", "detail", "message"):
            if body.get(key):
                value = body[key]
                return value if isinstance(value, str) else json.dumps(value)
    return f"the judge answered {status}"
