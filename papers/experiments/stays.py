"""Someone who does not move all night, seen by an observer who keeps every reading, with slow offsets and without."""

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.linalg import solveh_banded

from cloakwork._checks import FloatArray
from cloakwork.privacy import Cloak, Profile, Stay
from papers import followed_people
from papers.drawing import INK, SERIES, curve, draw_bars, finish, log_axes
from papers.experiment import Experiment, Run, stream
from papers.result import Finding, Goal
from papers.rows import Mean, Row

DELTA, ALPHA, MINUTE = 1e-5, 0.1, followed_people.WINDOW  # of the demo, whose claim covers the readings of a minute
HOUR = 3600 / followed_people.SECONDS  # readings
NIGHT, AROUND = 9600, 1200  # readings of eight hours, and of the hour before and after
SPANS = {"minute": 20, "hour": 1200, "night": NIGHT, "week": 7 * 28_800, "year": 365 * 28_800}
NIGHTS = (8, 1, 2)
NIGHT_CLAIMS: tuple[tuple[float, ...], ...] = ((30.0, 16.0, 8.0), (30.0,), (8.0,))  # epsilons
SEATS = (2000, 300, 10)
KNOWN = 4.7  # mu that a night may have at the first claim


class Stays(Finding):
    """Long stays: what averaging finds, and what offsets keep."""

    size = (11.0, 4.4)

    def goals(self) -> tuple[Goal, ...]:
        first = self.watched[1]
        over = [one for one in self.watched if one.measured.value > one.mu + 3 * one.measured.error]
        return (
            Goal(f"mu of a night at most {KNOWN:g} with a claim of epsilon 30", f"{first.mu:.2f}", first.mu <= KNOWN),
            Goal(
                "simulated nights tell no more than their claim allows",
                f"{len(self.watched) - len(over)} of {len(self.watched)}",
                not over,
            ),
        )

    def text(self) -> str:
        plain, first = self.watched[:2]
        claim = f"({followed_people.cloak().epsilon:g}, {DELTA:g})"
        return (
            f"The demo's flat has the claim {claim} for moves of {ALPHA:g} m within a minute. Someone "
            "sleeps in one place for eight hours, and an observer who keeps all readings knows the law of the noise "
            f"exactly, and everything that happened an hour before and after. Without a claim for the night, "
            f"averaging separates two places {ALPHA:g} m apart by mu {plain.mu:.1f} standard deviations, which "
            f"is epsilon {Profile(plain.mu).epsilon(DELTA):.0f}: nothing is hidden. [Slow offsets](stays.md) with "
            f"{100 * first.share:.1f} % of the variance of the fresh noise bring this down to {first.mu:.2f}."
        )

    def draw(self, figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        hours = [readings / HOUR for readings in SPANS.values()]
        for number, one in enumerate(self.watched):
            claim = "no claim for a night" if one.epsilon is None else f"({one.epsilon:g}, {DELTA:g}) for a night"
            look: Any = {"color": INK if one.epsilon is None else SERIES[number - 1], "label": claim}
            curve(left, hours, one.spans, number, **look)
        left.axvline(NIGHT / HOUR, color=INK, linestyle=":", linewidth=1)
        log_axes(left)
        finish(left, f"Two seats {ALPHA:g} m apart", "hours of the stay", "mu, standard deviations", legend=8)
        names = ["none" if one.epsilon is None else f"epsilon {one.epsilon:g}" for one in self.watched]
        from_minute, from_night = ([getattr(one, name) for one in self.watched] for name in ("minute", "night"))
        draw_bars(right, names, {"from a minute": from_minute, "from a night": from_night})
        right.set(title="The most likely seat", xlabel="claim for a night", ylabel="mean distance to the true one, m")
        right.legend(loc="upper left")


def separation(cloak: Cloak) -> float:
    """The distance of the two neighbouring placements that are easiest to tell apart, in standard deviations.

    Notes
    -----
    e_i against (1 - a) e_i + a e_j for the pair of places that is steepest in units of the noise, a = alpha / d(i, j).
    """
    matrix, (i, j) = cloak.physics.matrix, cloak.physics.moves().steepest(1 / cloak.sigmas).pair
    share = min(1.0, cloak.alpha / float(cloak.physics.space.distances(i)[j]))
    moved = (1 - share) * matrix[:, i] + share * matrix[:, j]
    here, there = (np.rint(readings / cloak.steps) * cloak.steps for readings in (matrix[:, i], moved))
    return float(np.linalg.norm((there - here) / cloak.sigmas))


def cloak_of(epsilon: float | None, readings: int) -> Cloak:
    """The demo's noise, with a claim for stays of so many readings or without one."""
    plain = followed_people.cloak()
    if epsilon is None:
        return plain
    return Cloak(
        plain.physics,
        epsilon=plain.epsilon,
        delta=plain.delta,
        alpha=plain.alpha,
        readings_per_window=plain.readings_per_window,
        sigma=plain.sigmas,
        stay=Stay(readings, epsilon=epsilon, delta=DELTA, period=followed_people.SECONDS),
    )


def share_of(cloak: Cloak) -> float:
    """The variance of an offset over that of the fresh noise, the same for all sensors."""
    return 0.0 if cloak.slow is None else float((cloak.slow.deviations(cloak.steps) / cloak.sigmas).min()) ** 2


def weights_of(cloak: Cloak, stay: int, around: int) -> FloatArray:
    """P x: x is 1 in the readings of a stay and 0 in those around it, P = (I + share K)^-1.

    An offset is constant in each block b between two renewals, so P x = x - o_b with (R I + (share K_b)^-1) o = sums of
    x over the blocks; the inverse of K_b has three diagonals.
    """
    x = np.zeros(stay + 2 * around)
    x[around : around + stay] = 1.0
    if cloak.slow is None:
        return x
    block = np.arange(len(x)) // cloak.slow.renew
    fade, share = cloak.slow.fade, share_of(cloak)
    inverse = np.zeros((2, block[-1] + 1))
    inverse[1] = 1 + fade**2
    inverse[1, [0, -1]] = 1.0
    inverse[0, 1:] = -fade
    inverse /= share * (1 - fade**2)
    inverse[1] += np.bincount(block)
    return np.asarray(x - solveh_banded(inverse, np.bincount(block, x))[block])


def _simulated_mu(cloak: Cloak, stay: int, around: int, nights: int, rng: np.random.Generator) -> Mean:
    """The separation of the worst two seats by the scatter of weighed means of simulated nights, over all sensors."""
    weights = weights_of(cloak, stay, around)
    silence = np.zeros((len(weights), cloak.physics.sensors))
    means = np.array([weights @ cloak.simulate(silence, rng=rng) for _ in range(nights)])
    total = float(weights[around : around + stay].sum())
    squares = (means / (cloak.sigmas * total)) ** 2
    mu = separation(cloak) / math.sqrt(float(squares.mean()))
    return Mean(mu, mu * math.sqrt(1 / (2 * squares.size)))


def _distances(cloak: Cloak, worth: float, seats: int, rng: np.random.Generator) -> FloatArray:
    """Distances between random seats and the most likely ones, from as much as so many fresh readings tell."""
    scaled = cloak.physics.matrix / cloak.sigmas[:, None] * math.sqrt(worth)
    at = rng.integers(0, cloak.physics.places, seats)
    noisy = scaled.T[at] + rng.standard_normal((seats, cloak.physics.sensors))
    named = (noisy @ scaled - (scaled**2).sum(axis=0) / 2).argmax(axis=1)
    space, pairs = cloak.physics.space, zip(at.tolist(), named.tolist(), strict=True)
    return np.array([0.0 if i == j else float(space.distances(i)[j]) for i, j in pairs])


def _watched(epsilon: float | None, run: Run, number: int, length: tuple[int, int]) -> Row:
    """What a night tells with one claim for it, or without any.

    `share` is the variance of the offsets over that of the fresh noise, `mu` the separation of two seats alpha apart
    that the plan computes, `exact` that of the worst two in this night, and `measured` the same from simulated nights.
    `minute` and `night` are mean distances in metres between the true and the most likely seat, and `right` is how
    often a night names the right cell.
    """
    cloak = cloak_of(epsilon, length[0])
    worths = [float(weights_of(cloak, *span)[span[1] :][: span[0]].sum()) for span in ((MINUTE, 0), length)]
    seats = run.choose(*SEATS)
    minute, night = (_distances(cloak, worth, seats, stream(run.seed, number, k)) for k, worth in enumerate(worths))
    return Row(
        epsilon=epsilon,
        share=share_of(cloak),
        mu=cloak.stay_mu(length[0]),
        exact=separation(cloak) * math.sqrt(worths[1]),
        measured=_simulated_mu(cloak, *length, run.choose(*NIGHTS), stream(run.seed, number, 2)),
        minute=Mean.of(minute),
        night=Mean.of(night),
        right=float((night == 0).mean()),
        spans=tuple(cloak.stay_mu(readings) for readings in SPANS.values()),
    )


def _work(run: Run) -> Stays:
    length = run.choose((NIGHT, AROUND), (NIGHT, AROUND), (600, 60))
    claims = (None, *run.choose(*NIGHT_CLAIMS))
    watched = tuple(_watched(epsilon, run, number, length) for number, epsilon in enumerate(claims))
    return Stays(watched=watched, nights=run.choose(*NIGHTS), seats=run.choose(*SEATS))


EXPERIMENT = Experiment(
    "stays",
    "What a night of readings tells about someone who does not move, with slow offsets and without",
    Stays,
    _work,
    minutes=0.4,
)
