"""The readings of a calibration walk: a person stands at known spots while every sensor reads, before privacy starts.

These are true readings. They stay on the installer's machine, and no message shows one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError, PhysicsError, ReadingError
from cloakwork.fitting.responses import steady_plan
from cloakwork.physics import FloorPlan
from cloakwork.readings import TIME_FORMS, TableFile, column_numbers, column_texts, column_times, unreadable
from cloakwork.site import Site

MIN_SPOTS = 3  # reach, strength and baseline of one sensor
MIN_SPAN = 0.5  # of the stated reach: spots closer together than this are one spot
MAX_NAMES = 8  # names in a message
UNLIKELY = 1e-3  # readings this improbable for an honest sensor are refused


@dataclass(frozen=True, eq=False)
class Walk:
    """Readings of each sensor while a person stood at each of S spots.

    `at` (S, 2) is the spot in metres, NaN while nobody was there, `times` (S,) the middle of the time there in hours,
    from that of the walk, and `shares` (n, S) the cells that the person covered. `means` and `counts` (S, m) are those
    of the readings; `noise` (m,) is the standard deviation of repeated readings, `step` (m,) the smallest difference
    between two readings, and `unsettled` the probability, if readings do not change while the person stands, of a
    change as large as this one.
    """

    at: FloatArray
    times: FloatArray
    shares: FloatArray
    means: FloatArray
    counts: IntArray
    noise: FloatArray
    step: FloatArray
    unsettled: float

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the noise of the sensor with the fewest repeated readings."""
        return int(np.maximum(self.counts - 1, 0).sum(axis=0).min())

    @property
    def variances(self) -> FloatArray:
        """Variance of each mean, (S, m), infinite without readings.

        Where there is too little noise to average out the error of rounding, this error counts in full.
        """
        rounding = np.where(self.noise < self.step / 2, self.step**2 / 12, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.where(self.counts > 0, self.noise**2 / self.counts + rounding, np.inf))


def read_walk(site: Site, walk: Path, readings: Path) -> Walk:
    """Read where a person stood, and what the sensors read meanwhile.

    `walk` has the columns start, end, x and y: one row a spot, with x and y empty for a time when nobody was there.
    `readings` has the columns time, sensor and value, in the unit of the site. Both are CSV or Parquet files.
    """
    plan, reach = steady_plan(site)
    starts, ends, at = _spots(walk)
    shares = _shares(walk, plan, reach, at)
    times, sensors, values = _values(site, readings)
    spot = np.searchsorted(starts, times, side="right") - 1
    inside = (spot >= 0) & (times <= ends[spot])
    if not inside.any():
        raise ReadingError(
            f"no reading falls into the walk: it lasts from {_shown(starts[0])} to {_shown(ends.max())}, the readings "
            f"from {_shown(times.min())} to {_shown(times.max())}. Check the clocks and the time zones.",
            walk=(int(starts[0]), int(ends.max())),
            readings=(int(times.min()), int(times.max())),
        )
    if missing := [site.sensor_ids[k] for k in np.setdiff1d(np.arange(len(site.sensor_ids)), sensors[inside])]:
        raise ReadingError(
            f"{readings}: no reading of {_named(missing)} during the walk. Read all sensors while you stand.",
            sensors=tuple(missing),
        )
    step = _steps(site, sensors, values)
    table = _Table(spot[inside], sensors[inside], times[inside], values[inside], (len(starts), len(site.sensor_ids)))
    noise = table.noise(step)
    _refuse_quiet(site, table, noise, step)
    middles = (starts + ends) / 2
    hours = (middles - middles.mean()) / 3_600_000
    return Walk(at, hours, shares, table.means, table.counts, noise, step, table.unsettled(noise))


