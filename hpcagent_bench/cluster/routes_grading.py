"""Routes that take work: /score, /submit, /profile, and /search beside them."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from pydantic import BaseModel

from hpcagent_bench.cluster import requests, wire
from hpcagent_bench.cluster.office import Office, finished, refusals
from hpcagent_bench.cluster.refusals import Refused


def body_of(kind: type[BaseModel]) -> dict[str, Any]:
    """The documented body of a route that reads it itself, bounded in size and time."""
    content = {"application/json": {"schema": kind.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


def add(app: FastAPI, office: Office) -> None:
    """Add the routes to ``app``."""
    _score(app, office)
    _submit(app, office)
    _profile(app, office)
    _search(app, office)


def _score(app: FastAPI, office: Office) -> None:
    @app.post(
        "/score",
        response_model=wire.ScoreAnswer,
        response_model_exclude_unset=True,
        responses=refusals(400, 403, 404, 421, 500, 503),
        openapi_extra=body_of(wire.Delivery),
    )
    @app.post(
        "/bench", response_model=wire.ScoreAnswer, response_model_exclude_unset=True, include_in_schema=False
    )
    async def score(request: Request) -> Any:
        """A preview grade, for steering; never credited."""
        wanted, caller, _ = await office.delivery(request)
        if not office.settings.service.score_enabled or caller.submission_mode == "blind":
            wanted.discard()
            raise Refused(403, "this setup has no preview; send your work to /submit")
        office.refuse_public_seeds()
        return await finished(office.desk.score(wanted, caller))


def _submit(app: FastAPI, office: Office) -> None:
    @app.post(
        "/submit",
        response_model=wire.SubmitAnswer,
        response_model_exclude_unset=True,
        responses=refusals(400, 403, 404, 409, 421, 500, 503),
        openapi_extra=body_of(wire.Delivery),
    )
    @app.post(
        "/oracle",
        response_model=wire.SubmitAnswer,
        response_model_exclude_unset=True,
        include_in_schema=False,
    )
    async def submit(request: Request) -> Any:
        """The final grade; under single and blind submission it can be had once."""
        wanted, caller, _ = await office.delivery(request)
        office.refuse_public_seeds()
        return await finished(office.desk.submit(wanted, caller))


def _profile(app: FastAPI, office: Office) -> None:
    @app.post(
        "/profile",
        response_model=wire.ProfileAnswer,
        response_model_exclude_unset=True,
        responses=refusals(400, 403, 404, 421, 500, 503),
        openapi_extra=body_of(wire.ProfileBody),
    )
    async def profile(request: Request) -> Any:
        """Build and run a delivery under a tool, on public inputs; nothing of it is graded."""
        from hpcagent_bench.cluster.profiling import looks

        wanted, caller, body = await office.delivery(request, wire.ProfileBody)
        try:
            look = looks.asked(requests.typed(wire.ProfileBody, body), wanted, office.desk.context)
        except Refused:
            wanted.discard()
            raise
        return await finished(office.desk.profile(look, wanted, caller))


def _search(app: FastAPI, office: Office) -> None:
    @app.post(
        "/search",
        response_model=wire.SearchAnswer,
        responses=refusals(400, 403, 500, 502),
        openapi_extra=body_of(wire.SearchBody),
    )
    @app.post("/web-search", response_model=wire.SearchAnswer, include_in_schema=False)
    async def search(request: Request) -> Any:
        """A web search, relayed."""
        from hpcagent_bench.cluster import search_relay

        office.caller(request)
        asked = requests.typed(wire.SearchBody, await office.body(request))
        return await search_relay.relay(asked, office.settings.service)
