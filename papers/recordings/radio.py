"""Radio recordings as a physics: a smooth map of what each receiver hears, and how wrong the map is."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from cloakwork._checks import FloatArray, IntArray
from cloakwork.physics import Matrix, Metric, Nuisance, Space
from papers.recordings import numbers, read_columns

OFFICE, OFFICE_RECEIVERS = Path("ble_office") / "minutes.csv.gz", Path("ble_office") / "receivers.csv"
FLAT, FLAT_LATER, FLAT_RECEIVERS = (
    Path("ble_flat") / name for name in ("calibration.csv.gz", "second_run.csv.gz", "anchors.csv")
)
LIBRARY = Path("wifi_library_two_years") / "readings.csv.gz"
AREA = 2.0  # metres: what lies in one square of this side is alike, and foretold from all others
Trend = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Smooth:
    """A Gaussian process around a trend: its length in metres, its height and the noise of a surveyed point in dB."""

    length: float
    height: float
    noise: float

    def foretell(self, at: FloatArray, seen: FloatArray, there: FloatArray, trend: Trend) -> FloatArray:
        """Foretell the readings of one receiver at other points, (k,), from those `seen` at surveyed points."""
        weights = np.linalg.lstsq(trend(at), seen, rcond=None)[0]
        inner = self._covariance(at, at) + self.noise**2 * np.eye(len(at))
        rest = cho_solve(cho_factor(inner), seen - trend(at) @ weights)
        return np.asarray(trend(there) @ weights + self._covariance(there, at) @ rest)

    def _covariance(self, a: FloatArray, b: FloatArray) -> FloatArray:
        squares = ((a[:, None] - b[None]) ** 2).sum(axis=-1)
        return np.asarray(self.height**2 * np.exp(-0.5 * squares / self.length**2))


@dataclass(frozen=True, eq=False)
class RadioMap:
    """A physics fitted to a survey, in dB above `floor`.

    `foretold` (k, m) is what a map made without the area around a surveyed point says about that point: the difference
    shows how wrong the map itself is. `area` (k,) numbers these areas, and `square` is the surveyed point of each
    reading, where several were averaged.
    """

    physics: Matrix
    floor: float
    foretold: FloatArray
    area: IntArray
    square: IntArray | None = None

    def cells_of(self, points: FloatArray) -> FloatArray:
        """Return the nearest cell of each point."""
        places = self.physics.space.places
        return np.asarray(((points[:, None] - places[None]) ** 2).sum(axis=-1).argmin(axis=1))


def radio_map(
    at: FloatArray, seen: FloatArray, *, cell: float, near: float, floor: float, smooth: Smooth, trends: list[Trend]
) -> RadioMap:
    """Fit a map on cells that lie within `near` metres of surveyed points `at` (k, 2), whose readings are (k, m)."""
    low, high = at.min(axis=0) - near, at.max(axis=0) + near
    axes = [np.arange(a + cell / 2, b, cell) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    grid = grid[np.sqrt(((grid[:, None] - at[None]) ** 2).sum(axis=-1)).min(axis=1) < near]
    apart = np.abs(grid[:, None] - grid[None]).sum(axis=-1)
    pairs = np.argwhere(np.triu(np.isclose(apart, cell)))
    readings = [smooth.foretell(at, seen[:, k], grid, trend) - floor for k, trend in enumerate(trends)]
    space = Space(grid, pairs, np.full(len(pairs), cell), Metric.PATH)
    area = squares(at, AREA)
    foretold = np.zeros_like(seen)
    for k, trend in enumerate(trends):
        for number in np.unique(area):
            held = area == number
            foretold[held, k] = smooth.foretell(at[~held], seen[~held, k], at[held], trend)
    return RadioMap(Matrix(np.array(readings), space), floor, foretold - floor, area)


@dataclass(frozen=True, eq=False)
class MapError:
    """What readings show besides the map: noise of each receiver, `white` (m,), and an `error` that receivers share.

    Together they have the covariance of the misses, as far as few areas show it. For a single frame only the sum
    counts, so `white` is half of each receiver's misses.
    """

    white: FloatArray
    error: Nuisance

    @classmethod
    def of(cls, misses: FloatArray, area: IntArray) -> "MapError":
        """Split the covariance of misses (k, m) in areas that a map did not know.

        Notes
        -----
        Only different areas are independent. So correlations shrink as their number n asks (Schäfer and Strimmer, 2005,
        with the variance (1 - r^2)^2 / n of a correlation r), and variances grow by (n + 1) / (n - 2): a new miss has
        Student's distribution with n degrees of freedom.
        """
        n, spread = len(np.unique(area)), misses.T @ misses / len(misses)
        deviations = np.sqrt(np.diag(spread))
        alike = (spread / np.outer(deviations, deviations))[~np.eye(len(spread), dtype=bool)]
        shrink = min(1.0, float(((1 - alike**2) ** 2).sum() / (n * (alike**2).sum())))
        spread = (n + 1) / (n - 2) * ((1 - shrink) * spread + shrink * np.diag(deviations**2))
        white = np.sqrt(np.diag(spread)) / 2
        sizes, directions = np.linalg.eigh(spread / np.outer(white, white))
        left = sizes > 1.0 + 1e-9
        scaled = white[:, None] * directions[:, left]
        return cls(white, Nuisance(scaled, np.sqrt(sizes[left] - 1.0), np.zeros(int(left.sum()))))


def distance_trend(receiver: FloatArray, height: float, near: float = 0.0) -> Trend:
    """A level and a loss by the logarithm of the distance from a receiver at (x, y, z) to something at a height."""

    def trend(points: FloatArray) -> FloatArray:
        squares = ((points - receiver[:2]) ** 2).sum(axis=1) + near + (receiver[2] - height) ** 2
        return np.column_stack([np.ones(len(points)), np.log10(np.sqrt(squares))])

    return trend


def plane_trend(points: FloatArray) -> FloatArray:
    """A level and a slope in each direction."""
    return np.column_stack([np.ones(len(points)), points])


def squares(at: FloatArray, side: float) -> IntArray:
    """Number the squares of a side in which points lie, from 0 on."""
    return np.asarray(np.unique(np.floor(at / side), axis=0, return_inverse=True)[1].ravel())


def pooled(at: FloatArray, seen: FloatArray, cell: float) -> tuple[FloatArray, FloatArray, IntArray]:
    """Average points and readings over squares of a side; returns the square of each point too."""
    inverse = squares(at, cell)
    number = np.bincount(inverse)
    means = [np.bincount(inverse, column) / number for column in np.c_[at, seen].T]
    return np.stack(means[:2], axis=1), np.stack(means[2:], axis=1), inverse


@dataclass(frozen=True, eq=False)
class Office:
    """An open office on two dates: points (k, 2) and readings by the minute (k, minutes, m) of each."""

    surveyed: FloatArray
    survey: FloatArray
    points: FloatArray
    readings: FloatArray
    map: RadioMap


@cache
def office() -> Office:
    """Fit the map of the office on the first date; the lengths were chosen by leaving out points of that date."""
    table = read_columns(OFFICE)
    receivers = read_columns(OFFICE_RECEIVERS)
    where = {
        name: np.array([float(receivers[axis][k]) for axis in "xyz"]) for k, name in enumerate(receivers["sensor"])
    }
    names = [name for name in table if name.startswith("sensor")]
    values = np.stack([numbers(table[name]) for name in ("x", "y", *names)], axis=1)

    def date(kind: str) -> tuple[FloatArray, FloatArray]:
        rows = values[table["set"] == kind]
        points, inverse = np.unique(rows[:, :2], axis=0, return_inverse=True)
        least = int(np.bincount(inverse.ravel()).min())
        return points, np.stack([rows[inverse.ravel() == k, 2:][:least] for k in range(len(points))])

    at, survey = date("set_1")
    later, readings = date("set_2")
    trends = [distance_trend(where[name], 1.85, 0.5) for name in names]
    fitted = radio_map(
        at, survey.mean(axis=1), cell=1.0, near=2.0, floor=-105.0, smooth=Smooth(4.0, 3.0, 4.0), trends=trends
    )
    return Office(at, survey, later, readings - fitted.floor, fitted)


@dataclass(frozen=True, eq=False)
class Walk:
    """A walk with a tag: seconds (k,), points (k, 2) and readings (k, m), NaN where nothing was heard."""

    seconds: FloatArray
    points: FloatArray
    readings: FloatArray


@cache
def flat() -> tuple[RadioMap, Walk, Walk]:
    """Fit the map of the flat on its calibration; returns the map, the calibration and the later walk."""
    receivers = read_columns(FLAT_RECEIVERS)
    where = np.stack([numbers(receivers[axis]) for axis in "xyz"], axis=1)
    survey, later = (_walk(path, len(where)) for path in (FLAT, FLAT_LATER))
    heard = np.isfinite(survey.readings).all(axis=1)
    at, seen, square = pooled(survey.points[heard], survey.readings[heard], 0.2)
    trends = [distance_trend(each, 1.3) for each in where]
    fitted = radio_map(at, seen, cell=0.5, near=0.45, floor=-100.0, smooth=Smooth(0.8, 4.0, 3.0), trends=trends)
    fitted = replace(fitted, square=square)
    above = [Walk(one.seconds, one.points, one.readings - fitted.floor) for one in (survey, later)]
    return fitted, above[0], above[1]


def _walk(path: Path, sensors: int) -> Walk:
    table = read_columns(path)
    readings = np.stack([numbers(table[f"rssi_{k + 1}"]) for k in range(sensors)], axis=1)
    return Walk(numbers(table["seconds"]), np.stack([numbers(table[axis]) for axis in "xy"], axis=1), readings)


@dataclass(frozen=True, eq=False)
class Library:
    """Readings of a library: the map of the first month, and for each month the points and readings of its test.

    `own` (m,) is how readings of one surveyed point scatter, `error` includes the error of the map, and `surveyed` has
    the points of the survey.
    """

    map: RadioMap
    own: FloatArray
    error: MapError
    surveyed: FloatArray
    months: dict[int, tuple[FloatArray, FloatArray]]


@cache
def library() -> Library:
    """Fit the map of the library on the survey of the first month; an access point that is not heard reads -95 dBm."""
    table = read_columns(LIBRARY)
    points = np.stack([numbers(table[axis]) for axis in "xy"], axis=1)
    heard = np.stack([numbers(table[name]) for name in table if name.startswith("ap")], axis=1)
    month, tests = table["month"].astype(int), table["kind"] == "tst"
    first = (month == 1) & ~tests
    heard = heard[:, ~np.isnan(heard[first]).all(axis=0)]  # some appear later
    readings = np.where(np.isnan(heard), -95.0, heard)
    at, inverse = np.unique(points[first].round(2), axis=0, return_inverse=True)
    means = np.stack([readings[first][inverse.ravel() == k].mean(axis=0) for k in range(len(at))])
    fitted = radio_map(
        at,
        means,
        cell=1.0,
        near=2.2,
        floor=-100.0,
        smooth=Smooth(3.0, 6.0, 3.0),
        trends=[plane_trend] * means.shape[1],
    )
    own = np.sqrt(((readings[first] - means[inverse.ravel()]) ** 2).mean(axis=0))
    square = inverse.ravel()
    error = MapError.of(readings[first] - fitted.floor - fitted.foretold[square], fitted.area[square])
    later = {int(k): tests & (month == k) for k in np.unique(month)}
    months = {k: (points[rows], readings[rows] - fitted.floor) for k, rows in later.items()}
    return Library(fitted, own, error, points[first], months)
