"""What the routes of a judge share: who calls, what they sent, and where it is graded."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import Request

from hpcagent_bench import config
from hpcagent_bench.cluster import identity, requests, wire
from hpcagent_bench.cluster.desk import Desk
from hpcagent_bench.cluster.identity import Caller
from hpcagent_bench.cluster.refusals import Refused

if TYPE_CHECKING:
    from hpcagent_bench.corpus.spec import Kernel

Result = TypeVar("Result")


@dataclass(frozen=True)
class Office:
    """What the routes share: the desk that grades, this judge's rank, and where workers are filed."""

    desk: Desk
    rank: int
    settings: config.Judge
    tokens: Path | None
    shared: Path | None

    @property
    def place(self) -> requests.Place:
        """Where requests take files from."""
        work = self.desk.context.work
        assert work is not None  # a judge that serves builds in its own folder
        return requests.Place(self.settings, self.rank, self.shared, work)

    def caller(self, request: Request) -> Caller:
        """Who sent the request; 403 without a token of this job."""
        try:
            return identity.resolve(self.tokens, request.headers.get("authorization"))
        except identity.UnknownToken as error:
            raise Refused(403, str(error)) from None

    async def kernel(self, name: str, rank: str | None, request: Request) -> tuple[Kernel, Caller]:
        """The kernel of a question about it, and who asks."""
        requests.check_rank(rank, self.rank)
        caller = self.caller(request)
        return await asyncio.to_thread(requests.known_kernel, name, caller), caller

    async def body(self, request: Request) -> dict[str, Any]:
        """The JSON object sent, read no further and no longer than service.max_body_mb, body_timeout_s."""
        service = self.settings.service
        limit = service.max_body_mb * 2**20
        declared = request.headers.get("content-length", "0")
        held = bytearray()
        try:
            async with asyncio.timeout(service.body_timeout_s):
                if not declared.isdigit() or int(declared) <= limit:
                    async for chunk in request.stream():
                        held += chunk
                        if len(held) > limit:
                            break
                    else:
                        return requests.decode(bytes(held))
        except TimeoutError:
            raise Refused(400, f"the body did not arrive within {service.body_timeout_s:g} s") from None
        raise Refused(400, f"the body is over {service.max_body_mb} MB")

    async def delivery(
        self, request: Request, kind: type[wire.Delivery] = wire.Delivery
    ) -> tuple[requests.Request, Caller, dict[str, Any]]:
        """A checked delivery, who sent it, and the body as it came. Files are read beside the routes."""
        caller = self.caller(request)
        body = await self.body(request)
        wanted = await asyncio.to_thread(requests.read, body, caller, self.place, kind)
        return wanted, caller, body

    def refuse_public_seeds(self) -> None:
        """A judge that records must not grade with seeds everybody knows (scoring.md 1.1)."""
        if self.desk.shard is not None and self.desk.context.seeds.public:
            raise Refused(
                503,
                "public_seeds",
                cause="this judge records, but has only the public development seeds; "
                "make secret ones with: hpcagent-bench seeds new FILE, and serve with --seeds FILE",
            )


async def finished(work: Future[Result]) -> Result:
    """The result of queued work. A client that hangs up does not cancel it."""
    return await asyncio.shield(asyncio.wrap_future(work))


def refusals(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The documented answers of a route besides 200."""
    words = {
        400: "The request is wrong; `error` says how.",
        403: "The caller has no right to this: no token of this job, or a setup without it.",
        404: "No such kernel or route.",
        409: "This episode's one submission is spent.",
        421: "The rank is another judge's; nothing was done.",
        500: "The judge failed; nothing was graded.",
        502: "The search could not be reached or failed.",
        503: "Not now, or not on this host: `cause`, or Retry-After.",
    }
    return {code: {"model": wire.Refusal, "description": words[code]} for code in codes}
