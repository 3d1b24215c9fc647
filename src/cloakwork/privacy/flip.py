"""Randomised response: sensors with two or a few values, such as motion, a door contact or a seat."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cloakwork._checks import FloatArray, IntArray, array_or_none, count, positive, read_only, short_repr
from cloakwork.errors import CalibrationError, InputError, ReadingError
from cloakwork.privacy.gaussian import checked_delta, turning_point
from cloakwork.privacy.guarantee import Explanation, Guarantee
from cloakwork.privacy.ledger import Immutable, Ledger
from cloakwork.privacy.losses import ROUNDED, Losses, report_losses
from cloakwork.privacy.noise_table import CUT_BITS, Level, NoiseTable
from cloakwork.privacy.sampler import WordSource, private_words, simulated_words
from cloakwork.sensor import WORD_BYTES

WORD = 1 << CUT_BITS  # words that decide one answer
MAX_VALUES = 64
CONFIDENCE = 0.95  # of the limits on shares
LARGEST_EPSILON = 300.0
MIN_EPSILON = 1e-30  # of one reading: words cannot be shared between the values more evenly than that
MAX_READINGS = 10**6  # of a window, for all sensors


@final
class Flip(Immutable):
    """Randomised response: a sensor reports its value, or with a known probability another one.

    It hides what a sensor saw, and so whether anyone was there, where a `Cloak` hides only where a source is.

    Parameters
    ----------
    epsilon, delta
        The claim, for a whole window. A delta of 0 is allowed.
    readings_per_window
        Readings of one sensor that (epsilon, delta) covers together.
    values
        How many values a reading can have: 2 for a bit.
    sensors
        How many sensors one person can change in the same reading.

    Notes
    -----
    A reading x becomes x with probability p = e^e0 / (e^e0 + values - 1), and each other value with probability
    q = p / e^e0. Its privacy loss is e0 with probability p, -e0 with probability q, and 0 otherwise. The losses of a
    window add up to L, and

        delta(epsilon) = E max(0, 1 - e^(epsilon - L)),

    a finite sum. `each` is the largest e0 that meets the claim. This is exact: neighbours that change all readings of
    the window reach it.

    >>> flip = Flip(epsilon=2.0, delta=1e-5, readings_per_window=60)
    >>> round(flip.epsilon_per_reading, 4), round(flip.truth, 4)
    (0.0665, 0.5166)
    """

    _kind = "flip"

    def __init__(
        self, *, epsilon: float, delta: float = 0.0, readings_per_window: int, values: int = 2, sensors: int = 1
    ) -> None:
        self.epsilon = positive("epsilon", epsilon, error=CalibrationError)
        self.delta = checked_delta(delta)
        self.readings_per_window = count("readings_per_window", readings_per_window, error=CalibrationError)
        self.values = count("values", values, minimum=2, error=CalibrationError)
        self.sensors = count("sensors", sensors, error=CalibrationError)
        if self.values > MAX_VALUES:
            raise CalibrationError(
                f"values={values}: give at most {MAX_VALUES}. A reading with more values is a number: use Cloak.",
                values=values,
            )
        covered = self.readings_per_window * self.sensors
        if self.epsilon > LARGEST_EPSILON:
            raise CalibrationError(f"epsilon={epsilon:g}: give at most {LARGEST_EPSILON:g}.", epsilon=epsilon)
        if covered > MAX_READINGS:
            raise CalibrationError(
                f"{covered:,} readings in a window: give at most {MAX_READINGS:,}. Read less often, or shorten the "
                "window.",
                readings=covered,
            )
        self.epsilon_per_reading = _largest_each(self.epsilon, self.delta, covered, self.values)
        if self.epsilon_per_reading < MIN_EPSILON:
            raise CalibrationError(
                f"epsilon={epsilon:g} leaves {self.epsilon_per_reading:.3g} for each reading: give at least "
                f"{MIN_EPSILON * covered:.3g}.",
                epsilon=epsilon,
            )
        # every other value gets so many of all 2^127 words, rounded up, but never more than the true one
        self.words = min(
            math.ceil(WORD / (math.exp(self.epsilon_per_reading) + self.values - 1) * (1 + ROUNDED)),
            WORD // self.values,
        )
        self._ledger = Ledger(
            self.readings_per_window,
            unit="readings",
            owner="flip",
            remedy="Make a new flip for the next window. To experiment, use simulate(readings, rng=...).",
        )
        self._freeze()

    @property
    def truth(self) -> float:
        """Probability that a report is the true value."""
        return 1 - (self.values - 1) * self.other

    @property
    def other(self) -> float:
        """Probability of each value that is not the true one."""
        return self.words / WORD

    @property
    def likelihood(self) -> FloatArray:
        """Probability of each report (columns) for each true value (rows)."""
        table = np.full((self.values, self.values), self.other)
        np.fill_diagonal(table, self.truth)
        return table

    @property
    def spent(self) -> int:
        """Readings released so far."""
        return self._ledger.spent

    def release(self, readings: ArrayLike) -> IntArray:
        """Randomise readings (k,), or (k, sensors) where each row is one reading of several sensors.

        Each row spends one of `readings_per_window`; a call that would exceed them is refused before anything is
        released.
        """
        values = self._checked(readings)
        self._ledger.spend(len(values))
        return self._randomised(values, private_words)

    def simulate(self, readings: ArrayLike, *, rng: np.random.Generator) -> IntArray:
        """Randomise readings by the same law as `release`, reproducibly and so not privately; spends nothing."""
        return self._randomised(self._checked(readings), simulated_words(rng))

    def shares(self, reports: ArrayLike) -> "Shares":
        """Estimate from reports which share of the readings had each value, with 95 % limits.

        Where no share fits the reports, the limits say nothing: 0 and 1.
        """
        values = self._checked(reports).ravel()
        if not len(values):
            raise InputError("reports is empty: give at least one report.")
        n, seen = len(values), np.bincount(values, minlength=self.values)
        gap = self.truth - self.other
        limits = (share_limits(seen, n, CONFIDENCE) - self.other) / gap
        limits[(limits[:, 0] > 1) | (limits[:, 1] < 0)] = (0, 1)
        mean = seen / n
        likely = np.clip(mean, self.other, self.truth)  # no other mean is possible
        errors = np.sqrt(likely * (1 - likely) / n) / gap
        return Shares(read_only((mean - self.other) / gap), read_only(errors), read_only(np.clip(limits, 0.0, 1.0)))

    def compose(self, readings: int, delta: float) -> float:
        """The epsilon of so many readings together at this delta, rounded up."""
        return self._losses(readings).epsilon(checked_delta(delta))

    def best_test_accuracy(self, readings: int) -> float:
        """How often the best test between two histories is right from so many readings together, rounded up."""
        return min(1.0, (1 + self._losses(readings).delta(0.0)) / 2)

    def explain(self) -> Explanation:
        """Explain in plain sentences what is hidden from whom, and what is not."""
        return Guarantee.of_flip(self).explanation

    def __repr__(self) -> str:
        return (
            f"Flip(epsilon={self.epsilon:g}, delta={self.delta:g}, readings_per_window={self.readings_per_window}, "
            f"values={self.values}, sensors={self.sensors})"
        )

    def _losses(self, readings: int) -> Losses:
        return report_losses(self.epsilon_per_reading, readings * self.sensors, self.values)

    def _checked(self, readings: ArrayLike) -> IntArray:
        """Readings as whole numbers; errors name positions, never values."""
        array = array_or_none(readings)
        if array is None or array.ndim not in (1, 2) or array.dtype.kind not in "biuf":
            raise ReadingError(
                f"readings: give whole numbers from 0 to {self.values - 1}, shape (readings,) or (readings, sensors)."
            )
        valid = (array >= 0) & (array < self.values) & (array == np.floor(array))
        if not valid.all():
            where = tuple(int(k) for k in np.argwhere(~valid)[0])
            raise ReadingError(f"readings{list(where)} is not a whole number from 0 to {self.values - 1}.", where=where)
        return array.astype(np.int64)

    def _randomised(self, values: IntArray, source: WordSource) -> IntArray:
        """A word below `words` times the number of other values chooses one of them, any other the truth."""
        drawn = source(values.size)
        high, low = drawn[:, 0] & np.uint64(2**63 - 1), drawn[:, 1]
        others = np.zeros(values.size, dtype=np.int64)
        for k in range(1, self.values):
            cut_high, cut_low = divmod(k * self.words, 2**64)
            others += (high < cut_high) | ((high == cut_high) & (low < np.uint64(cut_low)))
        return np.asarray((values.ravel() + others) % self.values).reshape(values.shape)


@dataclass(frozen=True, eq=False)
class Shares:
    """Estimated share of each value among the readings, its standard error, and limits (values, 2).

    The estimates are unbiased, so they may be below 0 or above 1; the limits are not. They are those of Clopper and
    Pearson for the reports.

    >>> flip = Flip(epsilon=1.0, readings_per_window=1)
    >>> print(flip.shares([0] * 600 + [1] * 400))
    value 0: 0.716 +- 0.034 (between 0.649 and 0.782)
    value 1: 0.284 +- 0.034 (between 0.218 and 0.351)
    """

    values: FloatArray
    errors: FloatArray
    limits: FloatArray

    __repr__ = short_repr

    def __str__(self) -> str:
        rows = zip(self.values, self.errors, self.limits, strict=True)
        return "\n".join(
            f"value {k}: {share:.3f} +- {error:.3f} (between {low:.3f} and {high:.3f})"
            for k, (share, error, (low, high)) in enumerate(rows)
        )


def share_limits(seen: ArrayLike, n: ArrayLike, level: float) -> FloatArray:
    """Limits (..., 2) on the probability of what was seen `seen` times in n (Clopper and Pearson)."""
    ones, zeros = np.asarray(seen), np.asarray(n) - np.asarray(seen)
    low = special.betaincinv(np.maximum(ones, 1), zeros + 1, (1 - level) / 2) * (ones > 0)
    high = np.where(zeros > 0, special.betaincinv(ones + 1, np.maximum(zeros, 1), (1 + level) / 2), 1.0)
    return np.stack([low, high], axis=-1)


def flip_table(words: int, values: int = 2) -> NoiseTable:
    """The noise table of a device that adds what it draws to a reading, modulo the number of values.

    Each value that is not the true one has `words` of the 2^127 words. The sign of a draw is a fair coin, so k and
    -k, which is another value, are equally likely.
    """
    cuts = b"".join((WORD - k * words).to_bytes(WORD_BYTES, "big") for k in range(values - 1, 0, -1))
    return NoiseTable(1.0, (Level(1, cuts),), 0.0)


def _largest_each(epsilon: float, delta: float, readings: int, values: int) -> float:
    """The largest loss of one reading that meets the claim over all of them, rounded down."""
    low, high = epsilon / readings * (1 - ROUNDED), 2 * epsilon
    if delta == 0:
        return low

    def meets(each: float) -> bool:
        return report_losses(each, readings, values).delta(epsilon) <= delta

    while meets(high):
        low, high = high, 2 * high
        if high > 700:
            raise CalibrationError(
                f"delta={delta:g}: with epsilon={epsilon:g} it allows to report the truth. Give a smaller delta.",
                delta=delta,
            )
    return turning_point(meets, low, high, within=1e-12)[0]
