"""Follow the perturbed leader: its noises and their hazards, games against it, and what reused noise reveals."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import integrate, special, stats

from cloakwork._checks import FloatArray

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
