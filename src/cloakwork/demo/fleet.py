"""One device per sensor, all in this process: provisioned folders, the real sensor code, MQTT."""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread

from cloakwork.device import provision
from cloakwork.mqtt import BrokerAddress
from cloakwork.sensor.board import station
from cloakwork.sensor.errors import SensorError
from cloakwork.sensor.station import Station
from cloakwork.sensor.store import Folder
from cloakwork.site import Plan

OFTEN_MS = 20_000  # how often a device is stepped between its slots, for the answers of the broker
REAL_MS = 20  # the same in real time, while answers are on their way
SOON_MS = 1000  # the longest wait that a device asks for
ENDING = 15.0
LOOK_S = 0.1
Measure = Callable[[int], float]
log = logging.getLogger(__name__)
MAX_BEHIND_S = 1.0


class SimulatedClock:
    """Unix milliseconds in the flat: up to `speed` times faster than real time, and only as far as it is advanced.

    Sensors measure together within a fraction of a second of this time, which is a few milliseconds of real time. No
    busy machine keeps to that. So time stands still while the devices work, and `advance` moves it on when all of them
    have done what is due. On a slow machine the time runs slower; nothing becomes late.
    """

    def __init__(self, began: int, *, speed: float = 1.0) -> None:
        self.began = began
        self.speed = speed
        self._now = began
        self._due = time.monotonic()

    def __call__(self) -> int:
        return self._now

    def advance(self, milliseconds: int, stopping: Event, *, real: bool = False) -> None:
        """Wait, unless behind, and move the time on; as slowly as real time if `real`."""
        pause = milliseconds / 1000
        self._due = max(self._due + pause / self.speed, time.monotonic() - MAX_BEHIND_S)
        stopping.wait(pause if real else max(0.0, self._due - time.monotonic()))
        self._now += milliseconds


class Fleet:
    """The devices of some plans, running from `start` to `stop`.

    Parameters
    ----------
    plans
        The plans of sites; for each, what returns the present reading of the sensor in a row, in the site's unit.
    folder
        Parent of the devices' folders; empty at first.
    clock
        The time of the sites. The fleet advances it.
    behind
        Whether readings that were sent are still on their way to those who use them.

    Notes
    -----
    While a device waits for the broker, the clock runs in real time: time-outs of the network are not simulated. So it
    does while others are behind: on a slow machine the time runs slower, and nobody misses a reading.
    """

    def __init__(
        self,
        plans: Sequence[tuple[Plan, Measure]],
        folder: Path,
        *,
        broker: BrokerAddress,
        clock: SimulatedClock,
        behind: Callable[[], bool] = lambda: False,
        unit: str = "",
    ) -> None:
        self._made: list[tuple[Path, Callable[[], float]]] = []
        for plan, measure in plans:
            for row, sensor in enumerate(plan.sensors):
                path = folder / plan.site / sensor.id
                provision(plan, sensor.id, path, broker=broker, keys=None, unit=unit)
                self._made.append((path, partial(measure, row)))
        self._clock, self._behind = clock, behind
        self._period = min(plan.schedule.period_ms for plan, _ in plans)
        self._stopping = Event()
        self._devices: dict[int, Station] = {}
        self._thread = Thread(target=self._work, daemon=True, name="cloakwork devices")

    def start(self, after: Event) -> None:
        """Switch all devices on as soon as an event has happened."""
        self._after = after
        self._thread.start()

    def stop(self) -> None:
        """Disconnect and switch off all devices."""
        self._stopping.set()
        with suppress(RuntimeError):  # it was not started
            self._thread.join(ENDING)
        for device in self._devices.values():
            device.stop()
        self._devices.clear()

    def _device(self, row: int) -> Station:
        path, measure = self._made[row]
        return station(
            Folder(str(path)),
            lambda: measure().as_integer_ratio(),
            simulated=True,
            unix=self._clock,
            note=lambda text: log.debug("%s: %s", path.name, text),
        )

    def _work(self) -> None:
        """Step each device when it is due, and move the time on to the next that is."""
        while not self._after.wait(LOOK_S):
            if self._stopping.is_set():
                return
        for row in range(len(self._made)):
            self._devices[row] = self._device(row)
        due = dict.fromkeys(self._devices, self._clock())
        while due and not self._stopping.is_set():
            for row in [row for row, moment in due.items() if moment <= self._clock()]:
                try:
                    due[row] = self._clock() + self._step(self._devices[row])
                except SensorError as problem:
                    log.warning("%s has stopped: %s", self._made[row][0].name, problem)
                    del due[row]
            wait = min(due.values(), default=0) - self._clock()
            if any(self._devices[row].waits for row in due):
                self._clock.advance(wait, self._stopping, real=True)
            elif self._behind():
                self._clock.advance(min(wait, REAL_MS), self._stopping, real=True)
            else:
                self._clock.advance(wait, self._stopping)

    def _step(self, device: Station) -> int:
        """Step a device; return the milliseconds until it is due again."""
        wait = max(1, device.step())
        if device.waits:
            return min(wait, REAL_MS)
        return wait if wait < SOON_MS else min(OFTEN_MS, self._period - self._clock() % self._period)
