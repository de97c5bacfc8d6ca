"""The profile route prints what the submission prints: it runs where there is nothing secret to print."""

from __future__ import annotations

import pytest
from attack_api import HONEST, World, leaked, source
from launching import family

HEAD = "#include <fcntl.h>\n#include <unistd.h>\nextern char **environ;\n"
PRINT = """static void print(const char *path) {
    char text[4096];
    int fd = open(path, O_RDONLY);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text);
    printf("%s %ld\\n", path, (long)got);
    if (got > 0) fwrite(text, 1, (size_t)got, stdout);
}
"""


def profiled(world: World, body: str, before: str = "", **more: object) -> str:
    """What the profile of this source tells, whatever its status code."""
    text = source(body + HONEST, HEAD + before)
    answer = world.ask("/profile", world.worker(), source=text, tool="none", **more)
    assert answer.status_code in (200, 400, 503), answer.text
    return answer.text


def test_no_file_of_the_judge_is_printed(world: World) -> None:
    rank = world.run_dir / "judge" / "rank-0"
    places = (
        world.run_dir / "seeds.json",
        world.judge.shard,
        rank / "progress.json",
        world.run_dir / "fused-tokens",
    )
    calls = "".join(
        f'print("{place}");' for place in (*places, "/etc/passwd", "/proc/1/environ", "/proc/self/mem")
    )
    told = profiled(world, calls, PRINT)
    assert not leaked(told)
    assert "root:" not in told
    assert "HPCAGENT" not in told


def test_no_secret_is_in_its_environment_or_memory(world: World) -> None:
    look = """for (char **e = environ; *e; e++) puts(*e);
    for (int fd = 3; fd < 64; fd++) { char text[512]; ssize_t got = pread(fd, text, sizeof text, 0);
        if (got > 0) fwrite(text, 1, (size_t)got, stdout); }"""
    told = profiled(world, look)
    assert not leaked(told)
    assert "TOKEN" not in told


@pytest.mark.parametrize(
    "build", [["-include", "/etc/passwd"], ["-I/", "-DX"], ["-Wl,--wrap=main"], ["-fplugin=x"]], ids=str
)
def test_its_build_takes_no_more_than_a_grade(world: World, build: list[str]) -> None:
    told = profiled(world, 'puts("ran");', build=build)
    assert "root:" not in told


def test_the_values_it_prints_are_the_public_ones(world: World) -> None:
    """The same in every call and for everybody: no draw of a grade can be learnt here."""
    say = 'printf("<%a %a>", b[0], c[1]);'
    first, second = (profiled(world, say) for _ in range(2))
    values = {text[text.index("<") : text.index(">")] for text in (first, second) if "<" in text}
    assert len(values) <= 1


def test_a_profile_leaves_no_process(world: World) -> None:
    assert world.grades_an_honest_one()
    before = {process.pid for process in family(world.judge.process.pid)}
    stay = 'if (fork() == 0) for (;;) pause(); execl("/bin/sleep", "sleep", "60", (char *)0); '
    assert not leaked(profiled(world, stay))
    assert world.grades_an_honest_one()
    assert {process.pid for process in family(world.judge.process.pid)} <= before


def test_twin_that_prints_a_line_of_its_own_is_shown_it(world: World) -> None:
    assert "a line of its own" in profiled(world, 'puts("a line of its own");')
