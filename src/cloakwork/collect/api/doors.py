"""Who may be connected, and for how long without a word: what a server has to know before there is a request."""

import asyncio
import logging
import socket
import time
import weakref
from collections import Counter
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from cloakwork.collect.api.limits import address_of
from cloakwork.collect.api.settings import Settings

TOLD_S = 60.0  # how often the log says that some were turned away
log = logging.getLogger(__name__)


class Entrance(socket.socket):
    """A listening socket that lets so many in, in all and from one address. Others are closed at once.

    It counts from the moment of the connection: who never ends the handshake of TLS counts too.
    """

    def __init__(self, listening: socket.socket, *, most: int, per_address: int) -> None:
        super().__init__(listening.family, listening.type, listening.proto, fileno=listening.detach())
        self._most = most
        self._per_address = per_address
        self._inside: Counter[str] = Counter()
        self._all = 0
        self._told = -float("inf")

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection; as if nobody had come where there are too many."""
        link, address = super().accept()
        who = address_of({"client": address})
        if self._all >= self._most or self._inside[who] >= self._per_address:
            link.close()
            self._tell()
            raise ConnectionAbortedError("too many connections")
        self._all += 1
        self._inside[who] += 1
        return _Guest(link, self, who), address

    def left(self, who: str) -> None:
        """One from this address has gone."""
        self._all -= 1
        self._inside[who] -= 1
        if not self._inside[who]:
            del self._inside[who]

    def _tell(self) -> None:
        now = time.monotonic()
        if now - self._told >= TOLD_S:
            self._told = now
            log.warning("connections are turned away: %d are open, of at most %d", self._all, self._most)


class _Guest(socket.socket):
    """A connection that says when it is closed, however that comes."""

    def __init__(self, link: socket.socket, entrance: Entrance, who: str) -> None:
        super().__init__(link.family, link.type, link.proto, fileno=link.detach())
        self._leave = weakref.finalize(self, entrance.left, who)

    def close(self) -> None:
        """Close it."""
        super().close()
        self._leave()


class Door(H11Protocol):
    """One connection. It is ended when a request does not begin, or an answer is not taken, for too long.

    The head of a request has to be whole so many seconds after the connection was made, or after the answer before;
    its body has a limit of its own.
    """

    head_s: float
    taken_s: float
    _awaited: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Someone has come."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """They have gone."""
        _cancel(self._awaited)
        _cancel(self._stalled)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Use what has arrived."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:  # a request is under way
            _cancel(self._awaited)

    def on_response_complete(self) -> None:
        """An answer was written."""
        self._await_head()  # before the next request, which may be here already, is begun
        super().on_response_complete()

    def pause_writing(self) -> None:
        """They do not read."""
        super().pause_writing()
        _cancel(self._stalled)
        self._stalled = self.loop.call_later(self.taken_s, self.transport.abort)

    def resume_writing(self) -> None:
        """They read again."""
        super().resume_writing()
        _cancel(self._stalled)

    def _await_head(self) -> None:
        _cancel(self._awaited)
        self._awaited = self.loop.call_later(self.head_s, self.transport.abort)


def door(settings: Settings) -> type[Door]:
    """The protocol of a server with these settings."""
    return type("Door", (Door,), {"head_s": settings.head_s, "taken_s": settings.taken_s})


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
