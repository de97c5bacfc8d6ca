"""A process that ends in its call, by whatever way, is no result."""

from __future__ import annotations

import pytest
from attack_rig import Rig, honest, refused, version

ENDS = {
    "exit 0": ("exit(0);", "exited with status 0"),
    "exit at once": ("_exit(0);", "exited with status 0"),
    "exit by a thread": ("pthread_t t; pthread_create(&t, 0, leave, 0); pthread_join(t, 0);", "exited"),
    "main thread alone": ("pthread_exit(0);", "no answer|exited|closed"),
    "abort": ("abort();", "SIGABRT"),
    "null pointer": ("*(volatile int *)0 = 1;", "SIGSEGV"),
    "illegal instruction": ("__builtin_trap();", "SIGILL|SIGTRAP"),
    "division by zero": ("volatile int none = 0; area[0] = 1 / none;", "SIGFPE|rep-verify"),
    "stack overflow": ("area[0] = deep(1.0);", "SIGSEGV"),
    "kills itself": ("raise(SIGKILL); kill(getpid(), SIGKILL); _exit(137);", "SIGKILL|status 137"),
    "closes everything": ("for (int fd = 0; fd < 4096; fd++) close(fd);", "closed|exited"),
}
BEFORE = """static void *leave(void *unused) { exit(0); return unused; }
static double deep(double v) { volatile double a[4096]; a[0] = v; return deep(a[0]) + a[0]; }
"""


@pytest.mark.parametrize("name", ENDS)
def test_end_in_the_call_is_refused(judge: Rig, name: str) -> None:
    ends, said = ENDS[name]
    judge.context.settings.timeouts.kernel_s_override = 1.0
    verdict = judge.attack(version(f"(void)leave; (void)deep; HONEST; {ends}", BEFORE))
    judge.context.settings.timeouts.kernel_s_override = 5.0
    refused(verdict, "timeout" if verdict.status == "timeout" else "incorrect", said)


def test_exception_that_nobody_catches_is_refused(judge: Rig) -> None:
    source = honest(language="cpp").replace("(void)workspace;", "if (LEN_1D) throw 1;")
    refused(judge.attack(source, "cpp"), "incorrect", r"rep-verify\[warm-up\] crash: .*SIGABRT")


def test_exit_from_the_constructor_of_a_global_object_is_refused(judge: Rig) -> None:
    before = "#include <cstdlib>\nstruct Leaves { Leaves() { std::_Exit(0); } };\nstatic Leaves leaves;\n"
    refused(
        judge.attack(before + honest(language="cpp"), "cpp"), "incorrect", r"exited with status 0 \(load\)"
    )


def test_stop_of_fortran_is_refused(judge: Rig) -> None:
    source = honest(language="fortran").replace(
        "    end do\nend subroutine", "    end do\n    stop\nend subroutine"
    )
    refused(
        judge.attack(source, "fortran"), "incorrect", r"rep-verify\[warm-up\] crash: exited with status 0"
    )


def test_end_in_a_later_call_is_named(judge: Rig) -> None:
    body = "static int calls; HONEST; if (++calls == 3) _exit(0);"
    refused(judge.attack(version(body)), "incorrect", r"rep-verify\[run 2\] crash: exited with status 0")


def test_twin_that_jumps_out_of_its_own_loop_is_accepted(judge: Rig) -> None:
    before = "#include <setjmp.h>\nstatic jmp_buf out;\n"
    judge.accepts(version("if (setjmp(out) == 0) { HONEST; longjmp(out, 1); }", before))
