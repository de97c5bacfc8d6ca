"""docs/judge.md says what the API does: routes, fields, tools, causes and settings are read off the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hpcagent_bench import config
from hpcagent_bench.cluster import wire
from hpcagent_bench.cluster.judge_service import create_app
from hpcagent_bench.cluster.serve import ServeOptions, make_office

PAGE = (Path(__file__).parents[2] / "docs" / "judge.md").read_text()
SOURCES = Path(wire.__file__).parent


@pytest.fixture
def document(tmp_path: Path) -> dict[str, object]:
    office = make_office(ServeOptions(tmp_path), config.Judge(), config.Sizes("tiny", 2**18))
    found: dict[str, object] = create_app(office).openapi()
    office.desk.close()
    return found


def test_every_route_and_code_is_on_the_page(document: dict[str, object]) -> None:
    paths = document["paths"]
    assert isinstance(paths, dict)
    named = set(re.findall(r"`(GET|POST) (/\w+)", PAGE))
    assert named == {
        (method.upper(), path.split("/{")[0]) for path, methods in paths.items() for method in methods
    }
    codes = {
        code
        for methods in paths.values()
        for operation in methods.values()
        for code in operation["responses"]
    }
    assert set(re.findall(r"^\| (\d{3}) \|", PAGE, re.MULTILINE)) == codes - {"200"}


def test_every_field_of_a_delivery_is_on_the_page() -> None:
    told = PAGE[PAGE.index("### A delivery") : PAGE.index("### Answers")]
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", told, re.MULTILINE))))
    assert named == set(wire.Delivery.model_fields) - {"episode_id"}


def test_tools_groups_and_causes_are_those_of_the_code() -> None:
    told = PAGE[PAGE.index("### Looking") :]
    tools = set(re.findall(r"^\| `([\w-]+)` \|", told, re.MULTILINE))
    assert tools == {"linuxperf", "papi", "none", "opt-report"}
    assert tools < set(wire.TOOLS)
    (groups,) = re.findall(r"`counter_group` is ([\w, ]+);", told)
    assert set(groups.replace(" or ", ", ").split(", ")) == set(wire.COUNTER_GROUPS)
    causes = set(re.findall(r"\w+", told.rpartition("Causes of a 503:")[2]))
    code = "".join(path.read_text() for path in (SOURCES / "profiling").glob("*.py"))
    used = set(re.findall(r'(?:cause="|Missing\(")(\w+)"', code))
    assert causes == used


def test_settings_on_the_page_exist() -> None:
    for name in re.findall(r"`service\.(\w+)`", PAGE):
        assert hasattr(config.Service(), name)
