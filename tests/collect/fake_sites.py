"""Made-up sites for tests of the page: what the collector would say of them, worked out from the time alone."""

import math
import random
import time
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import numpy as np

from cloakwork.collect.api.site_geometry import floor_shape as floor_of
from cloakwork.physics import FloorPlan
from cloakwork.site import Site, parse_site

LINE = """
name = "hall"
sensors = 24
baseline = 20.0
unit = "°C"
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
sensors = 8
unit = "ppm"
[physics]
kind = "graph"
edges = [["well", "a"], ["a", "b"], ["b", "c"], ["c", "d"], ["d", "a"], ["c", "e"], ["e", "f"], ["f", "g"],
  ["g", "tower"], ["b", "h"], ["h", "i"], ["i", "j"], ["j", "e"]]
tau = 0.4
[sources]
kind = "pulse"
[privacy]
epsilon = 4.0
delta = 1e-5
alpha = 1.0
window = "1d"
readings_per_window = 24
"""
PERIOD_MS = 60_046  # between two frames of the flat, with 60 an hour
START_MS = int(1000 * time.time()) // PERIOD_MS * PERIOD_MS + 20_000  # in the middle between two frames
LAG = 10  # frames until a result is settled
WALKS = (  # corners of a round that each person goes, and how many minutes it takes
    ([(2.1, 2.4), (4.6, 1.4), (4.9, 5.6), (3.0, 6.6), (1.4, 5.0)], 40.0),
    ([(8.4, 1.6), (9.1, 2.9), (7.2, 3.1)], 25.0),
    ([(8.6, 6.6), (7.4, 6.0)], 90.0),
)


def flat_text(*, readings: int = 60, name: str = "flat") -> str:
    """The example site, with its readings in a window of an hour, and without named rooms."""
    text = files("cloakwork.site").joinpath("example.toml").read_text(encoding="utf-8")
    text = text.partition("# Rooms that have a name")[0]
    text = text.replace('window = "10min"', 'window = "1h"')
    text = text.replace("readings_per_window = 10", f"readings_per_window = {readings}")
    return text.replace('name = "flat"', f'name = "{name}"')


