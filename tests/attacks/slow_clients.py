"""Clients that open as many connections as they can and never finish what they say."""

import select
import socket
import ssl
import threading
from collections.abc import Sequence
from contextlib import suppress

from tests.waiting import PATIENCE

EACH = 400  # connections that one address tries to hold
AT_ONCE = 50
PAUSE_S = 0.1  # the attack is to hold connections, not to keep this machine busy


class SlowClients:
    """Holds connections from several addresses of this machine, and replaces each that the server ends."""

    def __init__(
        self, port: int, addresses: Sequence[str], said: Sequence[bytes], trusted: ssl.SSLContext | None = None
    ) -> None:
        self._port = port
        self._said = said
        self._trusted = trusted
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(address,), daemon=True) for address in addresses]
        self.opened = 0
        self.lost = 0

    def __enter__(self) -> "SlowClients":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _work(self, address: str) -> None:
        held: dict[int, socket.socket] = {}
        ended = select.poll()
        while not self._ending.wait(PAUSE_S):
            for _ in range(min(AT_ONCE, EACH - len(held))):
                link = self._open(address)
                if link is not None:
                    held[link.fileno()] = link
                    ended.register(link, select.POLLIN | select.POLLHUP)
            for number, _ in ended.poll(0):
                link = held[number]
                if _has_ended(link):
                    ended.unregister(link)
                    held.pop(number).close()
                    self.lost += 1
        for link in held.values():
            link.close()

    def _open(self, address: str) -> socket.socket | None:
        try:
            link = socket.create_connection(("127.0.0.1", self._port), timeout=20, source_address=(address, 0))
            if self._trusted is not None:
                link = self._trusted.wrap_socket(link, server_hostname="localhost")
                link.settimeout(PAUSE_S)  # a message of TLS itself may be all that there is to read
        except OSError:
            return None
        self.opened += 1
        with suppress(OSError):  # refused at once: the poll shows it
            link.sendall(self._said[self.opened % len(self._said)])
        return link


def _has_ended(link: socket.socket) -> bool:
    try:
        return not link.recv(65536)
    except TimeoutError:
        return False
    except OSError:
        return True
