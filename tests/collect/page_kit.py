"""Shared by tests of the page: a real collector of made-up sites whose clock the test moves, and visits to it."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from cloakwork.collect.api import Truth, event_streams, routes_data
from cloakwork.collect.attack import Attack, Span
from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.message_problems import Reason
from cloakwork.collect.storage import (
    DeviceReport,
    ProblemCount,
    Reading,
    RecoveredSource,
    RecoveredTrack,
    Result,
    ZoneState,
    pack_map,
)
from tests.browser import Visit, visiting
from tests.collect.api_kit import Bench, collected, served
from tests.waiting import PATIENCE

FLAT = """
name = "flat"
sensors = 80
baseline = 21.0
unit = "°C"
[physics]
kind = "floorplan"
cell = 0.5
size = [10.0, 8.0]
walls = [[[6.0, 0.0], [6.0, 8.0]], [[6.0, 4.0], [10.0, 4.0]]]
doors = [[[6.0, 1.75], [6.0, 3.0]], [[6.0, 5.0], [6.0, 6.25]]]
regime = "steady"
reach = 2.0
[sources]
kind = "lasting"
max_count = 4
[privacy]
epsilon = 4.0
delta = 1e-5
alpha = 0.1
window = "1h"
readings_per_window = 60
[motion]
kind = "people"
"""
LINE = """
name = "hall"
sensors = 24
[physics]
kind = "line"
places = 80
T = 0.01
length = 40.0
[sources]
kind = "pulse"
[privacy]
epsilon = 2.0
delta = 1e-6
alpha = 1.0
window = "30min"
readings_per_window = 30
"""
GRAPH = """
name = "pipes"
sensors = 4
[physics]
kind = "graph"
edges = [["well", "a"], ["a", "b"], ["b", "c"], ["c", "d"], ["d", "a"], ["c", "tower"]]
tau = 0.4
[sources]
kind = "pulse"
[privacy]
epsilon = 4.0
delta = 1e-5
alpha = 1.0
window = "1h"
readings_per_window = 60
"""
NEW = LINE.replace('"hall"', '"new"')
PERIOD_MS = 60_000  # between two frames of each site
START_MS = int(1000 * time.time()) // PERIOD_MS * PERIOD_MS + 20_000
LAG = 10  # frames until a result is settled
FRAMES = 43  # of each site before the test begins
SEATS = [(2.1, 2.4), (8.4, 1.6), (8.6, 6.6)]  # of the people in the flat, one in each room
USUAL = ("status of 401",)  # a console message of Chromium: the first request has no session


@cache
def made_result(site: CollectedSite, when: int, people: int, settled: bool) -> Result:
    """What is found in a frame, worked out from its time alone."""
    space, lots = site.site.physics.space, random.Random(when)
    if site.site.zones:
        places = [int(space.index(np.add(seat, lots.choice((0.0, 0.5))))) for seat in SEATS[:people]]
    else:
        places = [when // (5 * PERIOD_MS) % len(space)]
    weights, sources, tracks = np.zeros(len(space)), [], []
    for label, place in enumerate(places, start=1):
        at = tuple(space.places[place].tolist())
        name = str(place) if at else space.name(place)
        near = [int(k) for k in np.flatnonzero(space.distances(place) <= 1.0)]
        weights[near] += 0.98 / len(near)
        sources.append(RecoveredSource(name, at, 1.0, 1.0, 0.98, label, tuple(near)))
        tracks.append(RecoveredTrack(label, when - 900_000, name, at, 1.0, 1.0, 0.98, 0.97))
    zones = []
    for zone in site.site.zones:
        inside = sum(place in zone.places for place in places)
        zones.append(ZoneState(zone.id, float(inside), 0.99 if inside else 0.01, inside > 0, START_MS - 3_600_000))
    counts = tuple(0.97 if k == len(places) else 0.03 / 4 for k in range(5))
    return Result(
        *(site.name, when, len(site.ids), len(site.ids), "PointSources", "sampled", 0.0, 0.4, (), counts),
        *(tuple(sources), pack_map(weights), when + 4000 + settled, 40.0),
        settled=settled,
        labels=len(places),
        tracks=tuple(tracks),
        zones=tuple(zones),
    )


class Home:
    """The collector; sensors of the flat that are `silent` send nothing, and have sent nothing before."""

    def __init__(self, sites: Sequence[str] = (FLAT,), *, silent: Sequence[str] = ()) -> None:
        self.sites = [collected(text) for text in sites]
        self.now, self.people, self.silent = START_MS, len(SEATS), silent
        self.made: Bench

    def truth(self, site: str, when: int | None) -> Truth | None:
        return Truth(when or self.now, SEATS) if site == "flat" else None

    def times(self) -> list[int]:
        """When there are frames of the flat, newest first."""
        return [self.now // PERIOD_MS * PERIOD_MS - k * PERIOD_MS for k in range(FRAMES)]

    def begin(self, made: Bench) -> None:
        self.made = made
        for site in self.sites:
            for when in reversed(self.times()) if site.name != "new" else ():
                self._keep(site, when, readings=when == self.times()[0])
            reports = [DeviceReport(site.name, one, "online", 43, 60, self.now) for one in site.ids]
            made.store.reports.add([one for one in reports if site.name != "new" and one.sensor not in self.silent])

    def advance(self, frames: int = 1) -> None:
        """Let time pass, with all the results that fall into it."""
        for _ in range(frames):
            self.now += PERIOD_MS
            for site in self.sites:
                self._keep(site, self.times()[0])

    def _keep(self, site: CollectedSite, when: int, *, readings: bool = True) -> None:
        store, settled = self.made.store, when - LAG * PERIOD_MS
        heard = [one for one in site.ids if one not in self.silent] if readings else site.ids[:1]
        store.readings.add([Reading(site.name, one, when, when, 5, when) for one in heard])
        store.results.save([made_result(site, when, self.people, False)])
        if store.frames.times(site.name, settled, settled + 1):
            store.results.save([made_result(site, settled, self.people, True)])

    def trouble(self) -> None:
        """Some devices of the flat with trouble of each kind."""
        store, now = self.made.store, self.now
        states = {"s05": "spent", "s60": "offline", "s61": "failing", "s62": "skipping"}
        store.reports.add([DeviceReport("flat", one, state, 43, 60, now) for one, state in states.items()])
        store.readings.add([Reading("flat", "s31", self.times()[0], self.times()[0], 6, now)])  # another value
        store.readings.add([Reading("flat", "s17", 1, now - 900_000, 5, now)])
        self.problem(Reason.LATE, "s12", 3)
        self.problem(Reason.LATE, "s13", 2)
        self.problem(Reason.UNKNOWN_SENSOR, "", 12)

    def problem(self, reason: str, sensor: str, count: int) -> None:
        self.made.store.problems.add([ProblemCount("flat", sensor, reason, count, self.now)])

    def attack(self, site: CollectedSite, when: int | None, span: Span) -> Attack:
        """What an attacker finds, at once: the real one takes seconds."""
        found = made_result(site, when or self.times()[0], self.people, False)
        return Attack(**vars(found), frames=43, readings=3440, since=found.time - 3_600_000, span=span)

    def alone(self, site: CollectedSite) -> Any:
        def solve(frame: Any) -> Result:
            return replace(made_result(site, frame.time, self.people, False), tracks=(), labels=None)

        return type("Solver", (), {"alone": staticmethod(solve)})


@contextmanager
def collecting(home: Home) -> Iterator[str]:
    """The address of a collector."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_streams, "FOLLOW_S", 0.05)
        patch.setattr(event_streams, "CHECK_S", 0.5)
        patch.setattr(routes_data, "_solver", home.alone)
        sites = {site.name: site for site in home.sites}
        with served(Path(folder), sites=sites, clock=lambda: home.now, simulation=home.truth) as (made, address):
            patch.setattr(made.context.attacks, "attack_until", home.attack)
            home.begin(made)
            yield address


