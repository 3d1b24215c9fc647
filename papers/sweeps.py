"""Sweeps on a line: one quantity varies, all methods see the same random numbers; and how sweeps are drawn."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cloakwork._checks import FloatArray
from cloakwork.accuracy import cramer_rao
from cloakwork.physics import HeatLine, heat_kernel
from papers.calibration import Calibration
from papers.drawing import FAINT, INK, SERIES, curve, log_axes
from papers.experiment import stream
from papers.rows import Mean, Row, pick
from papers.statistics import fit_slope
from papers.trials import PAPERS_TRIALS, PLACES, Method, Setting, score, try_method, uniform_errors

LIMIT, PAPERS_LIMIT = "Cramer-Rao bound (unbiased methods)", "Cramer-Rao bound, papers' noise"
FLOOR, GUESS = "lower bound for any method", "uniform map"
RIVALS = (Method.PAPERS, Method.POSTERIOR)
SCENES = 100  # sets of several sources, for their Cramer-Rao bound
LOOKS: dict[str, Any] = {
    Method.PAPERS: {"color": SERIES[1], "marker": "s", "markersize": 4},
    Method.PURSUIT: {"color": SERIES[3], "marker": "^", "markersize": 4},
    Method.POSTERIOR: {"color": SERIES[0], "marker": "o", "markersize": 4},
}
BAND = f"95 % of means of {PAPERS_TRIALS} trials"
BOUNDS: dict[str, Any] = {  # what methods are compared with: the column, and how it is drawn
    "limit": {"label": LIMIT, "color": INK, "linestyle": "--", "linewidth": 1.2},
    "papers_limit": {"label": PAPERS_LIMIT, "color": SERIES[1], "linestyle": "--", "linewidth": 1.2},
    "floor": {"label": FLOOR, "color": INK, "linestyle": ":", "linewidth": 1},
    "guess": {"label": GUESS, "color": FAINT, "linewidth": 1},
}
LEGEND = (*Method, BAND, LIMIT, PAPERS_LIMIT, FLOOR, GUESS)

BEST_SEPARATION = 1.5036  # maximises x Phi(-x/2)
QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75)  # of slopes, for which distances are tried
DOWN = 1 - 1e-12


def of(point: Row, method: Method) -> Row:
    """The score of one method at a point."""
    score: Row = pick(point.scores, method=method)
    return score


def tried(points: Sequence[Row], method: Method) -> list[Row]:
    """The points where a method was tried."""
    return [point for point in points if any(one.method == method for one in point.scores)]


def slope(points: Sequence[Row], method: Method) -> Mean:
    """The exponent of a method's error."""
    own = tried(points, method)
    return fit_slope([point.x for point in own], [of(point, method).emd for point in own])


def bound_slope(points: Sequence[Row], bound: str = "limit") -> Mean:
    """The exponent of a bound."""
    known = [point for point in points if getattr(point, bound)]
    return fit_slope([point.x for point in known], [getattr(point, bound) for point in known])


def run_sweep(name: str, settings: Mapping[float, Setting], trials: Mapping[Method, int], key: tuple[int, ...]) -> Row:
    """Try methods on settings; `trials` gives the number of frames of each method."""
    with threadpool_limits(1, user_api="blas"):  # the matrices are small: threads would only wait for each other
        return Row(name=name, points=tuple(_point(x, setting, trials, key) for x, setting in settings.items()))


def _point(x: float, setting: Setting, trials: Mapping[Method, int], key: tuple[int, ...]) -> Row:
    """Try methods on one setting. The same key gives all methods the same places, and the same noise up to scale.

    `limit` is the mean Cramer-Rao bound of unbiased methods, `floor` Le Cam's bound for any method, averaged over the
    places. Both are for the exact noise; None where they do not apply. `papers_limit` is the Cramer-Rao bound for the
    papers' noise, where that differs. `guess` is the mean error of the uniform map, `gain` the papers' error divided by
    ours.
    """
    truth = setting.truth(max(trials.values()), stream(*key, PLACES))
    found = {method: try_method(setting, method, truth[:count], key) for method, count in trials.items()}
    papers, exact = (setting.noise(one) for one in (Calibration.PAPER, Calibration.EXACT))
    limit = limit_of(setting, exact, truth)
    return Row(
        x=x,
        scores=tuple(score(method, trial) for method, trial in found.items()),
        limit=limit,
        floor=floor_of(setting, exact),
        guess=float(uniform_errors(truth).mean()),
        # for one source it is proportional to the noise
        papers_limit=limit * papers / exact if papers != exact and setting.count == 1 else None,
        gain=Mean.ratio(*(found[one].distances.emd for one in RIVALS)) if set(RIVALS) <= set(found) else None,
    )


