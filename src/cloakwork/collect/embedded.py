"""A small broker inside the collector, for trying out and for the demonstration: it needs no other program.

It listens on this machine only, asks for no password and keeps nothing when it ends. A site with real devices has a
broker of its own.
"""

import asyncio
import logging
import socket
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from threading import Thread
from typing import Any

from amqtt.broker import Broker as AmqttBroker
from amqtt.contexts import BrokerConfig, ListenerConfig
from amqtt.errors import BrokerError

from cloakwork.errors import InputError
from cloakwork.mqtt import BrokerAddress

HOST = "127.0.0.1"
PATIENCE = 10.0  # seconds for it to start or to end
ATTEMPTS = 5  # to have any port that is free
PLUGINS: dict[str, Any] = {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}}
log = logging.getLogger(__name__)


class _Subscriptions(dict[str, Any]):
    """Lets who goes through it wait meanwhile: the broker tells a newcomer what it keeps while others subscribe."""

    def __iter__(self) -> Iterator[str]:
        return iter(list(super().__iter__()))


class _Broker(AmqttBroker):  # type: ignore[misc]
    """Closes each connection when it ends, and when the broker does; and turns nobody away whom another disturbs."""

    def __init__(self, config: BrokerConfig) -> None:
        super().__init__(config)
        self._subscriptions = _Subscriptions()

    async def stream_connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, listener_name: str
    ) -> None:
        try:
            with suppress(asyncio.CancelledError):
                await super().stream_connected(reader, writer, listener_name)
        finally:
            writer.close()


class EmbeddedBroker:
    """A broker on this machine, from `start` to `stop`; port 0 takes any that is free."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._broker: AmqttBroker | None = None

    @property
    def broker(self) -> BrokerAddress:
        """How devices and the collector reach it."""
        return BrokerAddress(HOST, self.port)

    def start(self) -> None:
        """Listen; refused where the port is taken. Any port that someone else was quicker to take is let be."""
        wanted = self.port
        for last in [False] * (ATTEMPTS - 1) + [True]:
            self.port = _free(wanted)
            try:
                self._listen()
            except InputError:
                if wanted or last:
                    raise
            else:
                return

    def _listen(self) -> None:
        logging.getLogger("amqtt").setLevel(logging.ERROR)  # it speaks of every client that comes and goes
        logging.getLogger("transitions").setLevel(logging.ERROR)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True, name="cloakwork embedded broker")
        self._thread.start()
        try:
            self._run(self._open())
        except BrokerError:
            self._end_loop()
            raise _taken(self.port) from None

    def stop(self) -> None:
        """End all connections; what they still had to be told is lost."""
        if self._broker is not None:
            try:
                self._run(self._broker.shutdown())
            except (BrokerError, TimeoutError):
                log.debug("the embedded broker did not end in time")
            self._broker = None
        self._end_loop()

    async def _open(self) -> None:
        listeners = {"default": ListenerConfig(bind=f"{HOST}:{self.port}")}
        # devices that are away for a while find their session again; one that never returns is forgotten
        self._broker = _Broker(BrokerConfig(listeners=listeners, plugins=PLUGINS, session_expiry_interval=3600))
        await self._broker.start()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def _end_loop(self) -> None:
        if self._loop is not None and self._thread is not None:
            asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result(PATIENCE)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE)
            self._loop.close()
        self._loop = self._thread = None


async def _cancel_others() -> None:
    """End what is left on the loop, so that nothing complains of being forgotten."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _free(port: int) -> int:
    """The port itself, or any free one for 0."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
        except OSError:
            raise _taken(port) from None
        return int(trial.getsockname()[1])


def _taken(port: int) -> InputError:
    return InputError(
        f"port {port} is taken, by a broker probably: use that one with --broker mqtt://localhost:{port}, or none "
        "with --broker none.",
        port=port,
    )
