"""Asking somebody else: no socket of any family can be made, so neither answer nor secret crosses a wire."""

from __future__ import annotations

import socket
import threading

from attack_rig import Rig, version

SOCKETS = "#include <sys/socket.h>\n#include <netinet/in.h>\n#include <arpa/inet.h>\n"
EVERY_FAMILY = """for (int family = 0; family < 46; family++)
    for (int type = 1; type < 6; type++)
        if (socket(family, type, 0) >= 0) return;
int pair[2];
if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0) return;
HONEST;"""


def test_no_socket_of_any_family(judge: Rig) -> None:
    judge.accepts(version(EVERY_FAMILY, SOCKETS))


def test_nobody_is_called_at_a_port_of_the_judges_host(judge: Rig) -> None:
    callers = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)

        def answer() -> None:
            try:
                callers.append(server.accept())
            except TimeoutError:
                return

        listening = threading.Thread(target=answer)
        listening.start()
        port = server.getsockname()[1]
        call = f"""struct sockaddr_in to = {{.sin_family = AF_INET, .sin_port = htons({port})}};
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0) return;
        HONEST;"""
        judge.accepts(version(call, SOCKETS))
        listening.join()
    assert callers == []


def test_twin_with_a_pipe_of_its_own_is_accepted(judge: Rig) -> None:
    pipe = "int p[2]; char c = 1; if (pipe(p) || write(p[1], &c, 1) != 1 || read(p[0], &c, 1) != 1) return;"
    judge.accepts(version(pipe + "close(p[0]); close(p[1]); HONEST;"))
