"""Limits on the connections of a server, and which to close when more arrive.

A connection is free for whoever opens it, so a limit alone lets a few clients shut out all others. When all places are
taken, a newcomer therefore displaces a connection of the address that holds the most, unless its own holds as many.
"""

import ipaddress
import logging
import socket
import time
import weakref
from contextlib import suppress
from typing import Any, NamedTuple

from cachetools import TTLCache

LOG_EVERY_S = 60.0
KNOWN_S = 86_400.0  # that an address stays known after its last valid token
MOST_KNOWN = 10_000
REFUSED_AT_ONCE = 100
log = logging.getLogger(__name__)


def address_of(client: Any) -> str:
    """The address of a peer (host, port, ...), for counting; for IPv6 the /64 network that one customer usually has.

    >>> address_of(("2001:db8::1", 5)), address_of(("192.0.2.7", 5))
    ('2001:db8::/64', '192.0.2.7')
    """
    host = str((client or ("",))[0])
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host[:64]
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))
    return host


class Peer(NamedTuple):
    """The other end of a connection."""

    host: str
    port: int


class ConnectionTable:
    """The open connections of a listener: at most `most`, and at most `per_address` of one address.

    A connection is proven once its client has said who it is, and with a valid secret its address is known for a day. A
    newcomer that finds no place displaces the oldest connection of the address with the most: an unproven one of an
    unknown address, if there is any; else an unproven one of a known address; else a proven one. One from a known
    address may displace any of an unknown one. Otherwise it may displace only connections of an address that holds more
    than its own would, except that an address without a connection always gets a first one while any is unproven.
    """

    def __init__(self, *, most: int, per_address: int) -> None:
        self._most = most
        self._per_address = per_address
        self._waiting: dict[str, dict[Peer, socket.socket]] = {}  # unproven, by address, the oldest first
        self._proven: dict[str, dict[Peer, socket.socket]] = {}
        self._known: TTLCache[str, bool] = TTLCache(MOST_KNOWN, KNOWN_S)
        self._open = 0
        self._logged_at = -float("inf")

    def __len__(self) -> int:
        return self._open

    def add(self, peer: Peer, connection: socket.socket) -> bool:
        """Add a connection, and end another one if there is no room; returns whether there is a place for it."""
        address = address_of(peer)
        limited = self._held(address) >= self._per_address
        if limited or self._open >= self._most:
            self._log()
            victim = None if limited else self._victim(address)
            if victim is None:
                return False
            self._end(victim)
        self._waiting.setdefault(address, {})[peer] = connection
        self._open += 1
        return True

    def remove(self, peer: Peer) -> None:
        """Remove a connection that has ended; one that is not in the table is ignored."""
        address = address_of(peer)
        for group in (self._waiting, self._proven):
            if peer in group.get(address, ()):
                del group[address][peer]
                if not group[address]:
                    del group[address]
                self._open -= 1

    def prove(self, client: Any, *, by_secret: bool) -> None:
        """Note that a client, as (host, port), has said who it is; with a secret, its address becomes known."""
        peer = Peer(*client[:2])
        address = address_of(peer)
        if by_secret:
            self._known[address] = True
        connection = self._waiting.get(address, {}).get(peer)
        if connection is not None:
            self.remove(peer)
            self._proven.setdefault(address, {})[peer] = connection
            self._open += 1

    def _held(self, address: str) -> int:
        return len(self._waiting.get(address, ())) + len(self._proven.get(address, ()))

    def _victim(self, newcomer: str) -> Peer | None:
        own = self._held(newcomer)
        unknown = [address for address in self._waiting if address not in self._known]
        group = self._waiting or self._proven
        heaviest = max(unknown or group, key=self._held)
        first = own == 0 and group is self._waiting
        goes_first = bool(unknown) and newcomer in self._known
        allowed = first or goes_first or self._held(heaviest) > own + 1
        return next(iter(group[heaviest])) if allowed else None

    def _end(self, peer: Peer) -> None:
        """End a connection; its owner notices as if the client had left."""
        address = address_of(peer)
        connection = (self._waiting.get(address, {}) | self._proven.get(address, {}))[peer]
        self.remove(peer)
        with suppress(OSError):  # the client was faster
            connection.shutdown(socket.SHUT_RDWR)

    def _log(self) -> None:
        now = time.monotonic()
        if now - self._logged_at >= LOG_EVERY_S:
            self._logged_at = now
            log.warning(
                "too many connections: %d of at most %d are open; some are refused or ended", self._open, self._most
            )


class LimitedListener(socket.socket):
    """A listening socket whose connections are in a table; it closes those that find no place there at once.

    A connection counts from the moment it is made, so a client that never finishes the TLS handshake counts too.
    """

    def __init__(self, listening: socket.socket, table: ConnectionTable) -> None:
        super().__init__(listening.family, listening.type, listening.proto, fileno=listening.detach())
        self._table = table

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection that finds a place; raises `ConnectionAbortedError` after many that do not."""
        for _ in range(REFUSED_AT_ONCE):  # an event loop takes a turn for each error: refusals must not cost that much
            connection, address = super().accept()
            peer = Peer(*address[:2])
            counted = _CountedConnection(connection, self._table, peer)
            if self._table.add(peer, counted):
                return counted, address
            counted.close()
        raise ConnectionAbortedError("too many connections")


class _CountedConnection(socket.socket):
    """A connection that leaves its table when it is closed or dropped."""

    def __init__(self, connection: socket.socket, table: ConnectionTable, peer: Peer) -> None:
        super().__init__(connection.family, connection.type, connection.proto, fileno=connection.detach())
        self._leave = weakref.finalize(self, table.remove, peer)

    def close(self) -> None:
        super().close()
        self._leave()
