"""People in infrared pictures: a model of a body, ways to find people, and how many they find."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from scipy.optimize import linear_sum_assignment

from cloakwork._checks import FloatArray, IntArray
from cloakwork.demo import Position
from cloakwork.physics import Matrix, Metric, Space
from cloakwork.privacy import Cloak
from cloakwork.recovery import BasisPursuit, Estimator, PointSources, recover
from papers.calibration import Calibration, PapersPursuit, calibrated
from papers.experiment import stream
from papers.recordings import Infrared
from papers.rows import Mean, Row

ROWS, COLUMNS = 24, 32  # of a picture
BLOCK = 2  # side in pixels of the blocks that are read as one sensor
WIDTHS = np.arange(1.5, 4.01, 0.1)
MARGIN = 1.2  # how much stronger than any body of the fitted pictures one may be
DELTA, ALPHA = 1e-5, 1.0  # a move by one pixel is hidden
WITHIN = (1.0, 2.0, 3.0, 4.0, 6.0)  # pixels
GUESSES = 5  # for each picture
ERRORS = 1000  # normal errors of the size of the Cramer-Rao bound, for each person
SIZE = np.array([COLUMNS, ROWS], dtype=np.float64)
INSIDE = 2.0  # pixels that everyone stays away from the edge, so that no one is cut in two


@dataclass(frozen=True)
class Body:
    """A model of a person: a round bump on a level floor.

    `width` is its standard deviation in pixels. `height` is the height of the strongest person protected, `weakest` of
    the weakest seen, `floor` the level, all on the scale of the pictures. `misfit` is the root mean square distance
    between pictures and this model.
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
    """Average pictures of shape (k, rows, columns) over blocks of pixels; returns readings of shape (k, sensors)."""
    k, rows, columns = frames.shape
    means = frames.reshape(k, rows // BLOCK, BLOCK, columns // BLOCK, BLOCK).mean(axis=(2, 4))
    return np.asarray(means.reshape(k, -1))


def _centres() -> tuple[FloatArray, FloatArray]:
    """The centres of the blocks, x and y, one row each."""
    y, x = np.mgrid[BLOCK / 2 : ROWS : BLOCK, BLOCK / 2 : COLUMNS : BLOCK]
    return x.reshape(-1, 1), y.reshape(-1, 1)


def bumps(people: FloatArray, width: float) -> FloatArray:
    """The readings of bodies of height 1 at these positions, one column each."""
    x, y = _centres()
    return np.asarray(np.exp(-((x - people[:, 0]) ** 2 + (y - people[:, 1]) ** 2) / (2 * width**2)))


def heights(reading: FloatArray, people: FloatArray, width: float) -> FloatArray:
    """The heights of the bodies, then the level of the floor, by least squares."""
    columns = np.c_[bumps(people, width), np.ones(len(reading))]
    return np.asarray(np.linalg.lstsq(columns, reading, rcond=None)[0])


def fit(readings: FloatArray, people: Sequence[FloatArray]) -> Body:
    """Fit the body that explains labelled pictures best."""

    def residual(width: float) -> float:
        return sum(
            float(((y - np.c_[bumps(at, width), np.ones(len(y))] @ heights(y, at, width)) ** 2).sum())
            for y, at in zip(readings, people, strict=True)
        )

    width = float(min(WIDTHS, key=residual))
    found = [heights(y, at, width) for y, at in zip(readings, people, strict=True)]
    bodies = np.concatenate([one[:-1] for one in found])
    return Body(
        width=round(width, 2),
        height=MARGIN * float(bodies.max()),
        weakest=float(bodies.min()),
        floor=float(np.mean([one[-1] for one in found])),
        misfit=float(np.sqrt(residual(width) / readings.size)),
    )


def limits(people: FloatArray, tall: FloatArray, width: float, sigma: float) -> FloatArray:
    """The least covariance of unbiased estimates of the positions of bodies of unknown height, shape (k, 2, 2).

    Notes
    -----
    The Cramer-Rao bound (J'J)^-1, with J the derivatives of the readings by all positions and heights, divided by
    sigma. Infinite where the readings do not determine the positions.
    """
    x, y = _centres()
    shape = bumps(people, width)
    across, down = ((axis - people[:, k]) / width**2 for k, axis in enumerate((x, y)))
    slopes = np.concatenate([tall * shape * across, tall * shape * down, shape], axis=1) / sigma
    count = len(people)
    if np.linalg.matrix_rank(slopes) < slopes.shape[1]:
        return np.tile(np.diag([np.inf, np.inf]), (count, 1, 1))
    spread = np.linalg.inv(slopes.T @ slopes)[: 2 * count, : 2 * count].reshape(2, count, 2, count)
    return np.asarray(spread[:, np.arange(count), :, np.arange(count)])


class Method(StrEnum):
    """A way from a picture to positions; all know how many people there are, which no cloak hides."""

    CLEAR = "no noise, posterior"
    OURS = "exact noise, posterior (ours)"
    PURSUIT = "exact noise, basis pursuit"
    PAPERS = "papers' noise, basis pursuit"
    LIMIT = "Cramer-Rao bound, exact noise"
    GUESS = "random positions"
    CONSTANT = "always the mean positions"

    def estimator(self, body: Body) -> Callable[[int], Estimator]:
        """Its estimator for a number of people; the posterior knows how strong people may be."""
        if self is Method.PAPERS:
            return lambda _: PapersPursuit()
        if self is Method.PURSUIT:
            return lambda _: BasisPursuit()
        weakest = min(max(body.weakest / body.height, 0.05), 0.9)
        return lambda count: PointSources((weakest, 1.0), max_sources=count, min_sources=count)


NOISY = (Method.OURS, Method.PURSUIT, Method.PAPERS)


@dataclass(frozen=True, eq=False)
class Trial:
    """Pictures to try, less the floor, and where people are in each."""

    body: Body
    camera: Matrix
    readings: FloatArray
    people: tuple[FloatArray, ...]

    def first(self, count: int) -> "Trial":
        return replace(self, readings=self.readings[:count], people=self.people[:count])

    def look(
        self, method: Method, epsilon: float | None, key: tuple[int, ...]
    ) -> tuple[FloatArray, list[tuple[Position, ...]]]:
        """Cloak pictures, unless there is no epsilon, and find people in them; returns readings and positions."""
        noisy, noise = self.readings, 0.0
        if epsilon is not None:
            calibration = Calibration.PAPER if method is Method.PAPERS else Calibration.EXACT
            cloak = calibrated(self.camera, calibration, epsilon=epsilon, delta=DELTA, alpha=ALPHA)
            noisy, noise = cloak.simulate(noisy, rng=stream(*key)), float(cloak.sigma)
        # all but the papers take the misfit of the model for noise too
        sigma = noise if method is Method.PAPERS else float(np.hypot(noise, self.body.misfit))
        counts = np.array([len(at) for at in self.people])
        found: list[tuple[Position, ...]] = [()] * len(counts)
        estimator = method.estimator(self.body)
        for count in np.unique(counts).tolist():
            which = np.flatnonzero(counts == count)
            listed = recover(noisy[which], self.camera, sigma=sigma, estimator=estimator(count)).sources
            for picture, sources in zip(which.tolist(), listed, strict=True):
                heaviest = sorted(sources, key=lambda one: -one.weight)[:count]
                found[picture] = positions(self.camera.space.places[[source.place for source in heaviest]])
        return noisy, found


def positions(people: FloatArray) -> tuple[Position, ...]:
    """Positions as pairs of numbers."""
    return tuple((float(x), float(y)) for x, y in people)


def within(score: Row, reach: float) -> Mean:
    """The share of people found within a number of pixels, with the larger of its errors."""
    number = WITHIN.index(reach)
    share, between = score.shares.over_pictures[number], score.shares.between_people
    return Mean(share.value, max(share.error, between[number] if between else 0.0))


def shares(
    people: Sequence[FloatArray], found: Sequence[Sequence[Position]], names: Sequence[IntArray] | None = None
) -> Row:
    """The share of people that have a position of their own within each of `WITHIN`, with errors over pictures.

    `names` identify people across pictures; where they are known there are errors over people, too.
    """
    hits = [near(at, np.array(listed).reshape(-1, 2)) for at, listed in zip(people, found, strict=True)]
    counts = np.array([len(at) for at in people])
    sums, total = np.array([one.sum(axis=0) for one in hits]), counts.sum()
    means = sums.sum(axis=0) / total
    rough = (sums.sum(axis=0) + 1) / (total + 2)  # pictures that are all alike do not make a share certain
    errors = np.maximum(_error(sums, counts, means), np.sqrt(rough * (1 - rough) / total))
    pairs = tuple(Mean(float(mean), float(error)) for mean, error in zip(means, errors, strict=True))
    between: tuple[float, ...] = ()
    if names is not None:
        everyone, who = np.concatenate(hits), np.concatenate(names[: len(hits)])
        each = np.array([everyone[who == name].sum(axis=0) for name in np.unique(who)])
        between = tuple(_error(each, np.bincount(who)[np.unique(who)], means).tolist())
    return Row(over_pictures=pairs, between_people=between)


def _error(sums: FloatArray, counts: IntArray, means: FloatArray) -> FloatArray:
    """The standard error of a share over groups of people that belong together."""
    groups = len(counts)
    spread = ((sums - means * counts[:, None]) ** 2).sum(axis=0)
    return np.asarray(np.sqrt(spread * groups / max(groups - 1, 1)) / counts.sum())


def near(people: FloatArray, found: FloatArray) -> FloatArray:
    """Whether each person has a position of their own within each of `WITHIN`: 1 or 0, shape (people, reaches)."""
    apart = np.hypot(*(people[:, None] - found[None]).transpose(2, 0, 1))
    hits = np.zeros((len(people), len(WITHIN)))
    for column, reach in enumerate(WITHIN):
        mine, theirs = linear_sum_assignment(np.where(apart <= reach, apart, 1e3))
        hits[mine, column] = apart[mine, theirs] <= reach
    return hits


def score(
    trial: Trial, method: Method, epsilon: float | None, key: tuple[int, ...], names: Sequence[IntArray] | None = None
) -> Row:
    """How many people one method found; `given` is the share of positions that it gives, the others are random."""
    _, found = trial.look(method, epsilon, key)
    rng = stream(*key, 1)
    filled = [one + random_positions(len(at) - len(one), rng) for one, at in zip(found, trial.people, strict=True)]
    given = sum(map(len, found)) / sum(map(len, trial.people))
    return _row(method, epsilon, len(found), given, shares(trial.people, filled, names))


def _row(method: Method, epsilon: float | None, pictures: int, given: float, found: Row) -> Row:
    return Row(method=method, epsilon=epsilon, pictures=pictures, given=given, shares=found)


def random_positions(count: int, rng: np.random.Generator) -> tuple[Position, ...]:
    """Draw positions anywhere in a picture."""
    return positions(rng.uniform((0.0, 0.0), (COLUMNS, ROWS), (count, 2)))


def guess(people: Sequence[FloatArray], rng: np.random.Generator) -> Row:
    """The score of random positions, several times for each picture."""
    again = [at for at in people for _ in range(GUESSES)]
    found = [random_positions(len(at), rng) for at in again]
    return _row(Method.GUESS, None, len(again), 0.0, shares(again, found))


def always(people: Sequence[FloatArray], answer: Sequence[Position], names: Sequence[IntArray]) -> Row:
    """The score of the same positions in every picture."""
    return _row(Method.CONSTANT, None, len(people), 0.0, shares(people, [answer] * len(people), names))


def limit(trial: Trial, tall: Sequence[FloatArray], epsilon: float, rng: np.random.Generator) -> Row:
    """The score of normal errors of the size of the Cramer-Rao bound, for bodies of known height."""
    cloak = Cloak(trial.camera, epsilon=epsilon, delta=DELTA, alpha=ALPHA)
    draws = rng.standard_normal((ERRORS, 2))
    found = []
    for at, height in zip(trial.people, tall, strict=True):
        for spread in limits(at, height, trial.body.width, float(cloak.sigma)):
            far = np.hypot(*(draws @ np.linalg.cholesky(spread).T).T) if np.isfinite(spread).all() else np.inf
            found.append([np.mean(far <= reach) for reach in WITHIN])
    means = tuple(Mean.of(np.array(column)) for column in zip(*found, strict=True))
    return _row(Method.LIMIT, epsilon, len(trial.people), 1.0, Row(over_pictures=means, between_people=()))


def mean_positions(people: Sequence[FloatArray]) -> FloatArray:
    """The mean position of everyone, in pictures of people who hardly move.

    >>> mean_positions([np.array([[1.0, 1.0], [9.0, 9.0]]), np.array([[9.0, 8.0], [1.0, 3.0]])]).tolist()
    [[1.0, 2.0], [9.0, 8.5]]
    """
    most = max(people, key=len)
    pairs = list(zip(people, identify(people, most), strict=True))
    return np.array([np.mean([at[name == k][0] for at, name in pairs if k in name], axis=0) for k in range(len(most))])


def identify(people: Sequence[FloatArray], homes: FloatArray) -> tuple[IntArray, ...]:
    """Identify the people of each picture: the assignment to `homes` with the least total distance.

    >>> pictures = [np.array([[8.0, 9.0]]), np.array([[9.0, 9.0], [1.0, 2.0]])]
    >>> [one.tolist() for one in identify(pictures, np.array([[1.0, 1.0], [9.0, 9.0]]))]
    [[1], [1, 0]]
    """
    apart = [np.hypot(*(at[:, None] - homes[None]).transpose(2, 0, 1)) for at in people]
    return tuple(np.asarray(linear_sum_assignment(one)[1], dtype=np.int64) for one in apart)


def shifted(pictures: Infrared, rng: np.random.Generator) -> Infrared:
    """Mirror each picture or not, both ways, and shift it cyclically by whole pixels.

    Bodies, furniture and the camera's noise stay as they are, and people are anywhere. The edges of the room run
    through such a picture.
    """
    pairs = [_shifted(frame, at, rng) for frame, at in zip(pictures.frames, pictures.people, strict=True)]
    return Infrared(np.array([frame for frame, _ in pairs]), tuple(at for _, at in pairs))


def _shifted(frame: FloatArray, people: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    mirrored = rng.integers(0, 2, 2).astype(bool)
    frame = frame[:: -1 if mirrored[1] else 1, :: -1 if mirrored[0] else 1]
    people = np.where(mirrored, SIZE - people, people)
    while True:
        by = rng.integers(0, SIZE.astype(np.int64))
        at = (people + by) % SIZE
        if (np.minimum(at, SIZE - at) >= INSIDE).all():
            return np.roll(frame, by[::-1], axis=(0, 1)), at
