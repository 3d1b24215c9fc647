"""Ways to find people in cloaked pictures, and how they do."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.demo.recorded import Position
from cloakwork.privacy import Calibration, Cloak
from cloakwork.recovery import BasisPursuit, Estimator, PointSources, Radius
from papers.bodies import COLUMNS, ROWS, Body, Trial, limits
from papers.experiment import stream
from papers.near import WITHIN, Shares, shares
from papers.trials import Mean

DELTA, ALPHA = 1e-5, 1.0  # a move by one pixel is hidden
GUESSES = 5  # for each picture
ERRORS = 1000  # normal errors of the size of the limit, for each person


class Method(StrEnum):
    """A way from a picture to where people are, told how many there are, which no cloak hides."""

    CLEAR = "no noise, posterior"
    OURS = "exact noise, posterior (ours)"
    PURSUIT = "exact noise, R"
    PAPERS = "papers: their noise, R"
    LIMIT = "Cramer-Rao limit, exact noise"
    GUESS = "a guess, without looking"
    CONSTANT = "always the mean places, without looking"

    def estimator(self, body: Body) -> Callable[[int], Estimator]:
        """What it finds so many people with; the posterior knows how strong people may be, R does not."""
        if self is Method.PAPERS:
            return lambda _: BasisPursuit(radius=Radius.PAPER)
        if self is Method.PURSUIT:
            return lambda _: BasisPursuit()
        weakest = min(max(body.weakest / body.height, 0.05), 0.9)
        return lambda count: PointSources((weakest, 1.0), most=count, least=count)

    def sigma(self, noise: float, body: Body) -> float:
        """What it takes for noise: how far pictures are from the model too, but for the papers."""
        return noise if self is Method.PAPERS else float(np.hypot(noise, body.misfit))

    @property
    def calibration(self) -> Calibration:
        """How much noise its readings have."""
        return Calibration.PAPER if self is Method.PAPERS else Calibration.EXACT


NOISY = (Method.OURS, Method.PURSUIT, Method.PAPERS)


@dataclass(frozen=True)
class Score:
    """How many people one method found in so many pictures.

    `given` is the share of the people for whom there was a position at all; the others are guessed.
    """

    method: Method
    epsilon: float | None
    pictures: int
    given: float
    shares: Shares

    def within(self, reach: float) -> Mean:
        """The share of the people found within so many pixels."""
        return self.shares.within(reach)

    @property
    def row(self) -> tuple[str, ...]:
        """The same for people to read."""
        percent = [self.within(reach) for reach in WITHIN]
        return (
            str(self.method),
            "-" if self.epsilon is None else f"{self.epsilon:g}",
            *(f"{100 * one.value:.0f} ± {100 * one.error:.0f}" for one in percent),
            f"{100 * self.given:.0f}",
            f"{self.pictures}",
        )


@dataclass(frozen=True, eq=False)
class Seen:
    """Pictures as they were seen, and the positions that a method gave."""

    readings: FloatArray
    found: list[tuple[Position, ...]]


def look(trial: Trial, method: Method, epsilon: float | None, key: tuple[int, ...]) -> Seen:
    """Cloak pictures, unless there is no epsilon, and find people in them."""
    readings, noise = trial.readings, 0.0
    if epsilon is not None:
        cloak = Cloak(trial.camera, epsilon=epsilon, delta=DELTA, alpha=ALPHA, calibration=method.calibration)
        readings, noise = cloak.simulate(readings, rng=stream(*key)), float(cloak.sigma)
    return Seen(readings, trial.found(readings, method.sigma(noise, trial.body), method.estimator(trial.body)))


def score(
    trial: Trial, method: Method, epsilon: float | None, key: tuple[int, ...], names: Sequence[IntArray] | None = None
) -> Score:
    """How one method does; positions that it does not give are guessed."""
    found = look(trial, method, epsilon, key).found
    rng = stream(*key, 1)
    filled = [one + guessed(len(at) - len(one), rng) for one, at in zip(found, trial.people, strict=True)]
    given = sum(map(len, found)) / sum(map(len, trial.people))
    return Score(method, epsilon, len(found), given, shares(trial.people, filled, names))


def guessed(count: int, rng: np.random.Generator) -> tuple[Position, ...]:
    """So many random places."""
    return tuple((float(x), float(y)) for x, y in rng.uniform((0.0, 0.0), (COLUMNS, ROWS), (count, 2)))


def guess(people: Sequence[FloatArray], rng: np.random.Generator) -> Score:
    """Random places, many times for each picture."""
    again = [at for at in people for _ in range(GUESSES)]
    return Score(Method.GUESS, None, len(again), 0.0, shares(again, [guessed(len(at), rng) for at in again]))


def always(people: Sequence[FloatArray], answer: Sequence[Position], names: Sequence[IntArray]) -> Score:
    """The same places in every picture."""
    return Score(Method.CONSTANT, None, len(people), 0.0, shares(people, [answer] * len(people), names))


def limit(trial: Trial, tall: Sequence[FloatArray], epsilon: float, rng: np.random.Generator) -> Score:
    """What errors of the size of the Cramer-Rao limit would give, in pictures of bodies of known height."""
    cloak = Cloak(trial.camera, epsilon=epsilon, delta=DELTA, alpha=ALPHA)
    draws = rng.standard_normal((ERRORS, 2))
    found = []
    for at, height in zip(trial.people, tall, strict=True):
        for spread in limits(at, height, trial.body.width, float(cloak.sigma)):
            far = np.hypot(*(draws @ np.linalg.cholesky(spread).T).T) if np.isfinite(spread).all() else np.inf
            found.append([np.mean(far <= reach) for reach in WITHIN])
    means = tuple(Mean.of(np.array(column)) for column in zip(*found, strict=True))
    return Score(Method.LIMIT, epsilon, len(trial.people), 1.0, Shares(means))
