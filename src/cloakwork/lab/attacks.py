"""Attacks on a line, a flat and a club, with the noise of the papers and ours."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.lab.attack import (
    Measured,
    advantage,
    allowed_advantage,
    far_apart,
    separation,
    statistics,
    worst_neighbours,
)
from cloakwork.lab.experiment import stream
from cloakwork.lab.networks import named_networks
from cloakwork.lab.scenes import flat, flat_cloak, line_cloak
from cloakwork.physics import Physics
from cloakwork.privacy import Calibration, Cloak, largest_mu

FALSE = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85)  # false positive rates at which the curve is measured
TIMES = (1, 2, 3, 5, 10, 20, 40)  # alphas that a source moves


class Setting(StrEnum):
    """Where the attack takes place."""

    LINE = "line"
    FLAT = "flat"
    CLUB = "karate club"

    def cloak(self, calibration: Calibration) -> Cloak:
        """With the noise of the papers or ours."""
        made: dict[Setting, Callable[[Calibration], Cloak]] = {
            Setting.LINE: line_cloak,
            Setting.FLAT: _flat_cloak,
            Setting.CLUB: _club_cloak,
        }
        return made[self](calibration)


def _flat_cloak(calibration: Calibration) -> Cloak:
    if calibration is Calibration.EXACT:
        return flat_cloak()
    like = flat_cloak()
    return Cloak(flat(), epsilon=like.epsilon, delta=like.delta, alpha=like.alpha, calibration=calibration)


@cache
def _club_cloak(calibration: Calibration) -> Cloak:
    """The karate club with a rumour at every member, who began it hidden within one tie at (2, 0.01)."""
    return Cloak(named_networks()[0].physics(0.5), epsilon=2.0, delta=0.01, alpha=1.0, calibration=calibration)


@dataclass(frozen=True)
class Attack:
    """One setting and noise: the advantage of who sees all readings, of who sees the best one, and the curve.

    `curve` has a true positive rate for each of `FALSE`; `mu` is the shift in standard deviations, exactly.
    """

    setting: Setting
    calibration: Calibration
    epsilon: float
    delta: float
    mu: float
    all_readings: Measured
    one_reading: float
    curve: tuple[float, ...]

    @property
    def guaranteed(self) -> float:
        """The largest advantage that the claim leaves."""
        return allowed_advantage(self.epsilon, self.delta)


@dataclass(frozen=True)
class Window:
    """The advantage from k frames: noise made for all of them, and noise made for one and used for all."""

    k: int
    kept: Measured
    spent: Measured


@dataclass(frozen=True)
class Move:
    """A source that moved so many alphas: how far apart the readings are, in standard deviations."""

    setting: Setting
    calibration: Calibration
    times: float
    mu: float


def excess(one: Attack) -> float:
    """How many times the noise is that the claim needs."""
    return largest_mu(one.epsilon, one.delta) / one.mu


def attack_of(setting: Setting, calibration: Calibration, trials: int, rng: np.random.Generator) -> Attack:
    """The best test between the two worst neighbours, on so many frames of each."""
    cloak = setting.cloak(calibration)
    placements = worst_neighbours(cloak)
    mu = separation(cloak, placements)
    zero, one = statistics(cloak, placements, trials, 1, rng)
    best = float(np.abs((placements.one - placements.zero) / cloak.sigmas).max())
    cuts = np.quantile(zero, [1 - false for false in FALSE])
    return Attack(
        setting,
        calibration,
        cloak.epsilon,
        cloak.delta,
        mu,
        Measured.of(zero, one, mu),
        advantage(best),
        tuple(round(float((one > cut).mean()), 5) for cut in cuts),
    )


def window_of(k: int, trials: int, seed: int) -> Window:
    """The line over k frames; the same random numbers with either noise."""
    like = line_cloak()
    kept = Cloak(like.physics, epsilon=like.epsilon, delta=like.delta, alpha=like.alpha, readings_per_window=k)
    measured = []
    for cloak in (kept, like):
        placements = worst_neighbours(cloak)
        mu = separation(cloak, placements) * math.sqrt(k)
        measured.append(Measured.of(*statistics(cloak, placements, trials, k, stream(seed, 1, k)), mu))
    return Window(k, *measured)


def _distances(setting: Setting, physics: Physics, alpha: float) -> tuple[float, ...]:
    """Distances that occur in a setting, from alpha or the least one on."""
    if setting is Setting.LINE:
        return tuple(times * alpha for times in TIMES)
    table: FloatArray = np.asarray(physics.space.distance_table, dtype=np.float64)
    found = np.unique(np.round(table[np.isfinite(table) & (table > 0)], 6))
    kept = [found[np.argmin(np.abs(found - times * alpha))] for times in TIMES if times * alpha <= found[-1]]
    return tuple(sorted({float(one) for one in kept}))


def moves_of(setting: Setting) -> tuple[Move, ...]:
    """The two places that differ most at each of some distances, with either noise."""
    physics = setting.cloak(Calibration.EXACT).physics
    alpha = setting.cloak(Calibration.EXACT).alpha
    found = []
    for distance in _distances(setting, physics, alpha):
        placements = far_apart(physics, distance)
        if placements is not None:
            for calibration in (Calibration.EXACT, Calibration.PAPER):
                mu = separation(setting.cloak(calibration), placements)
                found.append(Move(setting, calibration, distance / alpha, mu))
    return tuple(found)
