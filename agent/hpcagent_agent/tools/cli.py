"""The shell twin of the tools: ``hpcagent-bench-tool score '{"source_file": "x.c"}'``.

Prints the answer as JSON. Exit code 0: answered, 1: ``{"ok": false}``, 2: wrong usage.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from hpcagent_agent.tools.client import Answer, JudgeClient

DELIVERY = frozenset(
    {"source", "source_file", "library", "language", "build", "libraries", "workspace_bytes"}
)


def _score(client: JudgeClient, fields: dict[str, Any]) -> Answer:
    return client.score(**fields)


def _submit(client: JudgeClient, fields: dict[str, Any]) -> Answer:
    return client.submit(**fields)


def _baseline(client: JudgeClient, fields: dict[str, Any]) -> Answer:
    return client.baseline(fields.get("language"))


def _build(client: JudgeClient, fields: dict[str, Any]) -> Answer:
    return client.build(fields.get("language"))


def _health(client: JudgeClient, fields: dict[str, Any]) -> Answer:
    return client.health()


Tool = Callable[[JudgeClient, dict[str, Any]], Answer]
TOOLS: dict[str, tuple[Tool, frozenset[str], str]] = {
    "score": (_score, DELIVERY, "preview grade of a source, as often as the setup allows"),
    "submit": (_submit, DELIVERY, "final grade of a source; ends the episode under single and blind"),
    "baseline": (_baseline, frozenset({"language"}), "the times to beat, in nanoseconds"),
    "build": (_build, frozenset({"language"}), "the exact compile and link command"),
    "health": (_health, frozenset(), "whether the judge serves"),
}

USAGE = "usage: hpcagent-bench-tool TOOL ['{\"key\": value}']"
EXAMPLE = 'example: hpcagent-bench-tool score \'{"source_file": "kernel.c"}\''


def main(argv: Sequence[str] | None = None) -> int:
    """Run one tool; see the module's docstring for the exit codes."""
    args = list(sys.argv[1:] if argv is None else argv)
    if args in (["--list"], ["-h"], ["--help"]):
        if args != ["--list"]:
            print(f"{USAGE}\n{EXAMPLE}\n\ntools:")
        for name, (_, keys, what) in TOOLS.items():
            print(f"{name:9s} {what}" + (f"; keys: {', '.join(sorted(keys))}" if keys else ""))
        return 0
    if not args or len(args) > 2:
        print(f"{USAGE}   (--list names the tools)", file=sys.stderr)
        return 2
    if args[0] not in TOOLS:
        return _usage(f"unknown tool '{args[0]}'; tools: {', '.join(TOOLS)}")
    run, allowed, _ = TOOLS[args[0]]
    try:
        fields = json.loads(args[1]) if len(args) == 2 else {}
    except (ValueError, RecursionError) as error:
        return _usage(f"the second argument is no JSON: {error}")
    if not isinstance(fields, dict):
        return _usage("the second argument must be a JSON object")
    if unknown := sorted(set(fields) - allowed):
        return _usage(f"{args[0]} takes no key '{unknown[0]}'; keys: {', '.join(sorted(allowed)) or 'none'}")
    try:
        with JudgeClient() as client:
            answer = run(client, fields)
    except ValueError as error:
        return _usage(str(error))
    print(json.dumps(answer, indent=2))
    return 0 if answer["ok"] else 1


def _usage(message: str) -> int:
    print(f"hpcagent-bench-tool: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
