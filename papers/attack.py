"""The best attack on a cloak: the likelihood ratio between two placements of a source."""

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray
from cloakwork.physics import FloorPlan, Rooms, Steady
from cloakwork.privacy import Cloak, Design, Scope, largest_mu
from papers import bodies
from papers.calibration import Calibration, calibrated
from papers.experiment import stream
from papers.experiments.recorded_warmth import SHOWN, STANDARD
from papers.networks import named_networks
from papers.statistics import share_error
from papers.trials import Setting as LineSetting

FALSE = (0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7)  # false positive rates at which the curve is measured
_PIECE = 4000  # frames at a time


class Setting(StrEnum):
    """Where the attack takes place, with the noise that we use there."""

    LINE = "line"
    SENSOR = "line, single sensor"
    FLAT = "flat, equal noise"
    DESIGNED = "flat, designed noise"
    CLUB = "karate club"
    CAMERA = "camera"

    def cloak(self, calibration: Calibration = Calibration.EXACT, frames: int = 1) -> Cloak:
        """The noise for a window of frames; the papers' is the same for all sensors."""
        return _cloak(self, calibration, frames)


@cache
def _cloak(setting: Setting, calibration: Calibration, frames: int) -> Cloak:
    claim = _claim(setting)
    return calibrated(
        claim.physics,
        calibration,
        epsilon=claim.epsilon,
        delta=claim.delta,
        alpha=claim.alpha,
        scope=claim.scope,
        readings_per_window=frames,
        design=claim.design if calibration is Calibration.EXACT else Design.EQUAL,
    )


@cache
def _claim(setting: Setting) -> Cloak:
    """The cloak of a setting, for one frame.

    The designed flat has three rooms of 10 m x 8 m, the camera is that of `recorded-warmth` with its simulated bodies.
    In the karate club a rumour is seen at every member, and its source is hidden within one tie.
    """
    if setting is Setting.LINE:
        return LineSetting().cloak()
    if setting is Setting.FLAT:
        return flat_cloak()
    if setting is Setting.SENSOR:
        return Cloak(LineSetting().line, epsilon=1.0, delta=0.1, alpha=0.01, scope=Scope.SENSOR)
    if setting is Setting.DESIGNED:
        walls = [((6.0, 0.0), (6.0, 8.0)), ((6.0, 4.0), (10.0, 4.0))]
        doors = [((6.0, 1.5), (6.0, 3.0)), ((6.0, 5.0), (6.0, 6.5))]
        at = [(x, y) for x in np.arange(0.5, 10).tolist() for y in np.arange(0.5, 8).tolist()]
        rooms = Rooms.from_walls((10.0, 8.0), cell=0.5, walls=walls, doors=doors)
        plan = FloorPlan(rooms, at, Steady(1.0), footprint=0.5)
        return Cloak(plan, epsilon=8.0, delta=1e-5, alpha=0.1, design=Design.LEAST_ERROR)
    if setting is Setting.CAMERA:
        return Cloak(STANDARD.camera, epsilon=SHOWN, delta=bodies.DELTA, alpha=bodies.ALPHA)
    return Cloak(named_networks()[0].physics(0.5), epsilon=2.0, delta=0.01, alpha=1.0)


@cache
def flat_cloak() -> Cloak:
    """Three rooms of 10 m x 10 m in 400 cells, 100 sensors, people with a reach of 1 m and a footprint of 0.5 m.

    A move by 0.3 m is hidden at (4, 1e-5).
    """
    walls = [((5, 0), (5, 10)), ((0, 5), (5, 5))]
    doors = [((5, 4), (5, 6)), ((2, 5), (3, 5))]
    rooms = Rooms.from_walls((10, 10), cell=0.5, walls=walls, doors=doors)
    along = np.arange(0.5, 10, 1.0)
    plan = FloorPlan(rooms, [(x, y) for x in along for y in along], Steady(1.0), footprint=0.5)
    return Cloak(plan, epsilon=4.0, delta=1e-5, alpha=0.3)


@dataclass(frozen=True, eq=False)
class Placements:
    """The true readings of two placements of one source."""

    zero: FloatArray
    one: FloatArray


def worst_neighbours(cloak: Cloak) -> Placements:
    """The two placements that a cloak has to hide and that are easiest to tell apart.

    Notes
    -----
    e_i against (1 - a) e_i + a e_j for the pair of neighbouring places that is steepest in units of the noise,
    a = alpha / d(i, j), at most 1.
    """
    matrix, (i, j) = cloak.physics.matrix, _worst_pair(cloak)
    share = min(1.0, cloak.alpha / float(cloak.physics.space.distances(i)[j]))
    return Placements(matrix[:, i], (1 - share) * matrix[:, i] + share * matrix[:, j])


def _worst_pair(cloak: Cloak) -> tuple[int, int]:
    physics = cloak.physics
    if cloak.scope is Scope.NETWORK:
        return physics.moves().steepest(1 / cloak.sigmas).pair
    steepest = [(np.abs(rows) / cloak.sigmas).max(axis=1) for rows in physics.steps().rows()]
    i, j = physics.space.pairs[int(np.argmax(np.concatenate(steepest)))]
    return int(i), int(j)


