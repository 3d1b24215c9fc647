"""A small broker inside the collector, for trying it out and for the demonstration; it needs no other program.

It listens on this machine only, asks for no password, trusts the programs of this machine and loses everything when it
ends. A site with real devices has its own broker.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any

from amqtt.adapters import StreamReaderAdapter, StreamWriterAdapter
from amqtt.broker import Broker as AmqttBroker
from amqtt.contexts import BrokerConfig, ListenerConfig
from amqtt.errors import BrokerError

from cloakwork.errors import InputError
from cloakwork.mqtt import BrokerAddress

HOST = "127.0.0.1"
PATIENCE = 10.0  # seconds to start or to stop
BACKLOG = 2048
PLUGINS: dict[str, Any] = {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}}


class _Subscriptions(dict[str, Any]):
    """Tolerates changes during iteration: the broker sends retained messages to a newcomer while others subscribe."""

    def __iter__(self) -> Iterator[str]:
        return iter(list(super().__iter__()))


class _Broker(AmqttBroker):  # type: ignore[misc]
    """Closes each connection when it ends or the broker stops; a cancelled one does not disturb the others."""

    def __init__(self, config: BrokerConfig, listening: socket.socket) -> None:
        super().__init__(config)
        self._subscriptions = _Subscriptions()
        self._listening = listening

    async def stream_connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, listener_name: str
    ) -> None:
        try:
            with suppress(asyncio.CancelledError):
                await self._client_connected(listener_name, StreamReaderAdapter(reader), StreamWriterAdapter(writer))
        finally:
            writer.close()

    async def _create_server_instance(
        self, listener_name: str, _kind: object, _address: str, _port: int, _context: object
    ) -> asyncio.Server:
        """Listen on the socket that is bound already."""
        serve = partial(self.stream_connected, listener_name=listener_name)
        return await asyncio.start_server(serve, sock=self._listening, backlog=BACKLOG)


class EmbeddedBroker:
    """A broker on this machine, from `start` to `stop`; port 0 takes any free port."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self._stop: Callable[[], object] | None = None
        self._thread: Thread | None = None

    @property
    def broker(self) -> BrokerAddress:
        """The address for devices and the collector."""
        return BrokerAddress(HOST, self.port)

    def start(self) -> None:
        """Listen; raises `InputError` if the port is taken."""
        try:
            listening = socket.create_server((HOST, self.port))
        except OSError:
            raise InputError(
                f"port {self.port} is taken, by a broker or a collector that runs already. Use that one, "
                f"mqtt://localhost:{self.port}, or none.",
                port=self.port,
            ) from None
        self.port = int(listening.getsockname()[1])
        logging.getLogger("amqtt").setLevel(logging.CRITICAL)  # it logs every client that comes and goes
        logging.getLogger("transitions").setLevel(logging.ERROR)
        started: Future[None] = Future()
        self._thread = Thread(
            target=lambda: asyncio.run(self._serve(listening, started)), daemon=True, name="cloakwork embedded broker"
        )
        self._thread.start()
        started.result(PATIENCE)

    def stop(self) -> None:
        """End all connections; undelivered messages are lost."""
        if self._stop is not None and self._thread is not None:
            self._stop()
            self._thread.join(2 * PATIENCE)
        self._stop = self._thread = None

    async def _serve(self, listening: socket.socket, started: Future[None]) -> None:
        loop, stopping = asyncio.get_running_loop(), asyncio.Event()
        loop.set_exception_handler(log_failure)
        listeners = {"default": ListenerConfig(bind=f"{HOST}:{self.port}")}
        # a device that is away for a while finds its session again; one that never returns is forgotten
        config = BrokerConfig(listeners=listeners, plugins=PLUGINS, session_expiry_interval=3600)
        broker = _Broker(config, listening)
        try:
            await broker.start()
        except Exception as problem:  # `start` raises it
            started.set_exception(problem)
            return
        self._stop = partial(loop.call_soon_threadsafe, stopping.set)
        started.set_result(None)
        await stopping.wait()
        with suppress(BrokerError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await broker.shutdown()


def log_failure(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log why a task of the broker failed, unless a client only left before it had acknowledged a message."""
    if not isinstance(context.get("exception"), TimeoutError):
        loop.default_exception_handler(context)
