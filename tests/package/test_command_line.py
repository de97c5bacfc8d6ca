"""What somebody reads who types a command wrongly, or asks for help."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from experiments import launch
from hpcagent_bench import cli

VERBS = [
    "",
    "calibrate",
    "serve",
    "status",
    "seeds",
    "seeds new",
    "owed",
    "owed collect",
    "kernels",
    "kernels list",
    "kernels show",
    "kernels emit",
    "kernels new",
    "kernels check",
    "devcluster",
    "devcluster up",
    "devcluster down",
    "devcluster status",
]
WRONG = [
    ("bogus", "bogus"),
    ("serve --bogus", "--bogus"),
    ("serve --rank x", "--rank"),
    ("serve --port 99999", "--port"),
    ("serve --cores a", "--cores a"),
    ("serve --sizes huge", "huge"),
    ("serve --config nope.yaml", "nope.yaml"),
    ("seeds new", "path"),
    ("seeds new /proc/x", "/proc/x"),
    ("status a b", "argument"),
    ("status nowhere", "nowhere"),
    ("status", "runs"),
    ("owed collect", "runs"),
    ("devcluster nope", "nope"),
]


class Done(NamedTuple):
    code: int
    out: str
    err: str


class Typed:
    """Types a command in an empty folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._patch, self._captured = monkeypatch, capsys

    def __call__(self, words: str) -> Done:
        self._patch.setattr(sys, "argv", ["hpcagent-bench", *words.split()])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return self.done(ended)

    def launch(self, words: str) -> Done:
        with pytest.raises(SystemExit) as ended:
            sys.exit(launch.main(words.split()))
        return self.done(ended)

    def done(self, ended: pytest.ExceptionInfo[SystemExit]) -> Done:
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, *self._captured.readouterr())


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    monkeypatch.chdir(tmp_path)
    return Typed(monkeypatch, capsys)


@pytest.mark.parametrize("verb", VERBS)
def test_help_shows_an_example(typed: Typed, verb: str) -> None:
    done = typed(f"{verb} --help")
    assert done.code == 0
    assert f"Example: hpcagent-bench {verb}".rstrip() in done.out


@pytest.mark.parametrize(("words", "named"), WRONG)
def test_a_mistake_is_one_line_that_names_it(typed: Typed, words: str, named: str) -> None:
    done = typed(words)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert named in done.err


@pytest.mark.parametrize(
    ("words", "named"),
    [("--bogus", "--bogus"), ("+study=nope", "nope"), ("study", "study"), ("sizes=tiny", "+study=")],
)
def test_a_mistaken_launch_is_one_line_that_names_it(typed: Typed, words: str, named: str) -> None:
    done = typed.launch(words)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert named in done.err


def test_a_group_without_a_verb_lists_its_verbs(typed: Typed) -> None:
    done = typed("devcluster")
    assert done.code == 2
    assert all(verb in done.out + done.err for verb in ("up", "down", "status"))
