"""Attacks on what experiments release: where, with which noise, and on how many frames."""

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.privacy import Calibration, Cloak, Design, Scope, largest_mu
from papers import finders, tracks
from papers.attack import (
    Measured,
    Ratios,
    advantage,
    allowed_advantage,
    far_apart,
    ratios_of,
    separation,
    shifts,
    worst_neighbours,
)
from papers.experiment import stream
from papers.experiments.infrared import SHOWN, STANDARD
from papers.networks import named_networks
from papers.scenes import flat_cloak, line, line_cloak

FALSE = (0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7)  # false positive rates at which the curve is measured
TIMES = (1, 2, 3, 5, 10, 20, 40)  # alphas that a source moves


class Setting(StrEnum):
    """Where the attack takes place, with the noise that is ours there."""

    LINE = "line"
    SENSOR = "line, each sensor alone"
    FLAT = "flat, equal noise"
    DESIGNED = "flat, designed noise"
    CLUB = "karate club"
    CAMERA = "camera"

    def cloak(self, calibration: Calibration = Calibration.EXACT, frames: int = 1) -> Cloak:
        """Noise for a window of so many frames; the papers' is the same for all sensors."""
        return _cloak(self, calibration, frames)


@cache
def _cloak(setting: Setting, calibration: Calibration, frames: int) -> Cloak:
    like = _claimed(setting)
    return Cloak(
        like.physics,
        epsilon=like.epsilon,
        delta=like.delta,
        alpha=like.alpha,
        scope=like.scope,
        calibration=calibration,
        readings_per_window=frames,
        design=like.design if calibration is Calibration.EXACT else Design.EQUAL,
    )


@cache
def _claimed(setting: Setting) -> Cloak:
    """The cloak of a setting, for one frame.

    The designed flat is that of `movement`, the camera that of `infrared` with its made-up bodies. In the karate club
    a rumour is seen at every member, and who began it is hidden within one tie.
    """
    if setting is Setting.LINE:
        return line_cloak()
    if setting is Setting.FLAT:
        return flat_cloak()
    if setting is Setting.SENSOR:
        return Cloak(line(), epsilon=1.0, delta=0.1, alpha=0.01, scope=Scope.SENSOR)
    if setting is Setting.DESIGNED:
        rooms, claim = tracks.flat(), (tracks.EPSILON, tracks.DELTA, tracks.ALPHA)
        return Cloak(rooms, epsilon=claim[0], delta=claim[1], alpha=claim[2], design=Design.LEAST_ERROR)
    if setting is Setting.CAMERA:
        camera, claim = STANDARD.camera, (SHOWN, finders.DELTA, finders.ALPHA)
        return Cloak(camera, epsilon=claim[0], delta=claim[1], alpha=claim[2])
    return Cloak(named_networks()[0].physics(0.5), epsilon=2.0, delta=0.01, alpha=1.0)


@dataclass(frozen=True)
class Attack:
    """One setting and noise, on one frame: the advantage of the attacker that the noise is made against, and the curve.

    `one_sensor` and `all_sensors` are the exact advantages of who sees the reading that tells most, and of who sees
    all. `curve` has a true positive rate for each of `FALSE`.
    """

    setting: Setting
    calibration: Calibration
    epsilon: float
    delta: float
    found: Measured
    one_sensor: float
    all_sensors: float
    curve: tuple[float, ...]

    @property
    def guaranteed(self) -> float:
        """The largest advantage that the claim leaves."""
        return allowed_advantage(self.epsilon, self.delta)


@dataclass(frozen=True)
class Window:
    """The advantage from k frames of a steady scene: noise made for all of them, or made for one and used for all."""

    setting: Setting
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
    return largest_mu(one.epsilon, one.delta) / one.found.mu


def attack_on(setting: Setting, calibration: Calibration, ratios: Ratios) -> Attack:
    """The best test between the two worst neighbours, on releases of one frame."""
    cloak = setting.cloak(calibration)
    placements = worst_neighbours(cloak)
    apart = shifts(cloak, placements)
    cuts = np.quantile(ratios.zero, [1 - false for false in FALSE])
    return Attack(
        setting,
        calibration,
        cloak.epsilon,
        cloak.delta,
        Measured.of(ratios, separation(cloak, placements)),
        advantage(float(np.abs(apart).max())),
        advantage(float(np.linalg.norm(apart))),
        tuple(round(float((ratios.one > cut).mean()), 5) for cut in cuts),
    )


def releases(setting: Setting, calibration: Calibration, k: int, frames: int, seed: int) -> Ratios:
    """What the attacker makes of so many frames with noise for windows of k."""
    cloak = setting.cloak(calibration, k)
    key = (list(Setting).index(setting), list(Calibration).index(calibration), k)
    return ratios_of(cloak, worst_neighbours(cloak), frames, stream(seed, *key))


def window_on(setting: Setting, k: int, single: Ratios, frames: int, seed: int) -> Window:
    """The attack on k frames together; `single` are releases with the noise of one frame."""
    measured = [
        Measured.of(ratios.together(k), separation(cloak, worst_neighbours(cloak)) * math.sqrt(k))
        for ratios, cloak in (
            (releases(setting, Calibration.EXACT, k, frames, seed), setting.cloak(frames=k)),
            (single, setting.cloak()),
        )
    ]
    return Window(setting, k, *measured)


def _distances(cloak: Cloak) -> tuple[float, ...]:
    """Distances that occur, from alpha or the least one on."""
    table: FloatArray = np.asarray(cloak.physics.space.distance_table, dtype=np.float64)
    found = np.unique(np.round(table[np.isfinite(table) & (table > 0)], 6))
    wanted = [times * cloak.alpha for times in TIMES if times * cloak.alpha <= found[-1]]
    return tuple(sorted({float(found[np.argmin(np.abs(found - one))]) for one in wanted}))


def moves_of(setting: Setting) -> tuple[Move, ...]:
    """The two places that are told apart best at each of some distances, with either noise."""
    found = []
    for calibration in (Calibration.EXACT, Calibration.PAPER):
        cloak = setting.cloak(calibration)
        for distance in _distances(cloak):
            placements = far_apart(cloak, distance)
            if placements is not None:
                found.append(Move(setting, calibration, distance / cloak.alpha, separation(cloak, placements)))
    return tuple(found)
