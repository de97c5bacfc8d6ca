"""The web search of setups that have one: relayed to the service the configuration names."""

from __future__ import annotations

import json
from typing import Any

import httpx

from hpcagent_bench import config
from hpcagent_bench.cluster.refusals import Refused
from hpcagent_bench.cluster.wire import SearchBody

ANSWER_MAX = 2 << 20
"""Largest answer in bytes that is relayed."""


async def relay(asked: SearchBody, service: config.Service) -> dict[str, Any]:
    """What the search answers; 502 with a cause when there is none, or it failed."""
    if not service.search_url:
        raise Refused(502, "no search here", cause="not_configured")
    held = bytearray()
    try:
        async with (
            httpx.AsyncClient(timeout=service.search_timeout_s, trust_env=False) as client,
            client.stream("POST", service.search_url, json=asked.model_dump(exclude_none=True)) as answer,
        ):
            status = answer.status_code
            async for chunk in answer.aiter_bytes():
                held += chunk
                if len(held) > ANSWER_MAX:
                    raise Refused(502, "the search answered too much", cause="too_large")
    except httpx.TimeoutException:
        raise Refused(502, "the search did not answer in time", cause="timeout") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Refused(502, "the search cannot be reached", cause=type(error).__name__) from None
    if status != 200:
        raise Refused(502, f"the search answered {status}", cause="status")
    try:
        found = json.loads(held)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Refused(502, "the search did not answer with a JSON object", cause="not_json")
    return found
