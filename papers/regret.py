"""Bounds on what a learner loses beyond the best expert; docs/science/learning.md derives them."""

import math

import numpy as np
from scipy.stats import norm

from cloakwork._checks import FloatArray
from cloakwork.series import Learner


def regret_bound(learner: Learner, best_loss: float | None = None) -> float:
    """Bound the expected loss of all rounds of a new learner beyond that of the best expert.

    `best_loss` is what the best expert is known to lose at most, if anything is. Counts must not depend on plays.

    Notes
    -----
    With f = rate / (1 - e^-rate) and M >= E max_i of the noise in the totals at the end, the loss is at most
    f (best + ln N / rate + M), and at most best + ln N / rate + M + rate horizon / 8. The leader loses at most best +
    M + how much each round may change the distribution of its plays.
    """
    experts, horizon, rate = learner.experts, learner.horizon, learner.rate
    variances = learner.streams[0].variances
    widths = np.sqrt((experts.basis**2).sum(axis=1))
    slack = 2 * _rounding(learner) * horizon + 1e-6 * horizon
    start_up = math.log(len(experts.names)) / rate + largest_noise(widths * math.sqrt(variances[-1]))
    bounds = [float(horizon), start_up + rate * horizon / 8 + slack]
    if math.isinf(rate):
        bounds.append(start_up + _change_of_plays(learner) + slack)
    elif best_loss is not None:
        factor = rate / -math.expm1(-rate)
        bounds.append(factor * (best_loss + start_up + slack) - best_loss)
    return min(bounds)


def largest_noise(deviations: FloatArray) -> float:
    """An upper bound on E max_i X_i for normal variables of these standard deviations, whatever their correlations.

    Notes
    -----
    max_i X_i <= x + sum (X_i - x)_+ for every x; the best of some x is taken.
    """
    used = deviations[deviations > 0]
    x = np.linspace(0.0, 4.0, 81)[:, None] * used.max()
    above = used * norm.pdf(x / used) - x * norm.sf(x / used)
    return float((x[:, 0] + above.sum(axis=1)).min())


def _rounding(learner: Learner) -> float:
    """How far the losses that follow from whole steps are from the true ones."""
    table = learner.experts.table
    effect = np.moveaxis(table - table[:, :, :1], 1, 2)
    effect = effect - effect.mean(axis=2, keepdims=True)
    return float(np.abs(effect - learner.experts.steps @ learner.experts.basis.T).max())


def _change_of_plays(learner: Learner) -> float:
    """By how much the rounds together may change the leader's plays, in total variation; the first one costs 1."""
    experts, horizon = learner.experts, learner.horizon
    stream = learner.streams[0]
    public = (experts.table[:, :, 0] - experts.table[:, :, 0].mean(axis=1, keepdims=True)).T
    free = np.linalg.lstsq(experts.basis, public)[0]
    if np.abs(experts.basis @ free - public).max() > 1e-9:
        return math.inf  # some losses for a count of 0 have no noise
    farthest = float(np.linalg.norm(experts.steps + free.T[:, None, :], axis=2).max())
    noisy = stream.variances[:-1]
    rounding = 2 * np.abs(experts.basis).sum(axis=1).max() * math.sqrt(horizon * stream.variances[-1])
    changes = 1 - 2 * norm.sf(farthest / (2 * np.sqrt(noisy)))
    return float(changes.sum() + 1 + horizon * rounding / math.sqrt(stream.noise.variance))
