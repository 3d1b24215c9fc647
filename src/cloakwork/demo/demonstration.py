"""Starts and stops the whole demonstration: rooms, people, devices, broker, collector and page."""

import json
import os
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.collect import (
    CollectedSite,
    EmbeddedBroker,
    ListenAddress,
    Result,
    Role,
    Service,
    Truth,
    open_store,
)
from cloakwork.demo.fleet import Fleet, SimulatedClock
from cloakwork.demo.household import WAKING_S, Position, floor_of
from cloakwork.physics import follow
from cloakwork.site import Forecast, Site, freeze, parse_site

USUAL_PORT = 8080
MEMORY = "/dev/shm"  # noqa: S108 - the folder made there has a random name
PREFIX = "cloakwork-demo-"
KEPT_DAYS = 2.0
SPEED = 60.0
MAX_FILES = 4096  # a device holds two files and a connection open, with both of its ends in this process
LOOK_S = 0.1
STEPS_OF_A_LAG = 10  # in which people may move while readings follow them
REMEMBERED_STEPS = 80  # eight lags; what is older counts as the oldest
CONNECTING_MS = 30_000  # before the first frame; in real time, since devices wait for the broker


class Inhabitants(Protocol):
    """People who move; `origin` says how."""

    @property
    def origin(self) -> str: ...

    def at(self, elapsed_ms: int) -> tuple[Position, ...]:
        """The positions of everyone, so many milliseconds after the beginning."""


@dataclass(frozen=True, eq=False)
class SimulatedFlat:
    """People in the rooms of a site, from Unix millisecond `began` on."""

    site: Site
    movement: Inhabitants
    began: int
    clock: Callable[[], int]

    def people(self, time: int) -> tuple[Position, ...]:
        """The positions of all people at a time, (x, y) in metres."""
        return self.movement.at(max(0, time - self.began))

    def reading(self, sensor: int) -> float:
        """The present reading of the sensor in this row of the model, in the site's unit, without noise."""
        return float(self.readings(self.clock())[sensor])

    @cached_property
    def readings(self) -> Callable[[int], FloatArray]:
        """The readings of all sensors at a time, without noise; sensors that measure together ask for the same one."""
        return lru_cache(maxsize=1)(self._readings)

    def _readings(self, time: int) -> FloatArray:
        """They follow the people with the lag of the flat."""
        physics, floor = self.site.physics, floor_of(self.site)
        step = physics.lag / STEPS_OF_A_LAG
        moments = [time - round(1000 * step * k) for k in reversed(range(REMEMBERED_STEPS if step else 1))]
        weights = np.zeros((len(moments), physics.places))
        for row, moment in zip(weights, moments, strict=True):
            for at in self.people(moment):
                for cell, share in floor.shares(*at):
                    row[cell] += share
        return np.asarray(physics.matrix @ follow(weights, seconds=step, lag=physics.lag)[-1] + self.site.baselines)

    def truth(self, site: str, time: int | None) -> Truth | None:
        """The positions that the collector may show beside its results: at a time, or now."""
        now = self.clock()
        when = now if time is None else time
        if site != self.site.name or not self.began <= when <= now:
            return None
        return Truth(when, self.people(when))


@dataclass(frozen=True)
class DemoProgress:
    """The simulated time, the people there now, readings stored and frames recovered of each site.

    `delay_ms` is the simulated time from the last frame to its result; None before the first. The devices start when
    the solvers are no longer `preparing`.
    """

    time: int
    people: int
    readings: int
    frames: int
    delay_ms: int | None
    preparing: bool


def load_flat() -> Site:
    """The flat of the demonstration: that of the example site file."""
    text = files("cloakwork.site").joinpath("example.toml").read_text(encoding="utf-8")
    return parse_site(text, name="example.toml")


def load_forecast() -> Forecast:
    """How well people in that flat are followed: the figures of `python -m benchmarks.run default_flat`."""
    return Forecast(**json.loads(files("cloakwork.demo").joinpath("forecast.json").read_text(encoding="utf-8")))


def load_office() -> tuple[Site, ...]:
    """The floors of an office: twelve rooms on both sides of a corridor, for up to 24 people each."""
    text = files("cloakwork.demo").joinpath("office.toml").read_text(encoding="utf-8")
    names = ("ground-floor", "first-floor")
    return tuple(parse_site(text.replace("office-floor", name), name=f"{name}.toml") for name in names)


def sensors_of(site: Site) -> str:
    """Say how the sensors of a demonstration read."""
    steps, noise = (0.0 if values is None else float(values.max()) for values in (site.resolutions, site.noise_floors))
    return (
        f"The sensors read in steps of {steps:g} {site.unit}. They have a noise floor of {noise:g} {site.unit}, and "
        f"follow people with a lag of {site.physics.lag / 60:g} minutes."
    )


