"""Physics fitted to a calibration walk."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg, optimize, special

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError
from cloakwork.fitting.fitted import COVERED, Fitted, covering, deviations, written_strength
from cloakwork.fitting.regression import Baselines, Regression
from cloakwork.fitting.responses import responses_to, steady_plan
from cloakwork.fitting.walk import Walk
from cloakwork.physics import FloorPlan, Steady, Tolerance
from cloakwork.site import Site

STARTS = np.geomspace(1 / 4, 4, 7)  # times the stated reach
STEP = 0.01  # of a logarithm, for slopes
WRONG = 0.001  # a model that fits with less probability is called wrong
SWAPPED = 0.25  # of the squared residuals remain at most when two swapped sensors change places
DRIFTS = 0.5  # of the squared residuals remain at most when baselines that drift explain them
NEARBY = 2.0  # metres around a sensor in which it may really be
UNKNOWN = 0.15  # relative error of a gain above which the walk says next to nothing about it


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
    def map_errors(self) -> FloatArray:
        """How far readings stray from the site as it would be written, beyond their noise, where someone stands, (m,).

        The root mean square over the spots; the site has the same gain for all sensors, so their gains count as errors.
        """
        there = (self.walk.counts > 0) & ~np.isnan(self.walk.at[:, :1])
        misses = self.walk.means - self.expected + (self.expected - self.baselines) * (1 - 1 / self.gains)
        squares, noise = (np.where(there, each, 0.0).sum(axis=0) for each in (misses**2, self.walk.variances))
        spots = there.sum(axis=0)
        spare = np.maximum(spots - _parameters(self.site), 1)
        return np.asarray(np.sqrt(np.maximum(squares / spare - noise / np.maximum(spots, 1), 0.0)))

    @property
    def unseen(self) -> list[str]:
        """Sensors about whose gain the walk says next to nothing."""
        return [self.site.sensor_ids[k] for k in np.flatnonzero(~(self.gain_errors < UNKNOWN))]

    @property
    def drifts(self) -> bool:
        """Whether baselines that change linearly over the walk, which the site does not state, explain most misfit."""
        if self.site.drift is not None or not self.wrong:
            return False
        drifting = Baselines.of(1 / self.walk.variances, self.walk.times, drifting=True)
        residuals = drifting.regress(self.walk.means, self.expected).residuals
        return float((residuals**2).sum()) < DRIFTS * float(self.squares.sum())

    def bad_sensors(self) -> list[str]:
        """Return the sensors whose residuals are too large, the worst first."""
        spots = (self.walk.counts > 0).sum(axis=0) - _parameters(self.site)
        chances = special.chdtrc(np.maximum(spots, 1), self.squares.sum(axis=0))
        return _unlikely(dict(zip(self.site.sensor_ids, chances.tolist(), strict=True)))

    def bad_rooms(self) -> list[str]:
        """Return the rooms in which the residuals are too large while someone stands there, the worst first."""
        known, chances = self.walk.counts > 0, dict[str, float]()
        for zone in self.site.zones:
            inside = self.walk.shares[zone.places].sum(axis=0) > 0.5
            freedom = max(round(self.freedom / known.sum() * float(known[inside].sum())), 1)
            chances[zone.label] = float(special.chdtrc(freedom, float(self.squares[inside].sum())))
        return _unlikely(chances)

    def misplaced(self) -> dict[str, tuple[float, float]]:
        """Return the sensors whose readings fit clearly better at another place nearby, with that place."""
        excess, places = max(1.0, float(self.squares.sum()) / self.freedom), {}
        at, cell = self._plan.space.places, self._plan.rooms.cell
        for k, near in enumerate(self._plan.nearby_places(NEARBY)):
            squares, stated = self._squares_at(k, near), self._plan.sensor_places[k]
            best = int(near[squares.argmin()])
            gain = float(squares[near == stated].min() - squares.min()) / excess
            far = float(np.hypot(*(at[best] - at[stated]))) > 1.5 * cell
            if far and special.chdtrc(2, gain) * len(near) * len(self.gains) < WRONG:
                places[self.site.sensor_ids[k]] = (float(at[best][0]), float(at[best][1]))
        return places

    def swapped(self) -> list[tuple[str, str]]:
        """Return pairs of sensors that each fit badly, and far better at the place of the other."""
        ids, bad = self.site.sensor_ids, [self.site.sensor_ids.index(name) for name in self.bad_sensors()]
        squares = np.array([self._squares_at(k, self._plan.sensor_places[bad]) for k in bad]).reshape(
            len(bad), len(bad)
        )
        own = squares.diagonal()
        ratios = (squares + squares.T) / np.maximum(own[:, None] + own, 1e-300)
        pairs = list[tuple[str, str]]()
        for i, j in sorted(np.argwhere(np.triu(ratios < SWAPPED, 1)).tolist(), key=lambda pair: ratios[tuple(pair)]):
            names = tuple(ids[k] for k in sorted((bad[i], bad[j])))
            if not {*names} & {name for pair in pairs for name in pair}:
                pairs.append((names[0], names[1]))
        return pairs

    @property
    def tolerance(self) -> Tolerance:
        """The tolerance that covers all models in the confidence region."""
        strength = written_strength(self.site, self.strength)
        errors = deviations(COVERED, len(self.gains) + 2, min(self.walk.freedom, self.freedom)) * self.gain_errors
        share = max(1.0, self.strength.value / strength)  # someone stronger than the walker meets the same gains
        ends = share * float((self.gains - errors).min()), share * float((self.gains + errors).max())
        return covering(self.site, reach=self.reach, gains=ends, footprint=self.footprint, strength=strength)

    @cached_property
    def _plan(self) -> FloorPlan:
        regime = Steady(self.reach.value)
        return replace(steady_plan(self.site)[0], regime=regime, footprint=self.footprint.value, gain=1.0)

    def _squares_at(self, sensor: int, places: IntArray) -> FloatArray:
        """Return the squared residuals of a sensor's readings at each of these places, with its best gain."""
        responses = self.walk.shares.T @ self._plan.rows(places).values.T
        weights, drifting = 1 / self.walk.variances[:, [sensor]], self.site.drift is not None
        baselines = Baselines.of(weights, self.walk.times, drifting=drifting)
        found = baselines.regress(self.walk.means[:, [sensor]], responses)
        return np.asarray((found.residuals**2).sum(axis=0))


