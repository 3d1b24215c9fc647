"""People in infrared pictures: a plain model of a body, fitted on labelled pictures, and where it finds people."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.demo.recorded import Position
from cloakwork.physics import Matrix, Metric, Space
from cloakwork.recovery import Estimator, recover

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


def limits(people: FloatArray, tall: FloatArray, width: float, sigma: float) -> FloatArray:
    """The least covariance with which unbiased methods place bodies whose heights they do not know, shape (k, 2, 2).

    Notes
    -----
    The Cramer-Rao limit: with J the derivatives of the readings by all positions and heights, divided by sigma, no
    unbiased estimate has a covariance below (J'J)^-1. Infinite where the readings do not hold the information.
    """
    y, x = np.mgrid[BLOCK / 2 : ROWS : BLOCK, BLOCK / 2 : COLUMNS : BLOCK]
    shape = bumps(people, width)
    across, down = ((axis.reshape(-1, 1) - people[:, k]) / width**2 for k, axis in enumerate((x, y)))
    slopes = np.concatenate([tall * shape * across, tall * shape * down, shape], axis=1) / sigma
    count = len(people)
    if np.linalg.matrix_rank(slopes) < slopes.shape[1]:
        return np.tile(np.diag([np.inf, np.inf]), (count, 1, 1))
    spread = np.linalg.inv(slopes.T @ slopes)[: 2 * count, : 2 * count].reshape(2, count, 2, count)
    return np.asarray(spread[:, np.arange(count), :, np.arange(count)])


@dataclass(frozen=True, eq=False)
class Trial:
    """Pictures to be tried, less the floor, and where people are in each."""

    body: Body
    camera: Matrix
    readings: FloatArray
    people: tuple[FloatArray, ...]

    def first(self, count: int) -> "Trial":
        """The first pictures only."""
        return replace(self, readings=self.readings[:count], people=self.people[:count])

    def found(
        self, noisy: FloatArray, sigma: float, estimator: Callable[[int], Estimator]
    ) -> list[tuple[Position, ...]]:
        """Where people are found: as many as there are, or fewer; the estimator is made for a number of people."""
        counts = np.array([len(at) for at in self.people])
        found: list[tuple[Position, ...]] = [()] * len(counts)
        places = self.camera.space.places
        for count in np.unique(counts).tolist():
            which = np.flatnonzero(counts == count)
            listed = recover(noisy[which], self.camera, sigma=sigma, estimator=estimator(count)).sources
            for picture, sources in zip(which.tolist(), listed, strict=True):
                heaviest = sorted(sources, key=lambda one: -one.weight)[:count]
                found[picture] = tuple((float(places[s.place][0]), float(places[s.place][1])) for s in heaviest)
        return found
