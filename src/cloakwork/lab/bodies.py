"""People in infrared pictures: a plain model of a body, fitted on labelled pictures, and where it finds people."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.lab.recorded import Position
from cloakwork.physics import Matrix, Metric, Space
from cloakwork.recovery import BasisPursuit, PointSources, Radius, recover

ROWS, COLUMNS = 24, 32  # of a picture
BLOCK = 2  # pixels a side that are read as one sensor
WIDTHS = np.arange(1.5, 4.01, 0.1)
MARGIN = 1.2  # how much stronger than any body of the fitted frames one may be


@dataclass(frozen=True)
class Body:
    """What a person looks like in blocks of pixels: a round bump on a level floor.

    `width` is its standard deviation in pixels; `height` that of the strongest person protected and `weakest` that of
    the weakest seen, on the scale of the pictures; `floor` is the level, and `misfit` how far pictures are from all
    this, root mean square.
    """

    width: float
    height: float
    weakest: float
    floor: float
    misfit: float

    @property
    def camera(self) -> Matrix:
        """The physics: people are on pixels and move along rows and columns; blocks of pixels are the sensors."""
        places = np.stack(np.meshgrid(np.arange(0.5, COLUMNS), np.arange(0.5, ROWS)), axis=-1).reshape(-1, 2)
        number = np.arange(len(places)).reshape(ROWS, COLUMNS)
        along = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
        down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
        pairs = np.concatenate([along, down])
        space = Space(places, pairs, np.ones(len(pairs)), Metric.PATH)
        return Matrix(self.height * bumps(places, self.width), space)


def blocks(frames: FloatArray) -> FloatArray:
    """Pictures of shape (k, rows, columns) as readings of blocks of pixels, shape (k, sensors)."""
    k, rows, columns = frames.shape
    means = frames.reshape(k, rows // BLOCK, BLOCK, columns // BLOCK, BLOCK).mean(axis=(2, 4))
    return np.asarray(means.reshape(k, -1))


def bumps(people: FloatArray, width: float) -> FloatArray:
    """What bodies of height 1 at these positions look like, one column each."""
    y, x = np.mgrid[BLOCK / 2 : ROWS : BLOCK, BLOCK / 2 : COLUMNS : BLOCK]
    away = (x.reshape(-1, 1) - people[:, 0]) ** 2 + (y.reshape(-1, 1) - people[:, 1]) ** 2
    return np.asarray(np.exp(-away / (2 * width**2)))


def heights(reading: FloatArray, people: FloatArray, width: float) -> FloatArray:
    """Heights of the bodies, then the level of the floor, by least squares."""
    columns = np.c_[bumps(people, width), np.ones(len(reading))]
    return np.asarray(np.linalg.lstsq(columns, reading, rcond=None)[0])


def fit(readings: FloatArray, people: Sequence[FloatArray]) -> Body:
    """The body that explains labelled pictures best."""

    def left(width: float) -> float:
        pairs = zip(readings, people, strict=True)
        return sum(
            float(((y - np.c_[bumps(at, width), np.ones(len(y))] @ heights(y, at, width)) ** 2).sum())
            for y, at in pairs
        )

    width = float(min(WIDTHS, key=left))
    found = [heights(y, at, width) for y, at in zip(readings, people, strict=True)]
    bodies = np.concatenate([one[:-1] for one in found])
    return Body(
        width=round(width, 2),
        height=MARGIN * float(bodies.max()),
        weakest=float(bodies.min()),
        floor=float(np.mean([one[-1] for one in found])),
        misfit=float(np.sqrt(left(width) / readings.size)),
    )


@dataclass(frozen=True, eq=False)
class Trial:
    """Pictures to be tried, less the floor, and where people are in each."""

    body: Body
    camera: Matrix
    readings: FloatArray
    people: tuple[FloatArray, ...]

    def found(self, noisy: FloatArray, sigma: float, *, pursuit: bool) -> list[tuple[Position, ...]]:
        """Where people are found: as many as there are, or fewer."""
        counts = np.array([len(at) for at in self.people])
        found: list[tuple[Position, ...]] = [()] * len(counts)
        for count in np.unique(counts).tolist():
            which = np.flatnonzero(counts == count)
            listed = _sources(self, noisy[which], sigma, int(count), pursuit=pursuit)
            for place, positions in zip(which.tolist(), listed, strict=True):
                found[place] = positions
        return found


def _sources(trial: Trial, noisy: FloatArray, sigma: float, count: int, *, pursuit: bool) -> list[tuple[Position, ...]]:
    """The analyst knows how far pictures are from the model, and takes that for noise too; the papers do not."""
    if pursuit:
        found = recover(noisy, trial.camera, sigma=sigma, estimator=BasisPursuit(radius=Radius.PAPER)).sources
    else:
        weakest = min(max(trial.body.weakest / trial.body.height, 0.05), 0.9)
        estimator = PointSources((weakest, 1.0), most=count, least=count)
        found = recover(
            noisy, trial.camera, sigma=float(np.hypot(sigma, trial.body.misfit)), estimator=estimator
        ).sources
    heaviest = [sorted(listed, key=lambda one: -one.weight)[:count] for listed in found]
    places = trial.camera.space.places
    return [tuple((float(places[s.place][0]), float(places[s.place][1])) for s in listed) for listed in heaviest]
