"""Fits the physics of a floor plan to a calibration walk."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg, optimize, special

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError
from cloakwork.fitting.fitted import COVERED, Fitted, covering, deviations, written_strength
from cloakwork.fitting.responses import Responses
from cloakwork.fitting.walk import Walk
from cloakwork.physics import FloorPlan, Steady, Tolerance
from cloakwork.site import Site

STARTS = np.geomspace(1 / 4, 4, 7)  # times the stated reach
STEP = 0.01  # of a logarithm, for slopes
WRONG = 0.001  # a model that fits with less probability is called wrong
SWAPPED = 0.25  # of the squared residuals stay at most when two swapped sensors change places
DRIFTS = 0.5  # of the squared residuals stay at most when baselines that drift explain them
NEARBY = 2.0  # metres around a sensor in which it may really be


@dataclass(frozen=True, eq=False)
class WalkFit:
    """Physics fitted to a walk.

    `reach` and `footprint` are in metres, `strength` in the unit of the site file. `gains` and `gain_errors` (m,) are
    relative to the mean gain, `baselines` and `baseline_errors` (m,) in the unit of the readings. `expected` (S, m) is
    what the model gives for `walk.means`.

    Notes
    -----
    Sensor k reads b_k + a_k R_k(x; reach, footprint) with R the floor plan's response to a unit source at x. For given
    reach and footprint this is linear in a_k and b_k, so least squares over these two remain, with weights from
    repeated readings (variable projection; Golub and Pereyra, 1973). The strength is the mean of the a_k, weighted by
    what the walk says about each. Errors are those of the linearised problem. If the residuals exceed what repeated
    readings explain, all errors grow by that ratio. Intervals are Student's, with the freedom of the sensor that has
    the fewest repeated readings. Where the site states a drift, b_k changes linearly over the walk, and `baselines` are
    those in the middle of it.
    """

    site: Site
    walk: Walk
    reach: Fitted
    footprint: Fitted
    strength: Fitted
    gains: FloatArray
    gain_errors: FloatArray
    baselines: FloatArray
    baseline_errors: FloatArray
    expected: FloatArray

    @cached_property
    def squares(self) -> FloatArray:
        """Squared residual of each mean over its variance, (S, m)."""
        return np.asarray((self.walk.means - self.expected) ** 2 / self.walk.variances)

    @property
    def freedom(self) -> int:
        """Number of means less that of parameters."""
        return _freedom(self.site, self.walk)

    @property
    def p_value(self) -> float:
        """Probability of residuals as large as these, by the noise of repeated readings, if the model is right."""
        return float(special.chdtrc(self.freedom, float(self.squares.sum())))

    @property
    def wrong(self) -> bool:
        """Whether the readings contradict the model."""
        return self.p_value < WRONG

    @property
    def misfit(self) -> float:
        """How far the model is off beyond the noise, as a share of the warmth that the walk brought."""
        known = self.walk.counts > 0
        rise = (self.expected - self.baselines)[known]
        excess = ((self.walk.means - self.expected) ** 2 - self.walk.variances)[known]
        return math.sqrt(max(0.0, float(excess.sum())) / max(float((rise**2).sum()), 1e-300))

    def bad_sensors(self) -> list[str]:
        """Sensors whose residuals are too large, the worst first."""
        sums, spots = self.squares.sum(axis=0), (self.walk.counts > 0).sum(axis=0)
        chances = special.chdtrc(np.maximum(spots - _parameters(self.site), 1), sums) * len(sums)
        return [self.site.sensor_ids[k] for k in np.argsort(chances, kind="stable") if chances[k] < WRONG]

    def bad_rooms(self) -> list[str]:
        """Rooms in which the residuals are too large while someone stands there, the worst first."""
        share = self.freedom / max(int((self.walk.counts > 0).sum()), 1)
        chances: dict[str, float] = {}
        for zone in self.site.zones:
            inside = self.walk.shares[zone.places].sum(axis=0) > 0.5
            freedom = max(round(share * float((self.walk.counts[inside] > 0).sum())), 1)
            chances[zone.label] = float(special.chdtrc(freedom, float(self.squares[inside].sum()))) * len(
                self.site.zones
            )
        return [label for label in sorted(chances, key=lambda label: chances[label]) if chances[label] < WRONG]

    def misplaced(self) -> dict[str, tuple[float, float]]:
        """Sensors whose readings fit clearly better at another place nearby, with that place."""
        excess = max(1.0, float(self.squares.sum()) / self.freedom)
        places = {}
        for k, near in enumerate(self._plan.nearby_places(NEARBY)):
            squares = self._squares_at(k, near)
            best, stated = int(near[squares.argmin()]), self._plan.sensor_places[k]
            gain = float(squares[near == stated].min() - squares.min()) / excess
            at = self._plan.space.places
            far = float(np.hypot(*(at[best] - at[stated]))) > 1.5 * self._plan.rooms.cell
            if far and special.chdtrc(2, gain) * len(near) * len(self.gains) < WRONG:
                places[self.site.sensor_ids[k]] = (float(at[best][0]), float(at[best][1]))
        return places

    def swapped(self) -> list[tuple[str, str]]:
        """Pairs of sensors that each fit badly, and far better at the place of the other."""
        bad, ids = [self.site.sensor_ids.index(name) for name in self.bad_sensors()], self.site.sensor_ids
        squares = {k: self._squares_at(k, self._plan.sensor_places[bad]) for k in bad}
        pairs: list[tuple[float, int, int]] = []
        for i, a in enumerate(bad):
            for j, b in enumerate(bad[:i]):
                ratio = float((squares[a][j] + squares[b][i]) / (squares[a][i] + squares[b][j]))
                pairs += [(ratio, a, b)] if ratio < SWAPPED else []
        named: dict[int, int] = {}
        for _, a, b in sorted(pairs):
            if not {a, b} & {*named, *named.values()}:
                named[min(a, b)] = max(a, b)
        return [(ids[a], ids[b]) for a, b in named.items()]

    @property
    def drifts(self) -> bool:
        """Whether baselines that change linearly over the walk, which the site does not state, explain most misfit."""
        if self._drifting or not self.wrong:
            return False
        levels = _Levels.of(self.walk, 1 / self.walk.variances, drifting=True)
        found = _project(levels, self.expected, self.walk.means)
        return float((found.residuals**2).sum()) < DRIFTS * float(self.squares.sum())

    @property
    def _drifting(self) -> bool:
        return self.site.drift is not None

    @cached_property
    def _plan(self) -> FloorPlan:
        stated = Responses.of_site(self.site).plan
        return replace(stated, regime=Steady(self.reach.value), footprint=self.footprint.value, gain=1.0)

    def _squares_at(self, sensor: int, places: IntArray) -> FloatArray:
        """The squared residuals of a sensor's readings if it were at each of these places, with its best gain."""
        responses = self.walk.shares.T @ self._plan.rows(places).values.T
        readings, weights = self.walk.means[:, [sensor]], 1 / self.walk.variances[:, [sensor]]
        found = _project(_Levels.of(self.walk, weights, drifting=self._drifting), responses, readings)
        return np.asarray((found.residuals**2).sum(axis=0))

    @property
    def unseen(self) -> list[str]:
        """Sensors about whose gain the walk says next to nothing."""
        return [self.site.sensor_ids[k] for k in np.flatnonzero(~(self.gain_errors < 0.15))]

    @property
    def tolerance(self) -> Tolerance:
        """The tolerance that covers all models in the confidence region."""
        written = written_strength(self.site, self.strength)
        reaches = deviations(COVERED, len(self.gains) + 2, min(self.walk.freedom, self.freedom)) * self.gain_errors
        share = max(1.0, self.strength.value / written)  # someone stronger than the walker meets the same gains
        factors = share * np.concatenate([self.gains - reaches, self.gains + reaches])
        ends = (float(factors.min()), float(factors.max()))
        return covering(self.site, reach=self.reach, gains=ends, footprint=self.footprint, strength=written)


