"""Bounded least squares over the positions and weights of point sources, many frames at once."""

from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray
from papers.gallery.points import PointModel, Points

ROUNDS = 200
SETTLED = 1e-9  # a squared misfit that falls by less than this share is settled
DAMPING = 1e-3  # at the start
LEAST, MOST = 1e-9, 1e10  # damping that keeps a step defined where sources coincide, and at which it gives up


@dataclass(frozen=True)
class Strength:
    """The least and largest weight of a source."""

    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether all weights are known."""
        return self.low == self.high


def descend(model: PointModel, data: FloatArray, start: Points, strength: Strength) -> Points:
    """Move positions and weights downhill until the misfit is settled in every frame; it never grows.

    Notes
    -----
    Levenberg and Marquardt's method on ||b - sum_k w_k c(x_k)||^2 with x_k on the line and w_k within its bounds: a
    parameter at a bound that is pushed outward is held for the step, the others are clipped to theirs.
    """
    points, misfit = start, model.misfit(data, start)
    damping = np.full(len(start), DAMPING)
    active = np.arange(len(start))
    for _ in range(ROUNDS):
        if not len(active):
            break
        tried = _step(model, data[active], points[active], strength, damping[active])
        new = model.misfit(data[active], tried)
        gained = misfit[active] - new
        good = gained > 0
        points = points.replaced(active[good], tried[good])
        settled = good & (gained <= SETTLED * misfit[active])
        misfit[active[good]] = new[good]
        damping[active] = np.maximum(damping[active] * np.where(good, 0.2, 5.0), LEAST)
        active = active[~settled & (damping[active] < MOST)]
    return points


def _step(model: PointModel, data: FloatArray, points: Points, strength: Strength, damping: FloatArray) -> Points:
    """One damped step for each frame, clipped to the bounds."""
    k = points.number
    values, low, high = points.at, np.full(k, model.ends[0]), np.full(k, model.ends[1])
    columns = model.columns(points.at)
    left = data - np.einsum("fk,fkr->fr", points.weight, columns)
    slopes = points.weight[:, :, None] * model.slopes(points.at)
    if not strength.known:
        values = np.concatenate([values, points.weight], axis=1)
        low, high = np.append(low, np.full(k, strength.low)), np.append(high, np.full(k, strength.high))
        slopes = np.concatenate([slopes, columns], axis=1)
    downhill = np.einsum("fpr,fr->fp", slopes, left)
    held = ((values <= low) & (downhill < 0)) | ((values >= high) & (downhill > 0))
    slopes[held] = 0.0
    downhill[held] = 0.0
    moved = np.clip(values + _damped(slopes, downhill, damping), low, high)
    return Points(moved[:, :k], points.weight if strength.known else moved[:, k:])


def _damped(slopes: FloatArray, downhill: FloatArray, damping: FloatArray) -> FloatArray:
    """Solve (J J' + damping diag(J J')) step = J r for each frame; parameters without effect stay."""
    normal = np.einsum("fpr,fqr->fpq", slopes, slopes)
    diagonal = np.einsum("fpp->fp", normal)
    diagonal += damping[:, None] * diagonal + 1e-12 + (diagonal <= 0)
    return np.asarray(np.linalg.solve(normal, downhill[:, :, None])[:, :, 0])
