"""One device per sensor, all in this process: provisioned folders, the real sensor code, MQTT."""

import heapq
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Thread

from cloakwork.device import provision
from cloakwork.mqtt import BrokerAddress
from cloakwork.sensor.board import station
from cloakwork.sensor.errors import SensorError
from cloakwork.sensor.station import Station
from cloakwork.sensor.store import Folder
from cloakwork.site import Plan

THREADS = 4  # devices sync their state to disk; while one waits, others go on
OFTEN_MS = 100  # stepping a device more often than it asks makes it connect sooner
ENDING = 15.0
Measure = Callable[[int], float]
log = logging.getLogger(__name__)


class Fleet:
    """The devices of a plan, running from `start` to `stop`.

    Parameters
    ----------
    folder
        Parent of the devices' folders; empty at first.
    measure
        Returns the present reading of the sensor in a row of the plan, in the site's unit.
    """

    def __init__(self, plan: Plan, folder: Path, *, broker: BrokerAddress, measure: Measure, unit: str = "") -> None:
        self._names = [sensor.id for sensor in plan.sensors]
        for name in self._names:
            provision(plan, name, folder / name, broker=broker, keys=None, unit=unit)
        self._folder = folder
        self._measure = measure
        self._stopping = Event()
        self._devices: list[Station] = []
        self._threads: list[Thread] = []

    def start(self) -> None:
        """Switch all devices on."""
        for row in range(len(self._names)):
            self._devices.append(self._device(row))
        for number in range(min(THREADS, len(self._names))):
            rows = range(number, len(self._names), THREADS)
            thread = Thread(target=self._work, args=(rows,), daemon=True, name=f"cloakwork devices {number + 1}")
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Disconnect and switch off all devices."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(ENDING)
        for device in self._devices:
            device.stop()
        self._threads.clear()
        self._devices.clear()

    def _device(self, row: int) -> Station:
        name = self._names[row]
        return station(
            Folder(str(self._folder / name)),
            lambda: self._measure(row).as_integer_ratio(),
            simulated=True,
            note=lambda text: log.debug("%s: %s", name, text),
        )

    def _work(self, rows: Sequence[int]) -> None:
        """Step some devices, each when it is due."""
        due = [(0.0, row) for row in rows]
        while due and not self._stopping.wait(max(0.0, due[0][0] - time.monotonic())):
            row = heapq.heappop(due)[1]
            wait = self._step(row)
            if wait is not None:
                heapq.heappush(due, (time.monotonic() + wait / 1000, row))

    def _step(self, row: int) -> int | None:
        """Step a device; return the milliseconds until it is due again, None if it has stopped."""
        try:
            return min(self._devices[row].step(), OFTEN_MS)
        except SensorError as problem:
            log.warning("%s has stopped: %s", self._names[row], problem)
            return None