@contextmanager
def watching(browser: Browser, home: Home | None = None, *, site: str = "flat", **options: Any) -> Iterator[Visit]:
    """A visit that is signed in and shows a site."""
    expected, home = options.pop("expected", ()), home or Home()
    with ExitStack() as stack:
        address = f"{stack.enter_context(collecting(home))}/?site={site}#code={home.made.code('analyst')}"
        visit = stack.enter_context(visiting(browser, address, expected=(*USUAL, *expected), **options))
        visit.page.wait_for_selector("#board[aria-busy=false]")
        until(lambda: bool(home.made.hub.streams), visit.page)
        yield visit


def sign_in(page: Page, token: str) -> None:
    page.fill("#token", token)
    page.press("#token", "Enter")


def go(page: Page, route: str) -> None:
    page.click(f"#routes a[href='#/{route}']")


def text(page: Page, selector: str) -> str:
    """The text of an element, with plain spaces."""
    return " ".join(page.inner_text(selector).replace("\u00a0", " ").split())


def time_text(when: int) -> str:
    """A time as the page shows it: of the machine's own day."""
    return time.strftime("%H:%M:%S", time.localtime(when / 1000))


def until(fact: Callable[[], bool], page: Page) -> None:
    """Wait for a fact that no locator can express."""
    end = time.monotonic() + PATIENCE
    while not fact():
        assert time.monotonic() < end, "it did not happen"
        page.wait_for_timeout(50)
