"""The readings of a calibration walk: a person stands at known spots while every sensor reads, before privacy starts.

These are true readings. They stay on the installer's machine, and no message shows one.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError, PhysicsError, ReadingError
from cloakwork.fitting.responses import Responses
from cloakwork.readings import TIME_FORMS, TableFile, column_numbers, column_texts, column_times, unreadable
from cloakwork.site import Site

FEWEST_SPOTS = 3  # reach, strength and baseline of one sensor
LEAST_SPAN = 0.5  # of the stated reach: spots closer together than this are one spot
SHOWN = 8  # names in a message
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

    `walk` has the columns start, end, x and y: one row a spot, with x and y empty for a time when nobody was there. Or
    it has time, x and y: the person stands between two rows with the same x and y, and walks otherwise. `readings` has
    the columns time, sensor and value, in the unit of the site. Both are CSV or Parquet files.
    """
    responses = Responses.of_site(site)
    starts, ends, at = _spots(walk)
    shares = _shares(walk, responses, at)
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
    missing = np.setdiff1d(np.arange(len(site.sensor_ids)), sensors[inside])
    if len(missing):
        names = _named([site.sensor_ids[k] for k in missing])
        raise ReadingError(
            f"{readings}: no reading of {names} during the walk. Read all sensors while you stand.", sensors=names
        )
    _refuse_fahrenheit(site, sensors, values)
    step = _steps(site, sensors, values)
    table = _Table(len(starts), len(site.sensor_ids), spot[inside], sensors[inside], times[inside], values[inside])
    clipped = [site.sensor_ids[k] for k in table.clipped(step)]
    if clipped:
        raise ReadingError(
            f"{_named(clipped)}: all readings at a spot are at the very end of the range, as if cut off there. Widen "
            "the range of the hardware, or stand farther away.",
            sensors=tuple(clipped),
        )
    _refuse_quiet(site, table, step)
    middles = (starts + ends) / 2
    hours = (middles - middles.mean()) / 3_600_000
    return Walk(at, hours, shares, table.means, table.counts, table.noise(step), step, table.unsettled(step))


def _spots(path: Path) -> tuple[IntArray, IntArray, FloatArray]:
    """Start, end and place of each spot, in order of time."""
    file = TableFile(path)
    spans = {"start", "end"} <= set(file.names)
    needed = ["start", "end", "x", "y"] if spans else ["time", "x", "y"]
    if not set(needed) <= set(file.names):
        raise InputError(f"{path}: give the columns start, end, x, y, or time, x, y.", columns=tuple(file.names))
    columns = file.read(needed)
    at = np.stack([column_numbers(columns[name], name) for name in ("x", "y")], axis=1)
    moments = [_times(file, columns[name], name) for name in needed[:-2]]
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
    order = np.argsort(moments[0], kind="stable")
    at, (starts, *later) = at[order], [each[order] for each in moments]
    if spans:
        ends = later[0]
    else:
        stands = (at[1:] == at[:-1]).all(axis=1) | np.isnan(at[1:] + at[:-1]).all(axis=1)
        starts, ends, at = starts[:-1][stands], starts[1:][stands], at[:-1][stands]
    if not len(starts):
        raise InputError(f"{path}: nobody ever stands still in it. Give two rows for each spot: coming and leaving.")
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


def _shares(path: Path, responses: Responses, at: FloatArray) -> FloatArray:
    """The cells that the person covered at each spot, shape (n, S); refuses a walk that cannot tell the reach."""
    shares = np.zeros((responses.plan.places, len(at)))
    for spot, (x, y) in enumerate(at.tolist()):
        try:
            covered = [] if math.isnan(x) else responses.plan.rooms.shares(x, y)
        except PhysicsError as problem:
            raise InputError(f"{path}: {problem}", at=(x, y)) from None
        for cell, share in covered:
            shares[cell, spot] += share
    there = np.unique(at[~np.isnan(at[:, 0])], axis=0)
    span = float(np.ptp(there, axis=0).max(initial=0.0)) if len(there) else 0.0
    different = len(there) + bool(np.isnan(at[:, 0]).any())
    if different < FEWEST_SPOTS or span < LEAST_SPAN * responses.reach:
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
    """The smallest difference between two readings of each sensor, (m,); refuses one above the stated step."""
    gaps = [np.diff(np.unique(values[sensors == k])) for k in range(len(site.sensor_ids))]
    stuck = [name for name, each in zip(site.sensor_ids, gaps, strict=True) if not len(each)]
    if stuck:
        raise ReadingError(
            f"{_named(stuck)}: all readings are the same. The sensor is dead or stuck, or its steps are too coarse to "
            "show a person: replace it.",
            sensors=tuple(stuck),
        )
    steps = np.array([each.min() for each in gaps])
    stated = np.zeros(len(steps)) if site.resolutions is None else site.resolutions
    # few readings may lie further apart than the step, but then not all by multiples of one distance
    coarse = [
        site.sensor_ids[k]
        for k in np.flatnonzero((stated > 0) & (steps > stated * (1 + 1e-6)))
        if np.allclose(gaps[k] / steps[k], np.rint(gaps[k] / steps[k]), atol=1e-3)
    ]
    if coarse:
        k = site.sensor_ids.index(coarse[0])
        raise ReadingError(
            f"{_named(coarse)}: readings come in steps of {steps[k]:.4g}, and resolution = {stated[k]:g}: the noise "
            f"would not cover these steps. State resolution = {steps[k]:.4g}, or make the hardware read finer.",
            sensors=tuple(coarse),
            resolution=float(stated[k]),
        )
    return steps


