"""Starts and stops the whole demonstration: flat, people, devices, broker, collector and page."""

import os
import socket
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Self

from cloakwork.collect import CollectedSite, EmbeddedBroker, ListenAddress, Result, Role, Service, Store, open_store
from cloakwork.demo.fleet import Fleet
from cloakwork.demo.simulated_flat import SimulatedFlat, unix_ms
from cloakwork.demo.walks import Movement
from cloakwork.site import Site, freeze, parse_site

USUAL_PORT = 8080
MEMORY = "/dev/shm"  # noqa: S108 - the folder made there has a random name
PREFIX = "cloakwork-demo-"
KEPT_DAYS = 1 / 24
MOST_FILES = 4096  # a device holds two files and a connection open, with both of its ends in this process
LOOK_S = 0.1


@dataclass(frozen=True)
class DemoProgress:
    """People in the flat now, readings stored and frames recovered.

    `delay_ms` is the time from the last frame to its result; None before the first.
    """

    people: int
    readings: int
    frames: int
    delay_ms: int | None


def load_flat() -> Site:
    """The flat of the demonstration."""
    text = files("cloakwork.demo").joinpath("flat.toml").read_text(encoding="utf-8")
    return parse_site(text, name="flat.toml")


class Demonstration:
    """The running demonstration, as a context manager; leaving it removes all its data.

    Parameters
    ----------
    movement
        How people move.
    port
        Port of the page on this machine; 0 takes any free one.
    """

    def __init__(self, site: Site, movement: Movement, *, port: int = 0) -> None:
        self.site = site
        self._movement = movement
        self._port = port
        self._stack = ExitStack()
        self._service: Service | None = None

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def service(self) -> Service:
        """The collector."""
        if self._service is None:
            raise RuntimeError("not started")
        return self._service

    def invite(self) -> str:
        """An address that signs in once; later `secret` is a token to sign in with."""
        return self.service.invite(self._token)

    @property
    def store(self) -> Store:
        """The collector's store."""
        return self.service.store

    def progress(self) -> DemoProgress:
        """The current state, for a status line."""
        lag = self.service.live.state(self.site.name)
        people = len(self.world.people(unix_ms()))
        return DemoProgress(people, self.service.intake.state.stored, lag.solved - lag.failed, lag.delay_ms)

    def wait_for(self, frames: int, timeout: float) -> Result:
        """Wait until this many frames are recovered, and return the newest result from all sensors."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            found = self.store.results.latest(self.site.name) if self.progress().frames >= frames else None
            if found is not None and found.sensors == found.expected:
                return found
            time.sleep(LOOK_S)
        raise TimeoutError(f"the devices' readings did not arrive within {timeout:g} s: the machine may be too busy")

    def _start(self) -> None:
        _allow_files()
        folder = Path(self._stack.enter_context(_temporary()))
        self.watched = CollectedSite(self.site, freeze(self.site, self.site.cloak()))
        broker = EmbeddedBroker()
        broker.start()
        self._stack.callback(broker.stop)
        self.world = SimulatedFlat(self.site, self._movement, unix_ms())
        store = self._stack.enter_context(open_store(str(folder / "cloakwork.db")))
        self._service = Service(
            {self.site.name: self.watched},
            store,
            broker=broker.broker,
            listen=ListenAddress(port=self._port),
            keep_days=KEPT_DAYS,
            simulation=self.world.truth,
        )
        self._service.start()
        self._stack.callback(self._service.stop)
        self._token, self.secret = store.tokens.create(Role.ANALYST, label="demonstration")
        fleet = Fleet(
            self.watched.plan,
            folder / "devices",
            broker=broker.broker,
            measure=self.world.reading,
            unit=self.site.unit,
        )
        self._stack.callback(fleet.stop)
        fleet.start()


def usual_port() -> int:
    """The usual port of the page, or 0 if it is taken."""
    try:
        socket.create_server(("127.0.0.1", USUAL_PORT)).close()
    except OSError:
        return 0
    return USUAL_PORT


def _temporary() -> "tempfile.TemporaryDirectory[str]":
    """A temporary folder, in memory if possible, because eighty devices keep a disk busy."""
    usable = Path(MEMORY).is_dir() and os.access(MEMORY, os.W_OK) and not os.environ.get("TMPDIR")
    place = MEMORY if usable else None
    return tempfile.TemporaryDirectory(prefix=PREFIX, dir=place, ignore_cleanup_errors=True)


def _allow_files() -> None:
    """Raise the limit of open files to what the devices need; some systems start low."""
    with suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 - not everywhere

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        enough = MOST_FILES if hard == resource.RLIM_INFINITY else min(MOST_FILES, hard)
        if soft != resource.RLIM_INFINITY and soft < enough:
            resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))