def _spots(path: Path) -> tuple[IntArray, IntArray, FloatArray]:
    """Start, end and place of each spot, in order of time."""
    file = TableFile(path)
    needed = ["start", "end", "x", "y"]
    if not set(needed) <= set(file.names):
        raise InputError(f"{path}: give the columns start, end, x, y.", columns=tuple(file.names))
    columns = file.read(needed)
    at = np.stack([column_numbers(columns[name], name) for name in ("x", "y")], axis=1)
    starts, ends = (_times(file, columns[name], name) for name in needed[:2])
    for name, numbers in zip("xy", at.T, strict=True):
        wrong = unreadable(columns[name], numbers)
        if wrong.any():
            where = file.place(int(np.argmax(wrong)))
            raise InputError(
                f"{path}, {where}: {name} is not a number. Give metres such as 0.75, or leave x and y empty "
                "while nobody is there.",
                column=name,
            )
    half = np.isnan(at).sum(axis=1) == 1
    if half.any():
        where = file.place(int(np.argmax(half)))
        raise InputError(f"{path}, {where}: only one of x and y. Give both, or neither while nobody is there.")
    order = np.argsort(starts, kind="stable")
    starts, ends, at = starts[order], ends[order], at[order]
    if (ends < starts).any() or (starts[1:] < ends[:-1]).any():
        raise InputError(f"{path}: two spots overlap in time, or one ends before it starts.")
    return starts, ends, at


def _times(file: TableFile, column: object, name: str) -> IntArray:
    times = column_times(column, name)
    if not len(times):
        raise InputError(f"{file.path} has no row.", path=str(file.path))
    if (times < 0).any():
        where = file.place(int(np.argmax(times < 0)))
        raise InputError(f"{file.path}, {where}: {name} is not a time. Give {TIME_FORMS}.", column=name)
    return times


def _shares(path: Path, plan: FloorPlan, reach: float, at: FloatArray) -> FloatArray:
    """The cells that the person covered at each spot, shape (n, S); refuses a walk that cannot tell the reach."""
    shares = np.zeros((plan.places, len(at)))
    for spot, (x, y) in enumerate(at.tolist()):
        try:
            covered = [] if math.isnan(x) else plan.rooms.shares(x, y)
        except PhysicsError as problem:
            raise InputError(f"{path}: {problem}", at=(x, y)) from None
        for cell, share in covered:
            shares[cell, spot] += share
    there = np.unique(at[~np.isnan(at[:, 0])], axis=0)
    span = float(np.ptp(there, axis=0).max(initial=0.0)) if len(there) else 0.0
    different = len(there) + bool(np.isnan(at[:, 0]).any())
    if different < MIN_SPOTS or span < MIN_SPAN * reach:
        raise InputError(
            f"{path}: the walk stays in one spot (places that differ: {len(there)}, within {span:.2g} m), which cannot "
            "tell reach from strength. Stand at spots all over the floor, some near each sensor and some far from it.",
            spots=len(there),
            span=span,
        )
    return shares


def _values(site: Site, path: Path) -> tuple[IntArray, IntArray, FloatArray]:
    """Time, sensor and value of each reading."""
    file = TableFile(path)
    if not {"time", "sensor", "value"} <= set(file.names):
        raise ReadingError(f"{path}: give the columns time, sensor, value.", columns=tuple(file.names))
    columns = file.read(["time", "sensor", "value"])
    times = _times(file, columns["time"], "time")
    names = column_texts(columns["sensor"], "sensor")
    unknown = sorted(set(names.labels) - set(site.sensor_ids))
    if unknown:
        raise ReadingError(
            f"{path}: {_named(unknown)}: not a sensor of {site.name}, whose sensors are {_named(site.sensor_ids)}.",
            sensors=tuple(unknown),
        )
    values = column_numbers(columns["value"], "value")
    if not np.isfinite(values).all():
        where = file.place(int(np.argmin(np.isfinite(values))))
        raise ReadingError(f"{path}, {where}: value is not a number.", path=str(path))
    index = np.array([site.sensor_ids.index(name) for name in names.labels], dtype=np.int64)
    return times, index[names.codes], values