@dataclass
class FakeSite:
    """One site: its real geometry, and results that follow from the time. `began` None: it has none yet."""

    text: str
    began: int | None
    offers_truth: bool = True
    speed: float = 1.0
    people: int = 3
    """How many of the people are at home."""
    preparing: bool = False
    """Whether the solver is still being compiled."""
    used: int = 43
    silent: dict[str, int] = field(default_factory=dict)
    """Sensors that are not heard, and since how many milliseconds; -1 for never."""
    reported: dict[str, int] = field(default_factory=dict)
    """Sensors that have reported so many milliseconds ago, but never sent a reading."""
    states: dict[str, str] = field(default_factory=dict)
    problems: list[dict[str, Any]] = field(default_factory=list)
    alarms: list[dict[str, Any]] = field(default_factory=list)
    faults: list[dict[str, Any]] = field(default_factory=list)
    cut: bool = False
    """Whether a window has more readings than are put together."""
    over: dict[str, int] = field(default_factory=dict)
    """Sensors that send more than they may, and how many readings."""
    broken: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Why the claim does not hold for a sensor."""
    broker: str = "ok"
    forecast: dict[str, Any] | None = None
    zone_odds: dict[str, tuple[float | None, float]] = field(default_factory=dict)
    """Probability and expected number of a zone, instead of what the map says."""

    @property
    def site(self) -> Site:
        return _parsed(self.text)

    @property
    def info(self) -> dict[str, Any]:
        """All but the time of its clock."""
        told = self.site.spec.privacy
        return {
            "name": self.site.name,
            "kind": self.site.spec.physics.kind,
            "sensors": len(self.site.sensor_ids),
            "places": len(self.site.physics.space),
            "unit": self.site.unit,
            "alpha": told.alpha,
            "epsilon": told.epsilon,
            "delta": told.delta,
            "scope": told.scope,
            "window_s": told.window,
            "readings_per_window": told.readings_per_window,
            "stay": None,
            "shared": None,
            "assumptions": list(self.site.assumptions),
            "left_open": list(map(str, self.site.left_open)),
            "forecast": self.forecast,
            "period_ms": self.site.period_ms,
            "ahead_ms": 3 * self.site.period_ms,
            "estimator": "PointSources",
            "follows": True,
            "hold_ms": 2 * self.site.period_ms,
            "lag": LAG,
            "speed": self.speed,
            "simulated": self.offers_truth,
        }

    @cached_property
    def geometry(self) -> dict[str, Any]:
        physics, space = self.site.physics, self.site.physics.space
        shape: dict[str, Any] = {"name": self.site.name, "kind": self.site.spec.physics.kind, "unit": self.site.unit}
        if isinstance(physics, FloorPlan):
            shape |= floor_of(physics.rooms)
        shape["places"] = np.round(space.places, 6).tolist() if space.places.shape[1] else []
        if space.labels:
            shape |= {"labels": list(space.labels), "pairs": space.pairs.tolist(), "lengths": space.lengths.tolist()}
        shape["zones"] = [
            {"id": zone.id, "label": zone.label, "places": zone.places.tolist()} for zone in self.site.zones
        ]
        network = bool(space.labels)
        odds = {"radius": None if network else 0.031, "right_place": 0.853 if network else None}
        longer = {"seconds": 28_800.0, "epsilon": 19.6} | odds
        return shape | {"sensors": self._sensors(), "longer": longer}

    def _sensors(self) -> list[dict[str, Any]]:
        physics: Any = self.site.physics
        ids = self.site.sensor_ids
        at = physics.sensor_positions.tolist() if isinstance(physics, FloorPlan) else self._elsewhere(len(ids))
        lots = random.Random(7)
        fixed = {"step": 0.01, "baseline": 20.0}
        return [{"id": k, "at": p, "sigma": lots.uniform(0.2, 3)} | fixed for k, p in zip(ids, at, strict=True)]

    def _elsewhere(self, count: int) -> list[Any]:
        space = self.site.physics.space
        chosen = [int(k) for k in np.linspace(0, len(space) - 1, count)]
        return [space.labels[k] if space.labels else space.places[k].tolist() for k in chosen]

    def times(self, since: int, until: int) -> list[int]:
        """When there are frames, newest first."""
        if self.began is None:
            return []
        period = self.site.period_ms
        first = -(-max(since, self.began) // period)
        return [k * period for k in range(until // period, first - 1, -1)]

    def truth(self, time: int) -> list[dict[str, Any]]:
        """Where everyone is."""
        space = self.site.physics.space
        if not isinstance(self.site.physics, FloorPlan):
            place = (time // (5 * self.site.period_ms)) % len(space)
            at = [] if space.labels else space.places[place].tolist()
            return [{"at": at, "place": space.name(place)}]
        return [{"at": list(_walk(corners, time / 60000 / lap))} for corners, lap in WALKS[: self.people]]

    def result(self, time: int, *, frames: int = 1, now: int | None = None) -> dict[str, Any]:
        """What is found at that time; from many frames, more exactly. At `now` it may be settled."""
        lots = random.Random(time + frames)
        settled = now is not None and time <= now - LAG * self.site.period_ms
        noise = (0.5 if settled else 1.0) / math.sqrt(frames)
        spots = [self._spot(one, lots, noise) | {"label": k + 1} for k, one in enumerate(self.truth(time))]
        chance = 0.72 + 0.24 * lots.random()
        counts = [0.0] * (len(spots) + 2)
        counts[len(spots)] = chance
        counts[len(spots) - 1] += 0.6 * (1 - chance)
        counts[len(spots) + 1] += 0.4 * (1 - chance)
        expected = len(self.site.sensor_ids)
        tracks = [spot | {"since": time - 900_000, "same": 0.97} for spot in [*spots, *self._doubts(time)]]
        for track in tracks:
            del track["vicinity"]
        return {
            "site": self.site.name,
            "time": time,
            "sensors": expected - len(self.silent),
            "expected": expected,
            "estimator": "PointSources",
            "status": "converged",
            "gap": 0.0,
            "fit": 0.4,
            "set_aside": [],
            "counts": counts,
            "sources": spots,
            "tracks": tracks,
            "settled": settled,
            "solved": time + 4200 + int(900 * lots.random()),
            "took_ms": 40.0,
            "map": None,
            "zones": self.zones(spots),
            "failed": False,
            "doubtful": False,
        }

    def alone(self, time: int) -> dict[str, Any]:
        """The same from one frame: nobody is followed."""
        found = self.result(time)
        wider = [spot | {"label": None, "radius": 2 * spot["radius"]} for spot in found["sources"]]
        spots = [spot | {"vicinity": self._around(self._index(spot), spot["radius"])} for spot in wider]
        return found | {"sources": spots, "tracks": []}

    def timeline(self, since: int | None, now: int, steps: int = 300) -> dict[str, Any]:
        """Each zone over time, in steps; null where there is no frame."""
        times = self.times(0, now)
        start = since if since is not None else times[-1] if times else now - 1
        step = -(-(now - start) // steps)
        inside: dict[int, dict[str, Any]] = {
            (when - start) // step: self.result(when) for when in self.times(start, now)
        }
        columns = [inside.get(k) for k in range(steps)]
        zones = []
        for row, zone in enumerate(self.site.zones):
            found = [None if one is None else one["zones"][row] for one in columns]
            lanes = {name: [one and one[name] for one in found] for name in ("probability", "occupied")}
            zones.append({"id": zone.id} | lanes)
        counts = [None if one is None else one["counts"].index(max(one["counts"])) for one in columns]
        return {"since": start, "until": start + steps * step, "step_ms": step, "zones": zones, "counts": counts}

    def tracks(self, since: int, until: int) -> list[dict[str, Any]]:
        """Everyone's points in a period."""
        found: dict[int, list[dict[str, Any]]] = {}
        for when in reversed(self.times(since, until)):
            for track in self.result(when)["tracks"]:
                point = {name: track[name] for name in ("place", "at", "probability")}
                found.setdefault(track["label"], []).append(point | {"time": when, "settled": True})
        ends = {label: (points[0]["time"], points[-1]["time"]) for label, points in found.items()}
        return [{"label": k, "since": ends[k][0], "until": ends[k][1], "points": v} for k, v in found.items()]

    def _doubts(self, time: int) -> list[dict[str, Any]]:
        """One that is less likely than not, where the flat has room for it."""
        if not isinstance(self.site.physics, FloorPlan):
            return []
        doubt = self._spot({"at": [1.2, 1.2 + 0.2 * (time // self.site.period_ms % 4)]}, random.Random(time), 0.0)
        return [doubt | {"label": 7, "radius": 1.5, "probability": 0.31}]

    def _spot(self, one: dict[str, Any], lots: random.Random, noise: float) -> dict[str, Any]:
        space = self.site.physics.space
        if not one["at"]:
            node = int(space.index(one["place"]))
            spot = {"place": one["place"], "at": [], "weight": 1.0, "radius": 1.0, "probability": 0.83}
            return spot | {"vicinity": self._around(node, 1.0)}
        at = [value + lots.gauss(0, 0.25 * noise) for value in one["at"]]
        place = int(((space.places - np.array(at)) ** 2).sum(axis=1).argmin())
        radius = noise * (0.7 + 0.5 * lots.random()) * (2.5 if len(at) == 1 else 1.0)
        centre = space.places[place].tolist()
        return {
            "place": str(place),
            "at": centre,
            "weight": 1.0,
            "radius": max(0.25, radius),
            "vicinity": self._around(place, max(0.25, radius)),
            "probability": 0.62 + 0.37 * lots.random(),
        }

    def _around(self, place: int, radius: float) -> list[int]:
        return [int(near) for near in np.flatnonzero(self._far(place) <= radius)]

    def map(self, result: dict[str, Any]) -> list[float]:
        """Expected sources at each place: each spread around where it was found."""
        space = self.site.physics.space
        total = np.zeros(len(space))
        for spot in result["sources"]:
            place = space.index(spot["at"] or spot["place"])
            bump = np.exp(-0.5 * (self._far(place) / (0.55 * spot["radius"])) ** 2)
            total += spot["probability"] * bump / bump.sum()
        return [float(f"{value:.4g}") for value in total]

    def zones(self, spots: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What the sources say of each zone."""
        found = []
        for zone in self.site.zones:
            inside = [spot["probability"] for spot in spots if self._index(spot) in zone.places]
            chance, expected = self.zone_odds.get(zone.id, (1 - math.prod(1 - p for p in inside), sum(inside)))
            there = None if chance is None else chance >= 0.5
            since = None if there is None else self.began
            odds = {"expected": expected, "probability": chance, "occupied": there}
            found.append({"id": zone.id, "since": since} | odds)
        return found

    def _index(self, spot: dict[str, Any]) -> int:
        return int(self.site.physics.space.index(spot["at"] or spot["place"]))

    def _far(self, place: int) -> Any:
        """As the crow flies, but not through walls."""
        space = self.site.physics.space
        walked = space.distances(place)
        if not space.places.shape[1]:
            return walked
        flown = np.sqrt(((space.places - space.places[place]) ** 2).sum(axis=1))
        return np.where(walked <= 1.5 * flown + 0.5, flown, walked)

    def health(self, now: int) -> dict[str, Any]:
        period, told = self.site.period_ms, self.info
        last = now // period * period + 4000
        sensors = []
        for number, name in enumerate(self.site.sensor_ids):
            seen: int | None = min(now, last) if self.began is not None else None
            if name in self.reported:
                seen = now - self.reported[name]
            elif name in self.silent:
                seen = None if self.silent[name] < 0 else now - self.silent[name]
            used = self.over.get(name, self.used - (number % 3 == 1)) if seen is not None else None
            state = self.states.get(name, "online") if seen is not None else None
            one = {"id": name, "state": state, "used": used, "allowed": told["readings_per_window"]}
            one |= {"last_seen": seen, "last_reading": None if name in self.reported else seen}
            one |= {
                "alarms": sum(alarm["sensor"] == name for alarm in self.alarms),
                "broken": self.broken.get(name, []),
            }
            one |= {"late": number % 4, "again": 0, "missing": 0, "frames": 60}
            sensors.append(one | {"sigma": self.geometry["sensors"][number]["sigma"]})
        return {
            "site": self.site.name,
            "lag": {"lag_ms": now - last, "delay_ms": 4640, "waiting": 0, "more": False, "open": 0, "solved": 43}
            | {"failed": 0, "per_second": 0.0, "took_ms": 40.0, "reason": "", "preparing": self.preparing},
            "queued": 0,
            "now": now,
            "sensors": sensors,
            "problems": self.problems,
            "alarms": self.alarms,
            "faults": self.faults,
            "broker": {"state": self.broker, "since": now, "reason": ""},
            "store": {"state": "ok", "since": now, "reason": ""},
        }


@cache
def _parsed(text: str) -> Site:
    return parse_site(text)


def _walk(corners: list[tuple[float, float]], laps: float) -> tuple[float, float]:
    """A point on a round, after so many laps."""
    at = (laps % 1) * len(corners)
    (ax, ay), (bx, by) = corners[int(at)], corners[(int(at) + 1) % len(corners)]
    share = at % 1
    return ax + (bx - ax) * share, ay + (by - ay) * share