def _refuse_quiet(site: Site, table: "_Table", steps: FloatArray) -> None:
    """Refuse sensors whose repeated readings differ less than the stated own noise, which the claim rests on."""
    if site.own_noises is None:
        return
    noise, freedom = table.noise(steps), np.maximum(table.counts - 1, 0).sum(axis=0)
    stated = np.where(site.own_noises < steps / 2, 0.0, site.own_noises)  # less may vanish between two steps
    ratios = (noise / np.where(stated > 0, stated, noise)) ** 2
    rare = special.chdtr(freedom, freedom * ratios) < UNLIKELY / len(noise)
    quiet = [site.sensor_ids[k] for k in np.flatnonzero(rare)]
    if quiet:
        k = site.sensor_ids.index(quiet[0])
        raise ReadingError(
            f"{_named(quiet)}: repeated readings have noise of {noise[k]:.2g}, less than own_noise = {stated[k]:g}, on "
            "which the claim rests. Check these devices, and state the least that the checks show.",
            sensors=tuple(quiet),
            own_noise=float(stated[k]),
        )


def _refuse_fahrenheit(site: Site, sensors: IntArray, values: FloatArray) -> None:
    """Refuse sensors that read Fahrenheit among sensors that read Celsius, or where the site is in Celsius."""
    middles = np.array([np.median(values[sensors == sensor]) for sensor in range(len(site.sensor_ids))])
    centre, baseline = float(np.median(middles)), float(np.median(site.baselines))
    if site.unit.endswith("C") and 4 * abs((centre - 32) / 1.8 - baseline) < abs(centre - baseline):
        raise ReadingError(
            f"the readings look like Fahrenheit, and the site is in {site.unit} with a baseline of {baseline:g}. "
            "Convert them where they are measured, or state the right unit, baseline and resolution.",
            unit=site.unit,
        )
    fahrenheit = 32 + 1.8 * centre
    odd = np.flatnonzero(np.abs(middles - fahrenheit) < 0.2 * abs(fahrenheit - centre))
    if 0 < len(odd) < len(middles) / 2:
        names = [site.sensor_ids[k] for k in odd]
        raise ReadingError(
            f"{_named(names)}: reads Fahrenheit, and the others Celsius. Convert it where it measures.",
            sensors=tuple(names),
        )


@dataclass(frozen=True, eq=False)
class _Table:
    """Readings by spot and sensor."""

    spots: int
    sensors: int
    spot: IntArray
    sensor: IntArray
    time: IntArray
    value: FloatArray

    def _sum(self, values: FloatArray) -> FloatArray:
        cell = self.spot * self.sensors + self.sensor
        sums = np.bincount(cell, values, self.spots * self.sensors)
        return np.asarray(sums.reshape(self.spots, self.sensors), dtype=np.float64)

    @property
    def counts(self) -> IntArray:
        return self._sum(np.ones(len(self.value))).astype(np.int64)

    def _mean(self, values: FloatArray) -> FloatArray:
        return np.asarray(self._sum(values) / np.maximum(self.counts, 1))

    @property
    def means(self) -> FloatArray:
        return self._mean(self.value)

    @property
    def _rest(self) -> FloatArray:
        """The difference of each reading from the mean of its spot and sensor."""
        return np.asarray(self.value - self.means[self.spot, self.sensor])

    def noise(self, step: FloatArray) -> FloatArray:
        """Standard deviation of repeated readings of each sensor, at least that of rounding to the step."""
        freedom = np.maximum(self.counts - 1, 0).sum(axis=0)
        if (freedom < 1).any():
            raise ReadingError("a sensor has no spot with two readings. Stand at each spot for several readings.")
        squares = self._sum(self._rest**2).sum(axis=0)
        return np.asarray(np.sqrt(np.maximum(squares / freedom, step**2 / 12 + 1e-24)))

    def clipped(self, step: FloatArray) -> list[int]:
        """Sensors that read nothing but their highest or lowest value at some spots, where their noise would show."""
        low, high = (np.full((self.spots, self.sensors), fill) for fill in (np.inf, -np.inf))
        np.minimum.at(low, (self.spot, self.sensor), self.value)
        np.maximum.at(high, (self.spot, self.sensor), self.value)
        noise = self.noise(np.zeros(self.sensors))  # a sensor without any is constant, and not clipped
        same = special.erf(step / (2 * math.sqrt(2) * noise))  # at most, for a reading and the one before
        chances = np.minimum(math.log(self.spots) + (self.counts - 1) * np.log(np.maximum(same, 1e-300)), 0.0)
        ends = [np.where((low == high) & (low == end), chances, 0.0) for end in (high.max(axis=0), low.min(axis=0))]
        return np.flatnonzero((np.sum(ends, axis=1) < math.log(UNLIKELY / (2 * self.sensors))).any(axis=0)).tolist()

    def unsettled(self, step: FloatArray) -> float:
        """How probable trends of the readings within spots are that are as strong as these, if there are none."""
        late = self.time - self._mean(self.time.astype(np.float64))[self.spot, self.sensor]
        length = self._sum(late**2)
        trends = self._sum(late * self._rest) ** 2 / np.maximum(length, 1e-300) / self.noise(step) ** 2
        known = self.counts > 2
        return float(special.chdtrc(max(int(known.sum()), 1), float(trends[known].sum())))


def _named(names: list[str] | tuple[str, ...]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(name[:64] for name in names[:SHOWN]) + more


def _shown(time: int) -> str:
    return datetime.fromtimestamp(int(time) / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
