"""The noise of a release, and the claim that it meets."""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtri

from cloakwork._checks import IntArray, as_number, rounded_down, rounded_up
from cloakwork.errors import CalibrationError, InputError
from cloakwork.privacy import (
    SERVER_TABLES,
    Explanation,
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

MOST_RELEASED = 2.0**61  # a released number must fit into 63 bits, with its noise
_FEW_WORDS = 1 << 12  # far fewer than the sampler asks for at a time
_NOTICEABLE = 1e-5


@dataclass(frozen=True)
class ReleaseClaim:
    """(epsilon, delta) for a change of up to `units` steps in all, in `series` series that are released together."""

    epsilon: float
    delta: float
    units: int
    series: int = 1


class ReleaseNoise(Protocol):
    """Whole-number noise, independent from entry to entry."""

    @property
    def variance(self) -> float:
        """Variance of one draw."""

    @property
    def ideal(self) -> float:
        """The variance of unrounded noise for a strategy of norm 1 and a change of one unit."""

    @property
    def shift(self) -> float:
        """The largest change of the release that the noise hides, in steps of the release."""

    def draw(self, count: int, words: WordSource) -> IntArray:
        """Draw `count` values, in steps of the release."""

    def delta(self, epsilon: float) -> float:
        """The smallest delta that the release meets at `epsilon`, rounded up."""


class Publication:
    """Private outputs. Their claim, which covers all of them together, and their cost are those of the cloak."""

    cloak: Any

    @property
    def epsilon(self) -> float:
        """Of the claim."""
        return float(self.cloak.epsilon)

    @property
    def delta(self) -> float:
        """Of the claim."""
        return float(self.cloak.delta)

    @property
    def expected_mse(self) -> float:
        """The expected mean squared error over all outputs, including the cost of rounding."""
        return float(self.cloak.expected_mse)

    def explain(self) -> Explanation:
        """Explain what is hidden, what is not, what it costs and why."""
        explanation: Explanation = self.cloak.explain()
        return explanation


def table_loss(epsilon: float, *, draws: int, error: float) -> float:
    """Return the amount that draws from tables with this error add to delta, rounded up."""
    return math.exp(min(math.log(error * draws) + float(np.logaddexp(0.0, epsilon)), 0.0)) * (1 + 1e-12)


def draw_from(table: NoiseTable, count: int, words: WordSource) -> IntArray:
    """Draw `count` values from a table; the same words give the same values, however many are drawn at once."""
    levels = len(table.levels)
    if count * levels > _FEW_WORDS:
        return noise_of_frames([table], count, words)[:, 0]
    return noise_from_words(
        table, words(count * levels).reshape(count, levels, 2)
    )  # quicker, for the pushes of a stream


@dataclass(frozen=True, eq=False)
class GaussianNoise:
    """Rounded Gaussian noise from exact tables; `mu` is the largest shift of the release in standard deviations.

    Notes
    -----
    The release is whole, so w * x + round(N) equals round(w * x + N): post-processing of the Gaussian mechanism. Its
    sensitivity is exactly units ||w||_2: a change of one unit anywhere moves the release by a shifted w, and all
    changes of up to that many units are mixtures of those.
    """

    table: NoiseTable
    mu: float
    draws: int
    ideal: float

    @classmethod
    def meeting(cls, strategy: Strategy, claim: ReleaseClaim) -> "GaussianNoise":
        """The least noise with which a strategy meets a claim."""
        draws = strategy.length * claim.series
        try:
            mu = allowed_mu(claim.epsilon, claim.delta, draws=draws, error=SERVER_TABLES.error)
        except CalibrationError:
            room = claim.delta / (2 * SERVER_TABLES.error * draws)
            largest = math.log(room) if room > math.e else None
            smaller = "" if largest is None else f"epsilon={rounded_down(largest, 3)} or less, or "
            raise CalibrationError(
                f"epsilon={claim.epsilon:g} with delta={claim.delta:g}: the noise cannot be drawn as exactly as that "
                f"needs. Give {smaller}a larger delta.",
                epsilon=claim.epsilon,
                delta=claim.delta,
                largest_epsilon=largest,
            ) from None
        shift = claim.units * norm_above(strategy.weights) * (1 + 1e-15)
        table = noise_table(table_ratio(shift / mu), size=SERVER_TABLES)
        return cls(table, shift / table.ratio, draws, largest_mu(claim.epsilon, claim.delta) ** -2)

    @property
    def variance(self) -> float:
        """Variance of one draw, including what rounding adds."""
        return self.table.ratio**2 + 1 / 12

    @property
    def shift(self) -> float:
        return self.mu * self.table.ratio

    def draw(self, count: int, words: WordSource) -> IntArray:
        return draw_from(self.table, count, words)

    def delta(self, epsilon: float) -> float:
        loss = table_loss(epsilon, draws=self.draws, error=self.table.error)
        return min(1.0, Profile(self.mu).delta(epsilon) + loss)


def odds_text(epsilon: float, delta: float) -> str:
    """Explain (epsilon, delta) for an observer, as the end of a sentence."""
    factor = rounded_up(math.exp(min(epsilon, 700)), 3)
    return f"any outcome is at most e^{epsilon:g} = {factor} times as likely with it as without, plus {delta:g}"


def percent_text(share: float) -> str:
    """A share in per cent; a negligible one as an upper bound.

    >>> percent_text(0.00037), percent_text(4e-9)
    ('0.037 %', 'less than 0.001 %')
    """
    return f"{100 * share:.2g} %" if share >= _NOTICEABLE else f"less than {100 * _NOTICEABLE:g} %"


def band_factor(confidence: float) -> float:
    """Return the number of standard deviations within which an error stays with this confidence.

    >>> round(band_factor(0.95), 4)
    1.96
    """
    if not 0 < as_number("confidence", confidence) < 1:
        raise InputError(f"confidence={confidence!r}: give a number between 0 and 1.", confidence=confidence)
    return float(ndtri((1 + confidence) / 2))