def fit_walk(site: Site, walk: Walk) -> WalkFit:
    """Fit reach, footprint, strength, gains and baselines."""
    plan, stated = steady_plan(site)
    freedom = _freedom(site, walk)
    if freedom <= 0:
        raise InputError("the walk has fewer spots than the model has parameters. Stand at more spots.")
    baselines = Baselines.of(1 / walk.variances, walk.times, drifting=site.drift is not None)
    responses = responses_to(plan, walk.shares)

    def at(log_reach: float, square: float) -> FloatArray:
        return responses(math.exp(log_reach), math.sqrt(max(square, 0.0)))

    def residuals(x: FloatArray) -> FloatArray:
        return baselines.regress(walk.means, at(*x)).residuals.ravel()

    width, area = max(plan.rooms.size), max(plan.rooms.cell, plan.footprint) ** 2
    low, high = (math.log(plan.rooms.cell / 4), 0.0), (math.log(10 * width), (width / 2) ** 2)
    starts = [np.array([np.clip(math.log(stated * k), low[0], high[0]), plan.footprint**2]) for k in STARTS]
    start = min(starts, key=lambda x: float((residuals(x) ** 2).sum()))
    found = optimize.least_squares(residuals, start, bounds=(low, high), x_scale=(1.0, area), diff_step=[1e-5, 1e-5])
    log_reach, square = (float(value) for value in found.x)
    best = baselines.regress(walk.means, at(log_reach, square))
    # the part of a slope that gain and baseline of the sensor can imitate tells nothing about reach and footprint
    slopes = (
        (at(log_reach + STEP, square) - at(log_reach - STEP, square)) / (2 * STEP),
        (at(log_reach, square + STEP * area) - at(log_reach, square)) / (STEP * area),
    )
    parts = [baselines.regress(best.gains * slope, best.centred) for slope in slopes]
    excess = max(1.0, float((best.residuals**2).sum()) / freedom)
    return _with_errors(site, walk, log_reach, square, best, parts, excess, baselines)


def _with_errors(
    site: Site,
    walk: Walk,
    log_reach: float,
    square: float,
    best: Regression,
    parts: list[Regression],
    excess: float,
    baselines: Baselines,
) -> WalkFit:
    """Return the estimates with their errors, from the linearised problem; `parts` regress the slopes."""
    whitened = np.stack([part.residuals.ravel() for part in parts], axis=1)
    covariance = np.asarray(excess * linalg.pinvh(whitened.T @ whitened), dtype=np.float64)
    gains = np.stack([part.gains for part in parts])  # (2, m): how the gains follow reach and footprint
    shifts = np.stack([part.baselines for part in parts]) - gains * best.imitated
    own, shares = excess / best.spread, best.spread / best.spread.sum()
    strength = float(shares @ best.gains)
    if not strength > 0:
        raise InputError("the sensors do not get warmer where the person stands. Check the spots and the times.")
    common = gains @ shares
    strength_error = math.sqrt(float(shares**2 @ own + common @ covariance @ common))
    gain_errors = np.sqrt(own + _squares(gains, covariance))
    level = excess * (baselines.middles**2).sum(axis=0)
    baseline_errors = np.sqrt(level + best.imitated**2 * own + _squares(shifts, covariance))
    reach_error, square_error = np.sqrt(np.diag(covariance)).tolist()
    parameters, known = len(own) + 2, min(walk.freedom, _freedom(site, walk))
    return WalkFit(
        site,
        walk,
        Fitted.of(log_reach, reach_error, parameters, known, back=_exp),
        Fitted.of(square, square_error, parameters, known, back=lambda square: math.sqrt(max(square, 0.0))),
        Fitted.of(math.log(strength), strength_error / strength, parameters, known, back=_exp),
        best.gains / strength,
        gain_errors / strength,
        best.baselines,
        baseline_errors,
        best.expected,
    )


def _exp(value: float) -> float:
    """Return e^value, infinite where it overflows: the walk then leaves the parameter open."""
    return math.exp(value) if value < 700 else math.inf


def _squares(moves: FloatArray, covariance: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ik,ij,jk->k", moves, covariance, moves))


def _parameters(site: Site) -> int:
    """Return the number of parameters of each sensor: its gain and its baseline, which may drift."""
    return 2 if site.drift is None else 3


def _freedom(site: Site, walk: Walk) -> int:
    return int((walk.counts > 0).sum()) - _parameters(site) * len(site.sensor_ids) - 2


def _unlikely(chances: dict[str, float]) -> list[str]:
    """Return the names whose residuals are improbable although there are so many names, the worst first."""
    return [name for name in sorted(chances, key=lambda name: chances[name]) if chances[name] * len(chances) < WRONG]
