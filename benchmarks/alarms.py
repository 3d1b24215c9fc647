"""Alarms about changed physics: how soon each fault of the example flat is noticed, and how often none raises one.

A family lives in the flat through a day that repeats. Readings have the noise of the example's plan. Beside each delay
is that of someone who knows where everyone is, and which fault to look for: after that time the fault has changed the
readings by so much that the likelihood ratio, on average, reaches the years between two false alarms.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import isnan, nan

import numpy as np
from rich.table import Table

from cloakwork._checks import FloatArray, IntArray
from cloakwork.accuracy import simulated_day
from cloakwork.demo import family
from cloakwork.physics import FloorPlan
from cloakwork.recovery import Fault, FaultDetector, Tracker
from cloakwork.site import Site
from scripts.plain_flat import plain_flat

YEAR_S = 365.25 * 86_400
BEFORE = 60  # frames without the fault
LONGEST = 1440  # frames
BEGINS_S = 6 * 3600 + 40 * 60  # time of day
QUIET_RATE, QUIET_FRAMES = 2000.0, 1440  # false alarms a year, set so high that they can be counted
QUIET_DAYS = 3  # of the family, and of people who are drawn


@dataclass(frozen=True, eq=False)
class Flat:
    """The example flat and its true readings less the baseline."""

    site: Site
    sigmas: FloatArray

    @classmethod
    def example(cls) -> "Flat":
        site = plain_flat()
        return cls(site, site.cloak().sigmas)

    @property
    def plan(self) -> FloorPlan:
        assert isinstance(self.site.physics, FloorPlan)
        return self.site.physics

    @property
    def period(self) -> float:
        return self.site.period_ms / 1000

    def day(self, frames: int, plan: FloorPlan | None = None) -> FloatArray:
        """True readings of some frames, by the plan as it really is."""
        moments = (BEGINS_S + self.period * np.arange(frames)) % 86_400
        return self._readings(family(self.plan.rooms).day.places_at(moments), plan or self.plan)

    def drawn_day(self, seed: int) -> FloatArray:
        """True readings of a day of up to three people who sit, walk, come and go."""
        day = simulated_day(self.plan.space, people=3, seed=seed)
        return self._readings(day.places_at(self.period * np.arange(QUIET_FRAMES)), self.plan)

    def _readings(self, people: IntArray, plan: FloorPlan) -> FloatArray:
        return np.array([plan.matrix[:, row[row >= 0]].sum(axis=1) for row in people])

    def sensors(self) -> list[int]:
        """The sensor with the least noise, and the one a quarter down the list of all."""
        order = np.argsort(self.sigmas)
        return [int(order[len(order) * part // 100]) for part in (0, 25)]

    def least(self, true: FloatArray) -> float:
        """Hours after which a fault can be known at one false alarm a year, if all but the noise is known."""
        rates = (((true - self.day(len(true))) / self.sigmas) ** 2).sum(axis=1) / 2
        enough = np.flatnonzero(np.cumsum(rates) >= np.log(YEAR_S / self.period))
        return (enough[0] - BEFORE) * self.period / 3600 if len(enough) else nan

    def watch(self, true: FloatArray, seed: int, per_year: float = 1.0, *, until: int = 1) -> list[tuple[int, Fault]]:
        """The first `until` alarms, each with the number of its frame."""
        noise = self.sigmas * np.random.default_rng([seed, 7]).standard_normal(true.shape)
        tracker = Tracker(self.plan, sigma=self.sigmas, motion=self.site.motion, max_sources=4, seed=seed)
        detector = FaultDetector(tracker.observer, period=self.period, per_year=per_year)
        alarms: list[tuple[int, Fault]] = []
        known: set[Fault] = set()
        for number, readings in enumerate(true + noise):
            now = tracker.step(readings, self.period * number, ignored=detector.sensors)
            active = set(detector.step(readings, now.draws))
            alarms += [(number, fault) for fault in active - known]
            known = active
            if len(alarms) >= until:
                break
        return alarms


def faults(flat: Flat) -> dict[str, Callable[[int], FloatArray]]:
    """The true readings with each fault of a sensor, or of all."""
    day = flat.day(LONGEST)

    def change(sensor: int, values: FloatArray) -> FloatArray:
        changed = day.copy()
        changed[BEFORE:, sensor] = values[BEFORE:]
        return changed

    def moved(sensor: int, metres: float) -> FloatArray:
        at = flat.plan.sensor_positions
        apart = np.abs(np.hypot(*(at - at[sensor]).T) - metres)
        return day[:, int(apart.argmin())]

    def all_of(plan: FloorPlan) -> FloatArray:
        return np.vstack([day[:BEFORE], flat.day(LONGEST, plan)[BEFORE:]])

    shut, far = flat.plan.with_doors_shut([1]), flat.plan.with_spread(0.7**2)
    return {
        "dead: reads the baseline": lambda k: change(k, 0 * day[:, k]),
        "stuck at what it read": lambda k: change(k, 0 * day[:, k] + day[BEFORE, k]),
        "clipped at half of what a person near it adds": lambda k: change(
            k, np.minimum(day[:, k], flat.plan.matrix[k].max() / 2)
        ),
        "reads 0.5 degrees too much": lambda k: change(k, day[:, k] + 0.5),
        "reads 0.5 degrees too little": lambda k: change(k, day[:, k] - 0.5),
        "reads Fahrenheit": lambda k: change(k, 1.8 * (day[:, k] + 21) + 32 - 21),
        "responds half as strongly": lambda k: change(k, 0.5 * day[:, k]),
        "moved by 2 m": lambda k: change(k, moved(k, 2.0)),
        "moved by 5 m": lambda k: change(k, moved(k, 5.0)),
        "door to the bedroom is a wall": lambda _: all_of(shut),
        "warmth reaches 0.7 times as far": lambda _: all_of(far),
    }


def run() -> tuple[Table, bool]:
    """The table, and whether the goals are met."""
    flat = Flat.example()
    table = Table(title="Hours until a fault of the example flat is noticed (could be), at one false alarm a year")
    chosen = flat.sensors()
    table.add_column("fault")
    for sensor in chosen:
        table.add_column(f"sensor with noise {flat.sigmas[sensor]:.2f}", justify="right")
    table.add_column("said")
    with ProcessPoolExecutor() as pool:
        watched = {
            name: [pool.submit(_noticed, name, sensor) for sensor in (chosen[:1] if _of_all(name) else chosen)]
            for name in faults(flat)
        }
        quiet = [[pool.submit(_raised, seed, drawn) for seed in range(QUIET_DAYS)] for drawn in (False, True)]
        for name, days in watched.items():
            cells, said = zip(*(day.result() for day in days), strict=True)
            table.add_row(name, *cells, *[""] * (len(chosen) - len(cells)), ", ".join(sorted({*said} - {""})))
        counts = [sum(day.result() for day in days) for days in quiet]
    allowed = QUIET_DAYS * QUIET_RATE * QUIET_FRAMES * flat.period / YEAR_S
    table.caption = (
        f"Without a fault, at {QUIET_RATE:g} false alarms a year, {QUIET_DAYS} days each: {counts[0]} of the family, "
        f"{counts[1]} of people who are drawn; {allowed:.1f} each are allowed."
    )
    return table, max(counts) <= allowed


def _of_all(name: str) -> bool:
    """Whether a fault is one of all sensors."""
    return "door" in name or "warmth" in name


def _noticed(name: str, sensor: int) -> tuple[str, str]:
    """Hours until a fault is noticed, with those of someone who knows all but the noise; and what it is called."""
    flat = Flat.example()
    true = faults(flat)[name](sensor)
    least = flat.least(true)
    if isnan(least):  # nobody could notice it
        return "- (-)", ""
    alarms = flat.watch(true, 0)
    number, fault = alarms[0] if alarms else (LONGEST, None)
    right = fault is not None and number >= BEFORE and fault.sensor == (None if _of_all(name) else sensor)
    hours = f"{(number - BEFORE) * flat.period / 3600:.1f}" if right else "-"
    return f"{hours} ({least:.1f})", "nothing" if fault is None else fault.kind.value if right else f"WRONG {fault}"


def _raised(seed: int, drawn: bool) -> int:
    """How many alarms a quiet day raises."""
    flat = Flat.example()
    true = flat.drawn_day(seed) if drawn else flat.day(QUIET_FRAMES)
    return len(flat.watch(true, seed, QUIET_RATE, until=1000))