def limit_of(setting: Setting, sigma: float, truth: FloatArray) -> float:
    """The mean Cramer-Rao bound: of the given sources, of one source over all places, or of several over true maps.

    The bound of several sources that are close together has no limit: in each scene it counts as at most the error of
    the uniform map. The mean of that error over all maps is known, so the bound is estimated as a share of it.
    """
    along = setting.line.space.places[:, 0]
    if setting.at:
        return cramer_rao(setting.line, setting.at, sigma).expected_emd
    if setting.count == 1:
        return float(np.mean([cramer_rao(setting.line, [x], sigma).expected_emd for x in along.tolist()]))
    guesses = uniform_errors(truth)
    limits = [cramer_rao(setting.line, along[scene > 0].tolist(), sigma).expected_emd for scene in truth[:SCENES]]
    least = np.minimum(limits, guesses[:SCENES])
    return float(least.mean() / guesses[:SCENES].mean() * guesses.mean())


def floor_of(setting: Setting, sigma: float) -> float | None:
    """Le Cam's bound for any method, averaged over the places of one source that may be anywhere."""
    if setting.at or setting.count > 1:
        return None
    return le_cam(HeatLine(setting.n, setting.m, setting.T, placement="anywhere"), sigma)


def le_cam(line: HeatLine, sigma: float) -> float:
    """Return a distance that no method's mean error is below, for a lone unit source that may be anywhere on a line.

    The mean is over the cells of the line and over the noise `sigma` of all sensors. The bound is rounded down.

    Notes
    -----
    For every estimator f^ and any two positions x, y (Le Cam; Gilbert and McMillan, Theorem 15, has only the rate) the
    mean of E[EMD(e_x, f^)] and E[EMD(e_y, f^)] is at least

        d(x, y) Phi(-||(M_x - M_y) / sigma|| / 2)

    since the two distances add up to d(x, y) or more, and the smaller of two normal densities has the integral
    2 Phi(-separation/2). Each cell is compared with the one some steps ahead, with weights c = 1/(the larger number of
    pairs that either is in): mean of r_i >= (1/n) sum over pairs of c (r_i + r_j). Or each cell is compared with the
    position a distance of less than a step before it, which bounds the mean over both.

    >>> round(le_cam(HeatLine(n=100, m=50, T=0.05), sigma=0.15), 4)
    0.0042
    """
    places, step = line.space.places[:, 0], line.length / line.places
    columns, slopes = _columns(line, sigma, places)
    doubt = math.sqrt(2) * line.error / sigma

    def errors(distance: float, apart: FloatArray) -> FloatArray:
        separations = (np.linalg.norm(apart, axis=1) + doubt) * (1 + 1e-12)
        return np.asarray(distance * special.ndtr(-separations / 2))

    best, steps = 0.0, 1
    while steps < line.places:
        pairs = np.zeros(line.places)
        pairs[steps:] += 1
        pairs[:-steps] += 1
        each = np.maximum(pairs[steps:], pairs[:-steps])
        average = 2 / line.places * float((errors(steps * step, columns[steps:] - columns[:-steps]) / each).sum())
        best = max(best, average)
        if average < best / 4:
            break
        steps += max(1, steps // 3)
    steepness = np.quantile(np.linalg.norm(slopes, axis=1), QUANTILES)
    for distance in np.unique(BEST_SEPARATION / np.maximum(steepness, BEST_SEPARATION / step)).tolist():
        best = max(best, float(errors(distance, columns - _columns(line, sigma, places - distance)[0]).mean()))
    return best * DOWN


def _columns(line: HeatLine, sigma: float, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return readings of unit sources and their change per unit of distance, (k, m) each, in units of the noise."""
    offsets = positions[:, None] - line.sensor_positions[:, 0]
    columns = line.gain / sigma * heat_kernel(offsets, line.T)
    return columns, -offsets / (2 * line.T) * columns


def draw_sweep(axes: Any, points: Sequence[Row]) -> None:
    """Draw mean errors and bounds against x, both axes logarithmic.

    The band around the papers' error shows what as few trials as theirs give. Bounds are drawn up to the uniform map.
    """
    for method in Method:
        own = tried(points, method)
        scores, xs = [of(point, method) for point in own], [point.x for point in own]
        if method is Method.PAPERS and all(one.band for one in scores):
            low, high = ([getattr(one.band, end) for one in scores] for end in ("low", "high"))
            axes.fill_between(xs, low, high, color=LOOKS[method]["color"], alpha=0.15, linewidth=0, label=BAND)
        curve(axes, xs, [one.emd for one in scores], label=str(method), capsize=0, **LOOKS[method])
    for name, look in BOUNDS.items():
        known = [(point.x, min(value, point.guess)) for point in points if (value := getattr(point, name))]
        if len(known) > 1:
            axes.plot(*zip(*known, strict=True), **look)
    log_axes(axes)
