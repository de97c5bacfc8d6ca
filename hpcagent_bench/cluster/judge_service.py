"""The judge over HTTP on a loopback port: its routes and status codes."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import statistics
from collections.abc import AsyncIterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from hpcagent_bench import config
from hpcagent_bench.cluster import identity, requests
from hpcagent_bench.cluster.desk import Desk
from hpcagent_bench.cluster.identity import Caller
from hpcagent_bench.cluster.requests import Refused
from hpcagent_bench.corpus import spec
from hpcagent_bench.toolchain import flags, languages


@dataclass(frozen=True)
class Office:
    """What the routes share: the desk that grades, this judge's rank, and where workers are filed."""

    desk: Desk
    rank: int
    settings: config.Judge
    tokens: Path | None
    shared: Path | None

    def caller(self, request: Request) -> Caller:
        """Who sent the request; 403 without a token of this job."""
        try:
            return identity.resolve(self.tokens, request.headers.get("authorization"))
        except identity.UnknownToken as error:
            raise Refused(403, str(error)) from None

    async def body(self, request: Request) -> dict[str, Any]:
        """The JSON object sent, read no further than service.max_body_mb."""
        limit = self.settings.service.max_body_mb * 2**20
        declared = request.headers.get("content-length", "0")
        held = bytearray()
        if not declared.isdigit() or int(declared) <= limit:
            async for chunk in request.stream():
                held += chunk
                if len(held) > limit:
                    break
            else:
                return requests.decode(bytes(held))
        raise Refused(400, f"the body is over {self.settings.service.max_body_mb} MB")

    def refuse_public_seeds(self) -> None:
        """A judge that records must not grade with seeds everybody knows (scoring.md 1.1)."""
        if self.desk.shard is not None and self.desk.context.seeds.public:
            raise Refused(
                503,
                "public_seeds",
                cause="this judge records, but has only the public development seeds; "
                "make secret ones with: hpcagent-bench seeds new FILE, and serve with --seeds FILE",
            )


async def finished(work: Future[Any]) -> Any:
    """The result of queued work. A client that hangs up does not cancel it."""
    return await asyncio.shield(asyncio.wrap_future(work))


def create_app(office: Office) -> FastAPI:
    """The judge's application; its OpenAPI document is at /openapi.json."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        office.desk.close()

    app = FastAPI(title="HPCAgent-Bench judge", docs_url=None, redoc_url=None, lifespan=lifespan)

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> JSONResponse:
        return JSONResponse(error.body, status_code=error.code)

    @app.exception_handler(404)
    async def unknown_route(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": f"no route {request.url.path}"}, status_code=404)

    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": f"judge error: {type(error).__name__}"}, status_code=500)

    _information_routes(app, office)
    _grading_routes(app, office)
    return app


def _information_routes(app: FastAPI, office: Office) -> None:
    @app.get("/health")
    async def health() -> dict[str, Any]:
        """Whether this judge serves, and how it grades."""
        service = office.settings.service
        return {
            "status": "ok",
            "rank": office.rank,
            "oracle": service.oracle,
            "baseline": office.settings.measurement.denominator.loop_level_reasoning,
            "input_mode": service.input_mode,
            "waiting": office.desk.waiting,
        }

    @app.get("/baseline/{kernel}")
    async def baseline(
        kernel: str, request: Request, rank: str | None = None, language: str = "c"
    ) -> dict[str, Any]:
        """The time to beat, in ns per reference, measured here."""
        requests.check_rank(rank, office.rank)
        caller = office.caller(request)
        found = requests.known_kernel(kernel, caller)
        race = await finished(office.desk.baseline(found))
        times = {kind: statistics.median(ns) for kind, ns in race.times.items()}
        preset = office.desk.context.sizes.name
        return {"kernel": found.name, "preset": preset, "baseline": race.winner, "baselines": times}

    @app.get("/build/{language}")
    async def build(language: str, rank: str | None = None) -> dict[str, Any]:
        """The exact command that compiles and links a submission."""
        requests.check_rank(rank, office.rank)
        if language not in languages.COMPILED:
            raise Refused(400, f"language is {language!r}; compiled are {', '.join(languages.COMPILED)}")
        source = Path("kernel" + languages.get(language).extension)
        argv = flags.compile_command(language, source, Path("libkernel.so"))
        return {"language": language, "argv": argv, "command": shlex.join(argv)}


def _grading_routes(app: FastAPI, office: Office) -> None:
    async def checked(request: Request) -> tuple[requests.Request, Caller]:
        caller = office.caller(request)
        body = await office.body(request)
        return requests.read(body, caller, office.rank, office.settings, office.shared), caller

    @app.post("/score")
    @app.post("/bench", include_in_schema=False)
    async def score(request: Request) -> Any:
        """A preview grade, for steering; never credited."""
        wanted, caller = await checked(request)
        if not office.settings.service.score_enabled or caller.submission_mode == "blind":
            raise Refused(403, "this setup has no preview; send your work to /submit")
        office.refuse_public_seeds()
        return await finished(office.desk.score(wanted, caller))

    @app.post("/submit")
    @app.post("/oracle", include_in_schema=False)
    async def submit(request: Request) -> Any:
        """The final grade; under single and blind submission it can be had once."""
        wanted, caller = await checked(request)
        office.refuse_public_seeds()
        return await finished(office.desk.submit(wanted, caller))


def warm_corpus() -> int:
    """Read the corpus once, so that a broken manifest stops the judge before it serves; how many kernels."""
    return len(spec.discover())
