"""Bluetooth in an office and a flat: maps from one date judged on another, and how far real moves shift readings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork.privacy import Cloak
from cloakwork.recovery import Motion, PointSources, Tracker, recover
from papers.drawing import INK, curve, draw_dots, finish
from papers.experiment import Experiment, Run, stream
from papers.recordings.radio import (
    AREA,
    FLAT,
    FLAT_LATER,
    FLAT_RECEIVERS,
    OFFICE,
    OFFICE_RECEIVERS,
    MapError,
    RadioMap,
    Walk,
    flat,
    office,
    squares,
)
from papers.result import Finding, Goal
from papers.rows import Mean, Row, pick, picked

DELTA, ALPHA = 1e-5, 0.1
EPSILONS, QUICK_EPSILONS = (4.0, 2.0, 1.0), (2.0,)
WINDOW = 10  # minutes in the office, whose mean is one frame
ZONE = (5.2, 5.9)  # metres
EVERY = 3  # readings of the flat: one a second
LONGEST = 1.5  # seconds between two of them, or the recording has a gap
DISTANCES = {"office": (0.0, 0.35, 1.0, 2.0, 3.0, 5.0), "flat": (0.06, 0.14, 0.25, 0.4, 0.6)}
MAP, REAL = "slope of the map", "measured shift"
SINGLE, USUAL, FITTED, COUNTED = (
    "single frames",
    "tracker, usual motion",
    "tracker, fitted motion",
    "and lasting errors",
)
USUAL_MOTION = Motion(mean_present_s=1e6, mean_absent_s=100.0)


class RecordedRadio(Finding):
    """Bluetooth tags in an office and in a flat."""

    size = (10.0, 4.6)

    def goals(self) -> tuple[Goal, ...]:
        before, after = (pick(self.found, method=name, epsilon=None, place="flat") for name in (SINGLE, COUNTED))
        text = "flat, no noise: following is nearer than single frames"
        reached = f"{after.distance} m, single frames {before.distance} m"
        return (Goal(text, reached, after.distance.value <= before.distance.value),)

    def text(self) -> str:
        room, steep = (pick(self.shifts, place=place, near=DISTANCES[place][0]) for place in DISTANCES)
        rows = [one for one in self.found if one.method == SINGLE and one.sized == MAP and one.epsilon in (None, 2.0)]
        shown = [_sentence(one, pick(self.found, place=one.place, method="")) for one in rows]
        return (
            f"{' '.join(shown)} Noise is sized for a move by {100 * ALPHA:g} cm by the slope of the map. That "
            f"guarantee is false for radio: in the flat {100 * steep.near:.0f} to {100 * steep.far:.0f} cm shift the "
            f"readings by {steep.real:.1f} dB, and the map allows {steep.allowed:.1f}; in the office, points of two "
            f"dates within {room.far:g} m differ by {room.real:.1f} dB, and the map allows {room.allowed:.1f}."
        )

    def draw(self, figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        rows = [one for one in self.found if one.place == "flat" and one.method]
        series = {
            "right room": [one.right for one in rows],
            "90 % area holds the truth": [one.held for one in rows],
        }
        draw_dots(left, [f"{one.method}, {_claim(one)}" for one in rows], series, scale=100, markers="oo")
        finish(left, "flat, one reading a second", "% (bars: 2 errors)", legend=7, where="lower left", xlim=(0, 100))
        left.tick_params(axis="y", labelsize=7)
        left.axvline(90, color=INK, linestyle=":", linewidth=1)
        for number, place in enumerate(DISTANCES):
            mine = list(picked(self.shifts, place=place))
            look: Any = {"linestyle": "--", "marker": "", "label": f"{place}: allowed by the map"}
            x = [(one.near + one.far) / 2 for one in mine]
            real, allowed = ([getattr(one, name) for one in mine] for name in ("real", "allowed"))
            curve(right, x, real, number, marker="o", label=f"{place}: measured (root mean square)")
            curve(right, x, allowed, number, **look)
        right.set(xscale="log", yscale="log")
        finish(right, "what a move really shifts", "distance of two points, m", "shift of all readings, dB", legend=7)


def _claim(one: Row) -> str:
    if one.epsilon is None:
        return "no noise"
    return f"epsilon {one.epsilon:g}" + (", measured shift" if one.sized == REAL else "")


def _sentence(one: Row, guess: Row) -> str:
    where = "zone" if one.place == "office" else "room"
    return (
        f"{one.place.capitalize()}, {_claim(one)}: the right {where} in {100 * one.right.value:.0f} ± "
        f"{100 * one.right.error:.0f} % (best constant {100 * guess.right.value:.0f} %), "
        f"{one.distance.value:.1f} ± {one.distance.error:.1f} m off ({guess.distance.value:.1f} m)."
    )


@dataclass(frozen=True, eq=False)
class Scene:
    """Frames to judge: where they were taken, the map with its error, and the zone of a position."""

    place: str
    map: RadioMap
    points: FloatArray
    error: MapError

    @cached_property
    def area(self) -> IntArray:
        return squares(self.points, AREA)

    def zones(self, points: FloatArray) -> IntArray:
        if self.place == "office":
            x, y = (
                np.minimum(points[:, k] // side, most) for k, (side, most) in enumerate(zip(ZONE, (3, 2), strict=True))
            )
            return np.asarray(3 * x + y, dtype=np.int64)
        x, y = points.T
        low = np.where(x < 2.0, 0, np.where(x < 3.96, 1, 2))
        return np.where(y < 2.1, low, np.where(x < 2.64, 3, np.where(x < 6.32, 4, 5)))

    def judge(
        self, method: str, sized: str, epsilon: float | None, sigma: float, cells: IntArray, held: FloatArray
    ) -> Row:
        """How well the tag is found, from cells named in some draws of the noise, (draws, frames).

        `right` is the share in the right zone or room, `held` that of 90 % areas that hold the truth. `sized` says
        which shift the noise hides. Standard errors are over areas of 2 m, where frames are alike.
        """
        at = self.map.physics.space.places[cells]
        far = np.hypot(*np.moveaxis(at - self.points, -1, 0))
        right = np.array([self.zones(each) for each in at]) == self.zones(self.points)
        return self._found(method, sized, epsilon, sigma, far, right, held)

    def guess(self) -> Row:
        """The best constant, without a method: the middle of the points, and the zone where most frames are."""
        centre = np.median(self.points, axis=0)
        zones = self.zones(self.points)
        most = np.bincount(zones).argmax()
        far = np.hypot(*(self.points - centre).T)
        return self._found("", "", None, 0.0, far[None], (zones == most)[None], (zones < 0)[None])

    def _found(
        self, method: str, sized: str, epsilon: float | None, sigma: float, far: FloatArray, *shares: NDArray[Any]
    ) -> Row:
        """A row of means over draws, from distances and two shares, all (draws, frames)."""
        distance, right, held = (Mean.over(each.mean(axis=0, dtype=float), self.area) for each in (far, *shares))
        return Row(
            place=self.place,
            method=method,
            sized=sized,
            epsilon=epsilon,
            sigma=sigma,
            median=float(np.median(far)),
            distance=distance,
            right=right,
            held=held,
        )

    def single(self, frames: Sequence[FloatArray], noise: float) -> tuple[IntArray, FloatArray]:
        """Find the tag in single frames: cells and whether the area holds the truth, (draws, frames)."""
        sigma, cells, held = np.hypot(noise, self.error.white), [], []
        estimator = PointSources(1.0, min_sources=1, max_sources=1)
        true = self.map.cells_of(self.points).tolist()
        for each in frames:
            found = recover(each, self.map.physics, sigma=sigma, drift=self.error.error, estimator=estimator)
            cells.append([sources[0].place for sources in found.sources])
            held.append([k in sources[0].vicinity for k, sources in zip(true, found.sources, strict=True)])
        return np.array(cells), np.array(held)

    def tracked(
        self, frames: Sequence[FloatArray], times: FloatArray, noise: float, motion: Motion, frames_alike: float
    ) -> tuple[IntArray, FloatArray]:
        """The same with a tracker; the error of the map counts as if so many frames shared it."""
        error = np.sqrt(frames_alike * (self.error.white**2 + (self.error.error.factor**2).sum(axis=1)))
        cells, held, true = [], [], self.map.cells_of(self.points).tolist()
        for each in frames:
            tracker = Tracker(self.map.physics, motion=motion, max_sources=1, sigma=np.hypot(noise, error))
            now = [tracker.step(readings, float(time)) for readings, time in zip(each, times, strict=True)]
            cells.append([one.sources[0].place if one.sources else int(np.argmax(one.map)) for one in now])
            held.append([bool(one.sources) and k in one.sources[0].vicinity for k, one in zip(true, now, strict=True)])
        return np.array(cells), np.array(held)


def shifts_of(place: str, distance: FloatArray, square: FloatArray, slope: float) -> tuple[Row, ...]:
    """How far readings of pairs of points at a distance differ: root mean square, and the most that the map allows.

    `slope` is the steepest of the map in dB per metre.
    """
    bounds, found = DISTANCES[place], []
    for near, far in pairwise(bounds):
        among = (distance >= near) & (distance < far)
        real = float(np.sqrt(max(float(square[among].mean()), 0.0)))
        allowed = slope * float(distance[among].mean())
        found.append(Row(place=place, near=near, far=far, pairs=int(among.sum()), real=real, allowed=allowed))
    return tuple(found)


def _slope(scene: Scene) -> float:
    matrix, space = scene.map.physics.matrix, scene.map.physics.space
    steps = np.linalg.norm(matrix[:, space.pairs[:, 0]] - matrix[:, space.pairs[:, 1]], axis=0)
    return float((steps / space.lengths).max())


def office_scene() -> tuple[Scene, FloatArray, tuple[Row, ...]]:
    """The office on the later date: frames of ten minutes, (frames, minutes, m)."""
    known = office()
    count = known.readings.shape[1] // WINDOW
    readings = known.readings[:, : count * WINDOW].reshape(-1, WINDOW, known.readings.shape[2])
    misses = known.survey.mean(axis=1) - known.map.floor - known.map.foretold
    scene = Scene("office", known.map, np.repeat(known.points, count, axis=0), MapError.of(misses, known.map.area))
    apart = np.hypot(*np.moveaxis(known.surveyed[:, None] - known.points[None], -1, 0))
    means = known.survey.mean(axis=1) - known.map.floor
    square = ((means[:, None] - known.readings.mean(axis=1)[None]) ** 2).sum(axis=-1)
    return scene, readings, shifts_of("office", apart, square, _slope(scene))


def flat_scene() -> tuple[Scene, FloatArray, FloatArray, tuple[Row, ...], tuple[float, ...]]:
    """The later walk through the flat, a reading a second, with its times, and how long errors of the map last."""
    fitted, survey, later = flat()
    heard = np.isfinite(survey.readings).all(axis=1)
    seconds, at, seen = survey.seconds[heard], survey.points[heard], survey.readings[heard]
    misses = seen - fitted.foretold[fitted.square]
    times, points, readings = later.seconds[::EVERY], later.points[::EVERY], later.readings[::EVERY]
    error = MapError.of(misses, fitted.area[fitted.square])
    scene = Scene("flat", fitted, points, error)
    lasting = _lasting(seconds, seen - fitted.physics.matrix[:, fitted.cells_of(at)].T)
    return scene, readings, times, _flat_shifts(scene, seconds, at, seen), lasting


def motion_of(walk: Walk) -> Motion:
    """How a tag moves that is always there: a second in which it moves further than is hidden counts as walking."""
    times, points = walk.seconds[::EVERY], walk.points[::EVERY]
    seconds, moved = np.diff(times), np.hypot(*np.diff(points, axis=0).T)
    known, walks = seconds < LONGEST, moved > ALPHA * seconds
    changes = max(1, int((known[1:] & known[:-1] & (walks[1:] != walks[:-1])).sum()))
    sitting, walking = (float(seconds[known & each].sum()) for each in (~walks, walks))
    speed = float(moved[known & walks].sum()) / walking
    return Motion(2 * sitting / changes, 2 * walking / changes, speed, mean_present_s=1e6, mean_absent_s=100.0)


def _lasting(seconds: FloatArray, misses: FloatArray) -> tuple[float, ...]:
    """How alike misses are that lie 1, 2, ... seconds apart: their correlation, to the last that is above 0.05."""
    found = []
    for apart in range(1, 20):
        later = np.searchsorted(seconds, seconds + apart)
        known = np.flatnonzero(later < len(seconds))
        known = known[np.abs(seconds[later[known]] - seconds[known] - apart) < 0.4]
        alike = float((misses[known] * misses[later[known]]).mean() / (misses**2).mean())
        if alike < 0.05:
            break
        found.append(round(alike, 3))
    return tuple(found)


def _flat_shifts(scene: Scene, seconds: FloatArray, at: FloatArray, seen: FloatArray) -> tuple[Row, ...]:
    """Shifts between the points where the robot stood for four readings or more, less the noise of their means."""
    moved = (np.hypot(*np.diff(at, axis=0).T) > 0.015) | (np.diff(seconds) > LONGEST)
    stop = np.concatenate([[0], np.cumsum(moved)])
    kept = [rows for rows in np.split(np.arange(len(stop)), np.flatnonzero(moved) + 1) if len(rows) >= 4]
    where = np.array([at[rows].mean(axis=0) for rows in kept])
    means = np.array([seen[rows].mean(axis=0) for rows in kept])
    noise = np.array([seen[rows].var(axis=0, ddof=1).sum() / len(rows) for rows in kept])
    i, j = np.triu_indices(len(kept), 1)
    apart = np.hypot(*(where[i] - where[j]).T)
    near = apart < max(DISTANCES["flat"])
    i, j = i[near], j[near]
    square = ((means[i] - means[j]) ** 2).sum(axis=1) - noise[i] - noise[j]
    return shifts_of("flat", apart[near], square, _slope(scene))


def _noisy(cloak: Cloak, frames: FloatArray, draws: int, *key: int) -> list[FloatArray]:
    flat_frames = frames.reshape(-1, frames.shape[-1])
    return [cloak.simulate(flat_frames, rng=stream(*key, draw)).reshape(frames.shape) for draw in range(draws)]


def _office(run: Run) -> tuple[list[Row], tuple[Row, ...]]:
    scene, readings, shifts = office_scene()
    readings = readings[: run.choose(None, None, 6)]
    scene = replace(scene, points=scene.points[: len(readings)])
    found = [scene.guess(), scene.judge(SINGLE, MAP, None, 0.0, *scene.single([readings.mean(axis=1)], 0.0))]
    for k, epsilon in enumerate(run.choose(EPSILONS, QUICK_EPSILONS, QUICK_EPSILONS)):
        cloak = Cloak(scene.map.physics, epsilon=epsilon, delta=DELTA, alpha=ALPHA, readings_per_window=WINDOW)
        noisy = [each.mean(axis=1) for each in _noisy(cloak, readings, run.choose(2, 1, 1), run.seed, 1, k)]
        cells = scene.single(noisy, cloak.sigma / np.sqrt(WINDOW))
        found.append(scene.judge(SINGLE, MAP, epsilon, cloak.sigma, *cells))
    return found, shifts


def _flat(run: Run) -> tuple[list[Row], tuple[Row, ...], tuple[float, ...]]:
    scene, readings, times, shifts, lasting = flat_scene()
    count = run.choose(None, None, 45)
    readings, times = readings[:count], times[:count]
    scene = replace(scene, points=scene.points[:count])
    honest = ALPHA * shifts[0].real / shifts[0].allowed
    kinds: list[tuple[str, float | None]] = [(MAP, None)]
    kinds += [(MAP, epsilon) for epsilon in run.choose(EPSILONS, QUICK_EPSILONS, QUICK_EPSILONS)]
    kinds += [(REAL, epsilon) for epsilon in run.choose((2.0,), (), ())]
    found = [scene.guess()]
    for k, (sized, epsilon) in enumerate(kinds):
        frames, noise = [readings], 0.0
        if epsilon is not None:
            alpha = ALPHA if sized == MAP else honest
            cloak = Cloak(scene.map.physics, epsilon=epsilon, delta=DELTA, alpha=alpha)
            frames, noise = _noisy(cloak, readings, run.choose(2, 1, 1), run.seed, 2, k), float(cloak.sigma)
        found.append(scene.judge(SINGLE, sized, epsilon, noise, *scene.single(frames, noise)))
        if (sized, epsilon) not in ((MAP, None), (REAL, 2.0)):
            continue
        alike = 1 + 2 * sum(lasting)
        motion = motion_of(flat()[1])
        trackers = ((USUAL, USUAL_MOTION, 1.0), (FITTED, motion, 1.0), (COUNTED, motion, alike))
        for name, moves, shared in run.choose(trackers, trackers[2:], trackers[2:]):
            followed = scene.tracked(frames, times, noise, moves, shared)
            found.append(scene.judge(name, sized, epsilon, noise, *followed))
    return found, shifts, lasting


def _work(run: Run) -> RecordedRadio:
    in_office, shifts = _office(run)
    in_flat, more, lasting = _flat(run)
    return RecordedRadio(found=(*in_office, *in_flat), shifts=(*shifts, *more), lasting=lasting)


EXPERIMENT = Experiment(
    "recorded-radio",
    "Bluetooth in an office and a flat: found from cloaked readings, and what a move really shifts",
    RecordedRadio,
    _work,
    minutes=2.0,
    data=(OFFICE, OFFICE_RECEIVERS, FLAT, FLAT_LATER, FLAT_RECEIVERS),
)