@dataclass(frozen=True, eq=False)
class _Levels:
    """The baselines that each sensor may have over a walk: constant, and with a stated drift linear in time.

    `columns` (k, S, m) are orthonormal under the `weights` (S, m); `middles` (k, m) are their values in the middle of
    the walk.
    """

    weights: FloatArray
    columns: FloatArray
    middles: FloatArray

    @classmethod
    def of(cls, walk: Walk, weights: FloatArray, *, drifting: bool) -> "_Levels":
        total = weights.sum(axis=0)
        constant = np.broadcast_to(1 / np.sqrt(total), weights.shape)
        if not drifting:
            return cls(weights, constant[None], constant[None, 0])
        times = walk.times[:, None]
        late = (weights * times).sum(axis=0) / total
        length = np.sqrt(np.maximum((weights * (times - late) ** 2).sum(axis=0), 1e-300))
        columns = np.stack([constant, (times - late) / length])
        return cls(weights, columns, np.stack([constant[0], -late / length]))

    def fit(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The best baselines for some readings: these baselines (S, m), and their values in the middle (m,)."""
        parts = [(self.weights * column * values).sum(axis=0) for column in self.columns]
        fitted = sum(column * part for column, part in zip(self.columns, parts, strict=True))
        return np.asarray(fitted), np.asarray(sum(at * part for at, part in zip(self.middles, parts, strict=True)))


@dataclass(frozen=True, eq=False)
class _Projection:
    """The least squares of each sensor's readings over its gain and baseline; residuals (S, m) are whitened."""

    gains: FloatArray
    baselines: FloatArray
    expected: FloatArray  # (S, m)
    residuals: FloatArray
    spread: FloatArray  # weighted sum of squares of `centred`, (m,)
    centred: FloatArray  # the response less what the baseline can imitate of it, (S, m)
    middle: FloatArray  # the baseline that does so, in the middle of the walk, (m,)


def _project(levels: _Levels, responses: FloatArray, readings: FloatArray) -> _Projection:
    (imitated, middle), (level, baseline) = levels.fit(responses), levels.fit(readings)
    centred, above = responses - imitated, readings - level
    spread = np.maximum((levels.weights * centred**2).sum(axis=0), 1e-300)
    gains = (levels.weights * centred * above).sum(axis=0) / spread
    residuals = np.sqrt(levels.weights) * (above - gains * centred)
    return _Projection(gains, baseline - gains * middle, level + gains * centred, residuals, spread, centred, middle)


def _levels(site: Site, walk: Walk) -> _Levels:
    return _Levels.of(walk, 1 / walk.variances, drifting=site.drift is not None)


def _parameters(site: Site) -> int:
    """Number of parameters of each sensor: its gain and its baseline, which may drift."""
    return 2 if site.drift is None else 3


def _freedom(site: Site, walk: Walk) -> int:
    return int((walk.counts > 0).sum()) - _parameters(site) * len(site.sensor_ids) - 2


def fit_walk(site: Site, walk: Walk) -> WalkFit:
    """Fit reach, footprint, strength, gains and baselines."""
    model = Responses.of_site(site)
    plan, sources, levels = model.plan, model.in_modes(walk.shares), _levels(site, walk)
    if _freedom(site, walk) <= 0:
        raise InputError("the walk has fewer spots than the model has parameters. Stand at more spots.")

    def responses(log_reach: float, square: float) -> FloatArray:
        return model.matrix(math.exp(log_reach), math.sqrt(max(square, 0.0)), sources).T

    def residuals(x: FloatArray) -> FloatArray:
        return _project(levels, responses(x[0], x[1]), walk.means).residuals.ravel()

    width, area = max(plan.rooms.size), max(plan.rooms.cell, plan.footprint) ** 2
    low, high = (math.log(plan.rooms.cell / 4), 0.0), (math.log(10 * width), (width / 2) ** 2)
    starts = [np.array([np.clip(math.log(model.reach * k), low[0], high[0]), plan.footprint**2]) for k in STARTS]
    start = min(starts, key=lambda x: float((residuals(x) ** 2).sum()))
    found = optimize.least_squares(residuals, start, bounds=(low, high), x_scale=(1.0, area), diff_step=[1e-5, 1e-5])
    log_reach, square = (float(value) for value in found.x)
    slopes = (
        (responses(log_reach + STEP, square) - responses(log_reach - STEP, square)) / (2 * STEP),
        (responses(log_reach, square + STEP * area) - responses(log_reach, square)) / (STEP * area),
    )
    return _fitted(site, walk, (log_reach, square), responses(log_reach, square), slopes)


def _fitted(
    site: Site, walk: Walk, at: tuple[float, float], responses: FloatArray, slopes: Sequence[FloatArray]
) -> WalkFit:
    """The estimates with their errors, from the linearised problem; `slopes` are those of the responses."""
    levels = _levels(site, walk)
    best = _project(levels, responses, walk.means)
    # the part of a slope that gain and baseline of the sensor can imitate tells nothing about reach and footprint
    parts = [_project(levels, best.centred, best.gains * slope) for slope in slopes]
    whitened = np.stack([part.residuals.ravel() for part in parts], axis=1)
    freedom = _freedom(site, walk)
    excess = max(1.0, float((best.residuals**2).sum()) / freedom)
    covariance = excess * linalg.pinvh(whitened.T @ whitened)
    imitated = np.stack([part.gains for part in parts])  # (2, m)
    shifts = np.stack([part.baselines for part in parts]) - imitated * best.middle
    own = excess / best.spread
    shares = best.spread / best.spread.sum()
    strength = float(shares @ best.gains)
    if not strength > 0:
        raise InputError("the sensors do not get warmer where the person stands. Check the spots and the times.")
    common = imitated @ shares
    strength_error = math.sqrt(float(shares**2 @ own + common @ covariance @ common))
    gain_errors = np.sqrt(own + np.einsum("ik,ij,jk->k", imitated, covariance, imitated))
    baseline_errors = np.sqrt(
        excess * (levels.middles**2).sum(axis=0)
        + best.middle**2 * own
        + np.einsum("ik,ij,jk->k", shifts, covariance, shifts)
    )
    errors, parameters, known = np.sqrt(np.diag(covariance)), len(own) + 2, min(walk.freedom, freedom)
    return WalkFit(
        site,
        walk,
        Fitted.of(at[0], float(errors[0]), parameters, known, back=math.exp),
        Fitted.of(at[1], float(errors[1]), parameters, known, back=lambda square: math.sqrt(max(square, 0.0))),
        Fitted.of(math.log(strength), strength_error / strength, parameters, known, back=math.exp),
        best.gains / strength,
        gain_errors / strength,
        best.baselines,
        baseline_errors,
        best.expected,
    )