def _sent(cloak: Cloak, readings: FloatArray) -> FloatArray:
    """Readings as they are sent: rounded to steps."""
    return np.asarray(np.rint(readings / cloak.steps) * cloak.steps)


def shifts(cloak: Cloak, placements: Placements) -> FloatArray:
    """The distance of the two placements on each reading, in standard deviations."""
    return np.asarray((_sent(cloak, placements.one) - _sent(cloak, placements.zero)) / cloak.sigmas)


def seen_shifts(cloak: Cloak, placements: Placements) -> FloatArray:
    """The `shifts` that the attacker sees whom the cloak is made against: all sensors, or the most telling one."""
    found = shifts(cloak, placements)
    if cloak.scope is Scope.SENSOR:
        found[np.arange(len(found)) != np.argmax(np.abs(found))] = 0.0
    return found


def separation(cloak: Cloak, placements: Placements) -> float:
    """The distance of the two placements to that attacker in one frame, in standard deviations."""
    return float(np.linalg.norm(seen_shifts(cloak, placements)))


def advantage(mu: float) -> float:
    """True minus false positive rate of the best test between two normal distributions that are mu apart.

    >>> round(advantage(1.0), 4)
    0.3829
    """
    return float(2 * special.ndtr(mu / 2) - 1)


def allowed(epsilon: float, delta: float, false: float) -> float:
    """The largest true positive rate that (epsilon, delta) allows at a false positive rate.

    >>> round(allowed(1.0, 0.1, 0.1), 4)
    0.3718
    """
    return min(1.0, math.exp(epsilon) * false + delta, 1 - math.exp(-epsilon) * (1 - delta - false))


def allowed_advantage(epsilon: float, delta: float) -> float:
    """The largest advantage that (epsilon, delta) allows: where the two lines of `allowed` meet."""
    return 1 - 2 * (1 - delta) / (1 + math.exp(epsilon))


@dataclass(frozen=True, eq=False)
class Ratios:
    """Log likelihood ratios of frames of either placement."""

    zero: FloatArray
    one: FloatArray

    def together(self, k: int) -> "Ratios":
        """The ratios of k frames each, taken together: k readings of one steady scene."""
        whole = len(self.zero) // k * k
        return Ratios(*(ratios[:whole].reshape(-1, k).sum(axis=1) for ratios in (self.zero, self.one)))


def ratios_of(cloak: Cloak, placements: Placements, frames: int, rng: np.random.Generator) -> Ratios:
    """Log likelihood ratios of simulated releases of either placement; each draw of the noise serves for both."""
    zero, one = (_sent(cloak, readings) for readings in (placements.zero, placements.one))
    weights = seen_shifts(cloak, placements) / cloak.sigmas
    pieces = [
        cloak.simulate(np.tile(placements.zero, (min(_PIECE, frames - first), 1)), rng=rng) @ weights
        for first in range(0, frames, _PIECE)
    ]
    ratios = np.concatenate(pieces) - float((zero + one) @ weights) / 2
    return Ratios(ratios, ratios + float((one - zero) @ weights))


@dataclass(frozen=True)
class Measured:
    """A measured advantage with its standard error; `mu` is the true separation in standard deviations."""

    measured: float
    error: float
    mu: float

    @classmethod
    def of(cls, ratios: Ratios, mu: float) -> "Measured":
        """The advantage of the test with threshold 0, which is the best.

        With the same noise for both placements it is the share of draws for which the answers differ.
        """
        differ = float(((ratios.one > 0) & (ratios.zero <= 0)).mean())
        return cls(differ, share_error(differ, len(ratios.zero)), mu)

    @property
    def exact(self) -> float:
        return advantage(self.mu)

    def __str__(self) -> str:
        return f"{self.measured:.3f} ± {self.error:.3f}"


@dataclass(frozen=True)
class Attack:
    """One setting and noise, on one frame: the advantage of the attacker whom the noise is made against.

    `one_sensor` and `all_sensors` are the exact advantages from the most telling reading and from all readings. `curve`
    has a true positive rate for each of `FALSE`.
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
        return allowed_advantage(self.epsilon, self.delta)

    @property
    def excess(self) -> float:
        """The noise over what the claim needs."""
        return largest_mu(self.epsilon, self.delta) / self.found.mu


@dataclass(frozen=True)
class Window:
    """The advantage from k frames of a steady scene: with noise for all of them, and with noise for one frame."""

    setting: Setting
    k: int
    kept: Measured
    spent: Measured


def releases(setting: Setting, calibration: Calibration, k: int, frames: int, seed: int) -> Ratios:
    """Simulate releases with noise for windows of k frames."""
    cloak = setting.cloak(calibration, k)
    key = (list(Setting).index(setting), list(Calibration).index(calibration), k)
    return ratios_of(cloak, worst_neighbours(cloak), frames, stream(seed, *key))


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


def window_on(setting: Setting, k: int, single: Ratios, frames: int, seed: int) -> Window:
    """The attack on k frames together; `single` are releases with the noise of one frame."""
    whole = releases(setting, Calibration.EXACT, k, frames, seed)
    measured = [
        Measured.of(ratios.together(k), separation(cloak, worst_neighbours(cloak)) * math.sqrt(k))
        for ratios, cloak in ((whole, setting.cloak(frames=k)), (single, setting.cloak()))
    ]
    return Window(setting, k, *measured)
