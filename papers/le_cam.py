"""A lower bound on the mean error of every method on a line: Le Cam's comparison of two places."""

import math

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray
from cloakwork.physics import HeatLine, heat_kernel

BEST_SEPARATION = 1.5036  # maximises x Phi(-x/2)
QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75)  # of slopes, for which distances are tried
DOWN = 1 - 1e-12


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
