"""The link of a device tries every address of the broker."""

import errno
import socket
from typing import Any

import pytest

from cloakwork.sensor.link import Link

SIX, FOUR = socket.AF_INET6, socket.AF_INET


@pytest.fixture
def no_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel without IPv6, and a host whose first address is an IPv6 one."""
    real = socket.socket

    def make(family: int, *rest: Any, **named: Any) -> socket.socket:
        if family == SIX:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return real(family, *rest, **named)

    def addresses(_: str, port: int, *__: int) -> list[tuple[Any, ...]]:
        return [(SIX, 1, 6, "", ("::1", port, 0, 0)), (FOUR, 1, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "socket", make)
    monkeypatch.setattr(socket, "getaddrinfo", addresses)


@pytest.mark.usefixtures("no_ipv6")
def test_without_ipv6_the_link_tries_the_next_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        link = Link("localhost", server.getsockname()[1], False, None)
        link.start()
        assert (link.status(), link.reason()) == ("open", "")
        server.accept()[0].close()
        link.close()
