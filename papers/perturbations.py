"""What learners lose beyond the best expert: perturbed leaders, their noises, and bounds for private ones."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import integrate, special, stats

from cloakwork._checks import FloatArray
from cloakwork.series import Learner

FIRST, SECOND = "steady gap", "leader always wrong"


@dataclass(frozen=True)
class Noise:
    """A distribution by its quantiles, and its largest hazard rate, infinite if it has none.

    `scale` is the factor that makes the hazard 1; for a distribution without one, that of its tail near the others.
    """

    name: str
    quantile: Callable[[FloatArray], FloatArray]
    hazard: float
    scale: float

    def draw(self, rate: float, size: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Noise of hazard `rate`."""
        return np.asarray(self.quantile(rng.random(size)) * self.scale / rate)

    def largest(self, rate: float, experts: int) -> float:
        """E max of independent draws, one for each expert."""
        found, _ = integrate.quad(lambda v: float(self.quantile(np.array(v ** (1 / experts)))), 0, 1, limit=500)
        return float(found) * self.scale / rate


def noises(experts: int) -> tuple[Noise, ...]:
    """The noises of McMillan's Theorem 13.1, the Gaussian of Theorem 12.4, and the exponential of Kalai and Vempala."""
    alpha = math.log(experts)
    x = np.exp(np.linspace(-3.0, 4.0, 20_001))
    frechet = float((alpha * x ** (-1 - alpha) / np.expm1(np.minimum(x**-alpha, 700.0))).max())
    return (
        Noise("Gumbel", lambda u: -np.log(-np.log(u)), 1.0, 1.0),
        Noise("Laplace", lambda u: np.where(u < 0.5, np.log(2 * u), -np.log(2 - 2 * u)), 1.0, 1.0),
        Noise("exponential", lambda u: -np.log1p(-u), 1.0, 1.0),
        Noise("Frechet", lambda u: (-np.log(u)) ** (-1 / alpha), frechet, frechet),
        Noise("Pareto", lambda u: (1 - u) ** (-1 / alpha), alpha, alpha),
        Noise("Weibull, from 1 on", lambda u: (1 - np.log1p(-u)) ** 2, 0.5, 0.5),
        Noise("Gaussian", special.ndtri, math.inf, math.sqrt(2)),
    )


def game(kind: str, rounds: int, experts: int, rng: np.random.Generator) -> FloatArray:
    """Losses, shape (rounds, experts): one expert a little better, or two that take turns so that the leader loses."""
    if kind == FIRST:
        chances = np.full(experts, 0.4)
        chances[0] = 0.3
        return np.asarray((rng.random((rounds, experts)) < chances).astype(float))
    losses = np.ones((rounds, experts))
    losses[:, :2] = 0.0
    losses[0, 0], losses[1::2, 1], losses[2::2, 0] = 0.5, 1.0, 1.0
    return losses


def regrets(losses: FloatArray, noise: FloatArray) -> FloatArray:
    """The regret of argmax(-L + Z) for each row of `noise`, which is used in all rounds."""
    before = np.vstack([np.zeros(losses.shape[1]), np.cumsum(losses, axis=0)])[:-1]
    plays = (noise[:, None, :] - before).argmax(axis=2)
    return np.asarray(losses[np.arange(len(losses)), plays].sum(axis=1) - losses.sum(axis=0).min())


def hedge(losses: FloatArray, rate: float) -> float:
    """The exact regret of exponential weights, which Gumbel noise equals."""
    before = np.vstack([np.zeros(losses.shape[1]), np.cumsum(losses, axis=0)])[:-1]
    return float((special.softmax(-rate * before, axis=1) * losses).sum() - losses.sum(axis=0).min())