def _steps(site: Site, sensors: IntArray, values: FloatArray) -> FloatArray:
    """Return the smallest difference between two readings of each sensor, (m,); refuse one above the stated step."""
    gaps = [np.diff(np.unique(values[sensors == k])) for k in range(len(site.sensor_ids))]
    if stuck := [name for name, each in zip(site.sensor_ids, gaps, strict=True) if not len(each)]:
        raise ReadingError(
            f"{_named(stuck)}: all readings are the same. The sensor is dead or stuck, or its steps are too coarse to "
            "show a person: replace it.",
            sensors=tuple(stuck),
        )
    steps = np.array([each.min() for each in gaps])
    stated = np.zeros(len(steps)) if site.resolutions is None else site.resolutions
    # few readings may lie further apart than the step, but then not all by multiples of one distance
    coarse = [
        k
        for k in np.flatnonzero((stated > 0) & (steps > stated * (1 + 1e-6)))
        if np.allclose(gaps[k] / steps[k], np.rint(gaps[k] / steps[k]), atol=1e-3)
    ]
    if coarse:
        names, step, limit = [site.sensor_ids[k] for k in coarse], steps[coarse[0]], float(stated[coarse[0]])
        raise ReadingError(
            f"{_named(names)}: readings come in steps of {step:.4g}, and resolution = {limit:g}: the noise would not "
            f"cover these steps. State resolution = {step:.4g}, or make the hardware read finer.",
            sensors=tuple(names),
            resolution=limit,
        )
    return steps


def _refuse_quiet(site: Site, table: "_Table", noise: FloatArray, step: FloatArray) -> None:
    """Refuse sensors whose repeated readings differ less than the stated noise floor, on which the guarantee rests."""
    if site.noise_floors is None:
        return
    stated = np.where(site.noise_floors < step / 2, 0.0, site.noise_floors)  # less may vanish between two steps
    ratios = (noise / np.where(stated > 0, stated, noise)) ** 2
    quiet = np.flatnonzero(special.chdtr(table.freedom, table.freedom * ratios) < UNLIKELY / len(noise))
    if len(quiet):
        names, least, claimed = [site.sensor_ids[k] for k in quiet], noise[quiet[0]], float(stated[quiet[0]])
        raise ReadingError(
            f"{_named(names)}: repeated readings have noise of {least:.2g}, less than noise_floor = {claimed:g}, on "
            "which the guarantee rests. Check these devices, and state the least that the checks show.",
            sensors=tuple(names),
            noise_floor=claimed,
        )


@dataclass(frozen=True, eq=False)
class _Table:
    """Readings by spot and sensor."""

    spot: IntArray
    sensor: IntArray
    time: IntArray
    value: FloatArray
    shape: tuple[int, int]

    def sums(self, values: FloatArray | None = None) -> FloatArray:
        """Return the sums (S, m) of a value of each reading; without values, the numbers of readings."""
        cells = self.spot * self.shape[1] + self.sensor
        return np.asarray(np.bincount(cells, values, self.shape[0] * self.shape[1]).reshape(self.shape))

    @cached_property
    def counts(self) -> IntArray:
        return self.sums().astype(np.int64)

    @cached_property
    def freedom(self) -> IntArray:
        return np.asarray(np.maximum(self.counts - 1, 0).sum(axis=0))

    @cached_property
    def means(self) -> FloatArray:
        return self.sums(self.value) / np.maximum(self.counts, 1)

    def rest(self, values: FloatArray) -> FloatArray:
        """Return the difference of a value of each reading from the mean of its spot and sensor."""
        return np.asarray(values - (self.sums(values) / np.maximum(self.counts, 1))[self.spot, self.sensor])

    def noise(self, step: FloatArray) -> FloatArray:
        """Return the standard deviation of repeated readings of each sensor, at least that of rounding to the step."""
        if (self.freedom < 1).any():
            raise ReadingError("a sensor has no spot with two readings. Stand at each spot for several readings.")
        squares = self.sums(self.rest(self.value) ** 2).sum(axis=0)
        return np.asarray(np.sqrt(np.maximum(squares / self.freedom, step**2 / 12 + 1e-24)))

    def unsettled(self, noise: FloatArray) -> float:
        """Return how probable trends within spots are that are as strong as these, if there are none."""
        late = self.rest(self.time.astype(np.float64))
        trends = self.sums(late * self.rest(self.value)) ** 2 / np.maximum(self.sums(late**2), 1e-300) / noise**2
        known = self.counts > 2
        return float(special.chdtrc(max(int(known.sum()), 1), float(trends[known].sum())))


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(name[:64] for name in names[:MAX_NAMES]) + more


def _shown(time: int) -> str:
    return datetime.fromtimestamp(int(time) / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
