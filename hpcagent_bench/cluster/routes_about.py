"""Routes that tell about the judge and its kernels: /health, /baseline, /build, /task, the parallel form."""

from __future__ import annotations

import asyncio
import functools
import statistics
from typing import Annotated

from fastapi import FastAPI, Query, Request

from hpcagent_bench.cluster import requests, wire
from hpcagent_bench.cluster.office import Office, finished, refusals
from hpcagent_bench.cluster.refusals import Refused
from hpcagent_bench.harness import references

PARALLEL_PACKET = "cpf-tool"
"""The packet whose setups may ask for the canonical parallel form."""

Rank = Annotated[str | None, Query(description="this judge's rank")]


def add(app: FastAPI, office: Office) -> None:
    """Add the routes to ``app``."""

    @app.get(
        "/health", response_model=wire.Health, response_model_exclude_unset=True, responses=refusals(400)
    )
    async def health(
        request: Request,
        request_id: Annotated[str | None, Query(description="key of a request that waits")] = None,
    ) -> wire.Health:
        """Whether this judge serves, how it grades, and how many grades go before the caller's."""
        service = office.settings.service
        told = wire.Health(
            status="ok",
            rank=office.rank,
            oracle=service.oracle,
            baseline=office.settings.measurement.denominator.loop_level_reasoning,
            input_mode=service.input_mode,
            waiting=office.desk.waiting,
        )
        try:
            position = office.desk.position(office.caller(request), request_id)
        except Refused:
            position = None  # health is for everybody
        if position is not None:
            told.position = position
        return told

    _kernel_routes(app, office)

    @app.get(
        "/build/{language}",
        response_model=wire.BuildCommand,
        response_model_exclude_unset=True,
        responses=refusals(400, 421),
    )
    async def build(language: str, rank: Rank = None, compiler: str | None = None) -> wire.BuildCommand:
        """The exact command that compiles and links a submission."""
        from hpcagent_bench.cluster import kernel_facts

        requests.check_rank(rank, office.rank)
        known = requests.known_language(language)
        return kernel_facts.build_command(known, requests.known_family(compiler, known))


def _kernel_routes(app: FastAPI, office: Office) -> None:
    codes = refusals(400, 403, 404, 421, 500, 503)

    @app.get("/baseline/{kernel:path}", response_model=wire.Baseline, responses=codes)
    async def baseline(
        kernel: str, request: Request, rank: Rank = None, language: str = "c"
    ) -> wire.Baseline:
        """The time to beat, in ns per reference, measured here."""
        found, caller = await office.kernel(kernel, rank, request)
        requests.known_language(language)
        try:
            race = await finished(office.desk.baseline(found, caller))
        except references.JudgeFault:
            raise Refused(503, "the references cannot be timed now", cause="judge_fault") from None
        times = {kind: statistics.median(ns) for kind, ns in race.times.items() if ns}
        preset = office.desk.context.sizes.name
        return wire.Baseline(kernel=found.name, preset=preset, baseline=race.winner, baselines=times)

    @app.get("/task/{kernel:path}", response_model=wire.Task, responses=codes)
    async def task(
        kernel: str, request: Request, rank: Rank = None, language: str | None = None
    ) -> wire.Task:
        """What is to be written: signature, reference, tolerance, goal."""
        from hpcagent_bench.cluster import kernel_facts

        found, caller = await office.kernel(kernel, rank, request)
        known = requests.known_language(language or caller.language or "c")
        return await asyncio.to_thread(
            kernel_facts.task, found, known, office.settings, office.desk.context.sizes
        )

    @app.get("/canonical_parallel_form/{kernel:path}", response_model=wire.ParallelForm, responses=codes)
    async def canonical_parallel_form(
        kernel: str, request: Request, rank: Rank = None, language: str | None = None
    ) -> wire.ParallelForm:
        """The kernel's canonical parallel form, in setups whose packet has the tool."""
        from hpcagent_bench.cluster import kernel_facts

        found, caller = await office.kernel(kernel, rank, request)
        if PARALLEL_PACKET not in caller.setup.packet.split("+"):
            raise Refused(404, "this setup has no canonical parallel form")
        known = requests.known_language(language or caller.language or "c")
        form = functools.partial(kernel_facts.parallel_form, found, known, office.settings)
        return await finished(office.desk.between_grades(form, caller))
