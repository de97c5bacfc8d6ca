"""The judge over HTTP on a loopback port: its routes, its status codes and its OpenAPI document."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from hpcagent_bench.cluster import routes_about, routes_grading
from hpcagent_bench.cluster.office import Office
from hpcagent_bench.cluster.refusals import Refused
from hpcagent_bench.corpus import spec

__all__ = ["Office", "create_app", "warm_corpus"]


def create_app(office: Office) -> FastAPI:
    """The judge's application; its OpenAPI document is at /openapi.json."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        office.desk.close()

    app = FastAPI(title="HPCAgent-Bench judge", docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.office = office
    _error_answers(app)
    routes_about.add(app, office)
    routes_grading.add(app, office)
    _document(app)
    return app


def _error_answers(app: FastAPI) -> None:
    """Every refusal is one line under ``error``."""

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> JSONResponse:
        return JSONResponse(error.body, status_code=error.code, headers=error.headers)

    @app.exception_handler(HTTPException)
    async def no_route(request: Request, error: HTTPException) -> JSONResponse:
        told = f"no route {request.url.path[:200]}" if error.status_code == 404 else str(error.detail)
        return JSONResponse({"error": told}, status_code=error.status_code, headers=error.headers)

    @app.exception_handler(RequestValidationError)
    async def wrong_query(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        return JSONResponse({"error": f"{first['loc'][-1]}: {first['msg']}"}, status_code=400)

    @app.exception_handler(ClientDisconnect)
    async def hung_up(request: Request, error: ClientDisconnect) -> JSONResponse:
        return JSONResponse({"error": "the body was cut off"}, status_code=400)

    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": f"judge error: {type(error).__name__}"}, status_code=500)


def _document(app: FastAPI) -> None:
    """Leave out of the OpenAPI document what FastAPI assumes and this judge never answers: 422."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        document = generate()
        for operations in document["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
        for unused in ("HTTPValidationError", "ValidationError"):
            document["components"]["schemas"].pop(unused, None)
        return document

    app.openapi = openapi  # type: ignore[method-assign]


def warm_corpus() -> int:
    """Read the corpus once, so that a broken manifest stops the judge before it serves; how many kernels."""
    return len(spec.discover())
