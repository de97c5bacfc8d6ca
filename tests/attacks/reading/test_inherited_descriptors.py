"""Descriptors a child inherited: its control socket, and no draw, answer or file of the judge."""

from __future__ import annotations

from attack_rig import Rig, refused, version

STAT = "#include <sys/stat.h>\n#include <sys/socket.h>\n#include <sys/uio.h>\n"
COUNT = """struct stat s; int others = 0, sockets = 0;
for (int fd = 3; fd < 4096; fd++) {
    if (fstat(fd, &s) != 0) continue;
    if (S_ISSOCK(s.st_mode)) sockets++; else others++;
}
if (others || sockets != 1) return;
HONEST;"""
READ = """char text[256];
for (int fd = 0; fd < 4096; fd++) {
    struct stat s;
    if (fstat(fd, &s) == 0 && !S_ISSOCK(s.st_mode) && pread(fd, text, sizeof text, 0) > 0) return;
    if (fstat(fd, &s) == 0 && mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED) return;
}
HONEST;"""
LATER = """int fds[8]; union { char raw[256]; struct cmsghdr align; } control;
struct iovec part = {.iov_base = fds, .iov_len = sizeof fds};
struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.raw,
                         .msg_controllen = sizeof control.raw};
for (int fd = 3; fd < 64; fd++) if (recvmsg(fd, &message, MSG_DONTWAIT) > 0) return;
HONEST;"""


def test_only_the_control_socket_is_open_in_a_call(judge: Rig) -> None:
    judge.accepts(version(COUNT, STAT))


def test_nothing_can_be_read_or_mapped_through_a_number(judge: Rig) -> None:
    judge.accepts(version(READ, STAT))


def test_no_later_draw_waits_on_the_control_socket(judge: Rig) -> None:
    judge.accepts(version(LATER, STAT))


def test_duplicating_or_closing_the_control_socket_ends_the_grade(judge: Rig) -> None:
    closing = "for (int fd = 3; fd < 64; fd++) close(fd); HONEST;"
    refused(judge.attack(version(closing)), "incorrect", r"rep-verify\[warm-up\] crash")