def reused_advantage(epsilon: float, turns: int) -> tuple[float, float]:
    """The advantage in telling a changed loss, from one play and from all 4 `turns` plays together; exact.

    Two experts with one Gumbel vector: the difference of their losses sweeps up and down past all values that the
    difference of the noises is likely to have, and one loss at the top is changed by 1.
    """
    steps = np.concatenate([[0.5 - turns], np.ones(2 * turns), -np.ones(2 * turns)])
    paths = []
    for change in (0.0, 1.0):
        changed = steps.copy()
        changed[2 * turns + 1] -= change
        paths.append(np.cumsum(changed)[:-1])
    ends = np.unique(np.concatenate([-path for path in paths]))
    middles = np.concatenate([[ends[0] - 1], (ends[1:] + ends[:-1]) / 2, [ends[-1] + 1]])
    masses = np.diff(stats.logistic.cdf(np.concatenate([[-np.inf], ends, [np.inf]]) * epsilon))
    seen: dict[bytes, FloatArray] = {}
    single = np.zeros((2, len(steps) - 1))
    for middle, mass in zip(middles, masses, strict=True):
        for which, path in enumerate(paths):
            plays = path + middle < 0
            seen.setdefault(plays.tobytes(), np.zeros(2))[which] += mass
            single[which] += mass * plays
    together = 0.5 * sum(abs(float(pair[0] - pair[1])) for pair in seen.values())
    return float(np.abs(single[0] - single[1]).max()), together


def laplace_ensemble(size: int, chains: int, sweeps: int, rng: np.random.Generator) -> FloatArray:
    """Eigenvalues of density prod |x_i - x_j| e^(-|x_1| - ...), by Metropolis' rule: shape (samples, size)."""
    x = rng.laplace(size=(chains, size)) * size / 2
    kept = []
    for sweep in range(sweeps):
        for i in range(size):
            new = x[:, i] + rng.standard_normal(chains) * max(1.5, size / 5)
            others = np.delete(x, i, axis=1)
            gain = np.log(np.abs(new[:, None] - others) / np.abs(x[:, i, None] - others)).sum(axis=1)
            better = np.log(rng.random(chains)) < gain + np.abs(x[:, i]) - np.abs(new)
            x[better, i] = new[better]
        if sweep >= sweeps // 3 and sweep % 5 == 0:
            kept.append(np.sort(x, axis=1)[:, ::-1].copy())
    return np.stack(kept, axis=1)  # (chains, times, size): chains are independent


def orthogonal_ensemble(size: int, draws: int, rng: np.random.Generator) -> FloatArray:
    """Symmetric Gaussian matrices that hide a a', ||a|| = 1, with mu = 1: shape (draws, size, size)."""
    entries = rng.standard_normal((draws, size, size))
    return np.asarray((entries + np.swapaxes(entries, 1, 2)) / 2)


def in_random_frames(values: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Symmetric matrices with these eigenvalues, shape (draws, size), in uniformly random frames."""
    frames, upper = np.linalg.qr(rng.standard_normal((*values.shape, values.shape[1])))
    frames = frames * np.sign(np.einsum("nii->ni", upper))[:, None, :]
    return np.asarray(np.einsum("nij,nj,nkj->nik", frames, values, frames))


def component_regrets(x: FloatArray, kept: int, noise: FloatArray) -> FloatArray:
    """The regret of projecting onto the leading `kept` directions of the past, plus each matrix of noise."""
    outer = np.einsum("ti,tj->tij", x, x)
    total = outer.sum(axis=0)
    past = np.cumsum(outer, axis=0) - outer
    best = len(x) - np.linalg.eigvalsh(total)[-kept:].sum()
    found = []
    for matrix in noise:
        leading = np.linalg.eigh(past + matrix)[1][:, :, -kept:]
        found.append(len(x) - float((np.einsum("ti,tik->tk", x, leading) ** 2).sum()) - best)
    return np.array(found)


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
    above = used * stats.norm.pdf(x / used) - x * stats.norm.sf(x / used)
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
    changes = 1 - 2 * stats.norm.sf(farthest / (2 * np.sqrt(noisy)))
    return float(changes.sum() + 1 + horizon * rounding / math.sqrt(stream.noise.variance))
