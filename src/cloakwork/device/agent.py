"""A provisioned folder at work on a computer."""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cloakwork.device.background_link import BackgroundLink
from cloakwork.device.sources import Source
from cloakwork.errors import InputError
from cloakwork.mqtt.address import Broker
from cloakwork.mqtt.sensor_discovery import discovery
from cloakwork.sensor.board import read_config, station
from cloakwork.sensor.errors import SensorError
from cloakwork.sensor.link import Link
from cloakwork.sensor.store import Folder

KEPT = 100_000  # messages that are kept while the broker is away
log = logging.getLogger(__name__)


class Agent:
    """One device: `folder` as provision wrote it, `source` measures, `broker` replaces the one in the folder."""

    def __init__(
        self,
        folder: Path,
        source: Source,
        *,
        broker: Broker | None = None,
        home_assistant: bool = False,
        note: Callable[[str], None] = log.info,
    ) -> None:
        self.folder = folder
        self._source = source
        self._broker = broker
        self._home_assistant = home_assistant
        self._note = note

    def run(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Work until `stopped` says so. Only one process at a time may work with a folder."""
        try:
            self._work(stopped)
        except SensorError as problem:
            raise InputError(f"{self.folder}: {problem}") from None

    def _work(self, stopped: Callable[[], bool]) -> None:
        store = Folder(str(self.folder))
        config: dict[str, Any] = read_config(store)
        broker = self._broker or _broker(config, self.folder)
        authority = None if broker.authority is None else str(broker.authority)
        link = BackgroundLink(Link(broker.host, broker.port, broker.tls, authority))
        at_work = station(
            store,
            self._source.read,
            transport=link,
            note=self._note,
            kept=KEPT,
            extra=(discovery(config),) if self._home_assistant else (),
            login=(broker.user, broker.password),
        )
        try:
            while not stopped():
                time.sleep(at_work.step() / 1000)
        finally:
            at_work.stop()


def _broker(config: dict[str, Any], folder: Path) -> Broker:
    told = config["broker"]
    authority = None if told["ca"] is None else folder / told["ca"]
    return Broker(told["host"], told["port"], told["tls"], told["user"], told["password"], authority)
