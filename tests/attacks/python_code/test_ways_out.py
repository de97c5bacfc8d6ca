"""Ending the process or the interpreter in every way Python has: a crash by name, never a result."""

from __future__ import annotations

import pytest
from attack_python import module, takes
from attack_rig import Rig, refused

ENDS = {
    "os._exit": ("os._exit(0)", "exited with status 0"),
    "sys.exit": ("sys.exit(0)", "SystemExit"),
    "interrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "generator's end": ("raise GeneratorExit", "GeneratorExit"),
    "abort": ("os.abort()", "SIGABRT|status 134|SIGSEGV"),
    "null pointer": ("ctypes.string_at(0)", "SIGSEGV"),
    "recursion": ("return polygon_area_terms(x, y, area, LEN_1D)", "RecursionError"),
    "lying message": ("raise RuntimeError('seal: the judge is broken')", "RuntimeError: seal: the judge"),
    "huge message": ("raise RuntimeError('x' * 10**7)", "RuntimeError: x+"),
    "many lines": ("raise RuntimeError('a\\nb' * 1000)", "RuntimeError: a b"),
    "a message that fails": ("raise Bad", "exited|Bad|crash"),
    "no text": ("raise RuntimeError('\\ud800\\0')", "RuntimeError"),
    "another process": ("os.fork()\nHONEST", "PermissionError|Operation not permitted"),
    "another program": ("os.execv('/bin/true', ['true'])", "PermissionError|Operation not permitted"),
    "a shell": (
        "import subprocess\nsubprocess.run('true', shell=True)",
        "PermissionError|Operation not permitted",
    ),
}
BAD = "class Bad(BaseException):\n    def __str__(self):\n        raise ValueError('no')"
AT_LOADING = {
    "os._exit": ("os._exit(0)", r"exited with status 0 \(load\)"),
    "sys.exit": ("raise SystemExit(0)", "SystemExit"),
    "no function": ("import atexit", "has no attribute"),
}


@pytest.mark.parametrize("name", ENDS)
def test_an_end_in_the_call_is_told_by_name(judge: Rig, name: str) -> None:
    body, reason = ENDS[name]
    verdict = judge.preview(module(body, BAD), "python")
    refused(verdict, "incorrect", r"rep-verify\[warm-up\] (crash|refused): .*(" + reason + ")")
    assert len(verdict.reason) < 1500
    assert "\n" not in verdict.reason


@pytest.mark.parametrize("name", AT_LOADING)
def test_an_end_at_loading_is_too(judge: Rig, name: str) -> None:
    line, reason = AT_LOADING[name]
    text = module("HONEST", line)
    if name == "no function":
        text += "\ndel polygon_area_terms\n"
    refused(judge.preview(text, "python"), "incorrect", r"rep-verify\[warm-up\] .*(" + reason + ")")


def test_a_message_that_never_ends_is_a_timeout(judge: Rig) -> None:
    judge.context.settings.timeouts.kernel_s_override = 1.0
    endless = "class Bad(BaseException):\n    def __str__(self):\n        while True:\n            pass"
    refused(
        judge.preview(module("raise Bad", endless), "python"), "timeout", r"rep-verify\[warm-up\] timeout"
    )
    judge.context.settings.timeouts.kernel_s_override = 5.0


def test_twin_with_an_exit_handler_and_a_handled_error_is_accepted(judge: Rig) -> None:
    before = "import atexit\natexit.register(lambda: None)"
    takes(judge, module("try:\n    raise ValueError\nexcept ValueError:\n    pass\nHONEST", before))
