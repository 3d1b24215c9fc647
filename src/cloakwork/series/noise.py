"""The noise on a release, and the claim it meets."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cloakwork._checks import IntArray
from cloakwork.privacy import (
    SERVER_TABLES,
    NoiseTable,
    Profile,
    WordSource,
    allowed_mu,
    largest_mu,
    noise_from_words,
    noise_of_frames,
    noise_table,
    table_ratio,
)
from cloakwork.series.strategies import Strategy, norm_above

_FEW = 1 << 12  # words, far fewer than the sampler asks for at a time


@dataclass(frozen=True)
class Claim:
    """(epsilon, delta) for a change of up to `units` steps in all, in `series` series that are released together."""

    epsilon: float
    delta: float
    units: int
    series: int = 1


class Noise(Protocol):
    """Whole-number noise, independent from entry to entry."""

    @property
    def variance(self) -> float:
        """Of one draw."""

    @property
    def ideal(self) -> float:
        """What unrounded noise would need for a strategy of norm 1 and a change of one unit."""

    @property
    def shift(self) -> float:
        """How far those who are protected move the release at the most, in its steps: what the noise was made for."""

    def draw(self, count: int, words: WordSource) -> IntArray:
        """`count` draws, in steps of the release."""

    def delta(self, epsilon: float) -> float:
        """The least delta that the release meets at `epsilon`, rounded up."""


def table_loss(epsilon: float, *, draws: int, error: float) -> float:
    """What so many draws from tables that are off by `error` add to delta, rounded up."""
    return math.exp(min(math.log(error * draws) + float(np.logaddexp(0.0, epsilon)), 0.0)) * (1 + 1e-12)


def drawn(table: NoiseTable, count: int, words: WordSource) -> IntArray:
    """`count` draws from one table; the same ones from the same words, whether they are few or many."""
    levels = len(table.levels)
    if count * levels > _FEW:
        return noise_of_frames([table], count, words)[:, 0]
    return noise_from_words(table, words(count * levels).reshape(count, levels, 2))  # a push waits for this


@dataclass(frozen=True, eq=False)
class GaussianNoise:
    """Rounded Gaussian noise from exact tables; `mu` is the largest shift of the release in standard deviations.

    Notes
    -----
    The release is whole, so w * x + round(N) equals round(w * x + N): post-processing of the Gaussian mechanism, whose
    sensitivity is units ||w||_2 exactly, since a change of one unit anywhere moves the release by a shifted w, and all
    changes of up to so many units are mixtures of those.
    """

    table: NoiseTable
    mu: float
    draws: int
    ideal: float

    @classmethod
    def meeting(cls, strategy: Strategy, claim: Claim) -> "GaussianNoise":
        """The least noise with which a strategy meets a claim."""
        draws = strategy.length * claim.series
        mu = allowed_mu(claim.epsilon, claim.delta, draws=draws, error=SERVER_TABLES.error)
        shift = claim.units * norm_above(strategy.weights) * (1 + 1e-15)
        table = noise_table(table_ratio(shift / mu), size=SERVER_TABLES)
        return cls(table, shift / table.ratio, draws, largest_mu(claim.epsilon, claim.delta) ** -2)

    @property
    def variance(self) -> float:
        """Of one draw, with what rounding adds."""
        return self.table.ratio**2 + 1 / 12

    @property
    def shift(self) -> float:
        return self.mu * self.table.ratio

    def draw(self, count: int, words: WordSource) -> IntArray:
        return drawn(self.table, count, words)

    def delta(self, epsilon: float) -> float:
        loss = table_loss(epsilon, draws=self.draws, error=self.table.error)
        return min(1.0, Profile(self.mu).delta(epsilon) + loss)