class Demonstration:
    """The running demonstration, as a context manager; leaving it removes all its data.

    Parameters
    ----------
    floors
        Sites, each with its people and how they move.
    begins_s
        The time of day at which it begins, in seconds.
    speed
        How many times faster than real time it runs.
    port
        Port of the page on this machine; 0 takes any free one.
    forecast
        How well people at the first site are followed, for its page.
    """

    def __init__(
        self,
        *floors: tuple[Site, Inhabitants],
        begins_s: int = WAKING_S,
        speed: float = SPEED,
        port: int = 0,
        forecast: Forecast | None = None,
    ) -> None:
        self.site, _ = floors[0]
        self.floors = floors
        self._morning, period = this_morning(begins_s), self.site.period_ms
        first = -(-self._morning // period) * period
        self.clock = SimulatedClock(first - min(CONNECTING_MS, period // 2), speed=speed)
        self._port, self._forecast = port, forecast
        self.service: Service  # the collector, once started

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def invite(self) -> str:
        """An address that signs in once; later `secret` is a token to sign in with."""
        return self.service.invite(self._token)

    def progress(self) -> DemoProgress:
        """The current state, for a status line."""
        live, now = self.service.live, self.clock()
        states = [live.state(site.name) for site, _ in self.floors]
        delays = [state.delay_ms for state in states if state.delay_ms is not None]
        return DemoProgress(
            now,
            sum(len(world.people(now)) for world in self.worlds.values()),
            self.service.intake.state.stored,
            min(state.solved - state.failed for state in states),
            max(delays) if len(delays) == len(states) else None,
            not live.prepared.is_set(),
        )

    def wait_for(self, frames: int, timeout: float) -> Result:
        """Wait until this many frames are recovered, and return the newest result from all sensors."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            found = self.service.store.results.latest(self.site.name) if self.progress().frames >= frames else None
            if found is not None and found.sensors == found.expected:
                return found
            time.sleep(LOOK_S)
        raise TimeoutError(f"the devices' readings did not arrive within {timeout:g} s: the machine may be too busy")

    def _behind(self) -> bool:
        """Whether the devices have sent a frame that is not on a map yet.

        The collector waits for the readings of a frame by the simulated time: a busy machine would need longer.
        """
        now = self.clock()
        for site, _ in self.floors:
            lag = self.service.live.state(site.name).lag_ms
            sent = (now - site.schedule.offset_ms) // site.period_ms * site.period_ms
            if sent > (self.clock.began if lag is None else now - lag):
                return True
        return False

    def _start(self, stack: ExitStack) -> None:
        _allow_files()
        folder = Path(stack.enter_context(_temporary()))
        plans = {site: freeze(site, site.cloak()) for site, _ in self.floors}
        plans[self.site] = replace(plans[self.site], forecast=self._forecast)
        watched = {site.name: CollectedSite(site, plan) for site, plan in plans.items()}
        self.watched = watched[self.site.name]
        broker = EmbeddedBroker()
        broker.start()
        stack.callback(broker.stop)
        self.worlds = {
            site.name: SimulatedFlat(site, movement, self._morning, self.clock) for site, movement in self.floors
        }
        store = stack.enter_context(open_store(str(folder / "cloakwork.db"), now=self.clock))
        self.service = Service(
            watched,
            store,
            broker=broker.broker,
            listen=ListenAddress(port=self._port),
            keep_days=KEPT_DAYS,
            simulation=lambda site, time: self.worlds[site].truth(site, time),
            clock=self.clock,
            speed=self.clock.speed,
        )
        self.service.start()
        stack.callback(self.service.stop)
        self._token, self.secret = store.tokens.create(Role.ANALYST, label="demonstration")
        fleet = Fleet(
            [(watched[name].plan, world.reading) for name, world in self.worlds.items()],
            folder / "devices",
            broker=broker.broker,
            clock=self.clock,
            behind=self._behind,
            unit=self.site.unit,
        )
        stack.callback(fleet.stop)
        fleet.start(self.service.live.prepared)


def this_morning(begins_s: int = WAKING_S) -> int:
    """The Unix milliseconds of today's date at a time of day: by default that at which the household wakes."""
    return 1000 * (round(datetime.combine(date.today(), datetime.min.time()).timestamp()) + begins_s)


def usual_port() -> int:
    """The usual port of the page, or 0 if it is taken."""
    try:
        socket.create_server(("127.0.0.1", USUAL_PORT)).close()
    except OSError:
        return 0
    return USUAL_PORT


def _temporary() -> "tempfile.TemporaryDirectory[str]":
    """A temporary folder, in memory if possible, because many devices keep a disk busy."""
    usable = Path(MEMORY).is_dir() and os.access(MEMORY, os.W_OK) and not os.environ.get("TMPDIR")
    place = MEMORY if usable else None
    return tempfile.TemporaryDirectory(prefix=PREFIX, dir=place, ignore_cleanup_errors=True)


def _allow_files() -> None:
    """Raise the limit of open files to what the devices need; some systems start low."""
    with suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 - not everywhere

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        enough = MAX_FILES if hard == resource.RLIM_INFINITY else min(MAX_FILES, hard)
        if soft != resource.RLIM_INFINITY and soft < enough:
            resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))
