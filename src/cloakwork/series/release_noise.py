"""The noise of a release, and sentences about it that all releases share."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from cloakwork._checks import FloatArray, IntArray, as_number, rounded_down, rounded_up
from cloakwork.errors import CalibrationError, InputError
from cloakwork.privacy import (
    SERVER_TABLES,
    NoiseTable,
    Profile,
    WordSource,
    allowed_mu,
    noise_from_words,
    noise_of_frames,
    noise_table,
    table_ratio,
)

MAX_RELEASED = 2.0**61  # a released number must fit into 63 bits, with its noise
_FEW_WORDS = 1 << 12  # far fewer than the sampler asks for at a time


@dataclass(frozen=True, eq=False)
class ReleaseNoise:
    """Rounded Gaussian noise from exact tables; `mu` is the largest shift of the release in standard deviations.

    Notes
    -----
    The release is whole, so w * x + round(N) equals round(w * x + N): post-processing of the Gaussian mechanism.
    """

    table: NoiseTable
    mu: float
    draws: int

    @classmethod
    def hiding(cls, shift: float, *, epsilon: float, delta: float, draws: int) -> "ReleaseNoise":
        """Return the least noise that hides a shift of the release, drawn `draws` times."""
        try:
            mu = allowed_mu(epsilon, delta, draws=draws, error=SERVER_TABLES.error)
        except CalibrationError:
            room = delta / (2 * SERVER_TABLES.error * draws)
            largest = math.log(room) if room > math.e else None
            smaller = "" if largest is None else f"epsilon={rounded_down(largest, 3)} or less, or "
            raise CalibrationError(
                f"epsilon={epsilon:g} with delta={delta:g}: the noise cannot be drawn as exactly as that needs. Give "
                f"{smaller}a larger delta.",
                epsilon=epsilon,
                delta=delta,
                largest_epsilon=largest,
            ) from None
        if shift / mu > SERVER_TABLES.ratio:
            raise CalibrationError(
                f"contribution: epsilon={epsilon:g} and delta={delta:g} need more noise than can be drawn. Give a "
                "smaller contribution, a larger step, a larger epsilon or a larger delta.",
                share=SERVER_TABLES.ratio * mu / shift,
            )
        table = noise_table(table_ratio(shift / mu), size=SERVER_TABLES)
        return cls(table, shift / table.ratio, draws)

    @property
    def variance(self) -> float:
        """The variance of one draw, including what rounding adds."""
        return self.table.ratio**2 + 1 / 12

    def draw(self, count: int, words: WordSource) -> IntArray:
        """Draw `count` values; the same words give the same values, however many are drawn at once."""
        levels = len(self.table.levels)
        if count * levels > _FEW_WORDS:
            return noise_of_frames([self.table], count, words)[:, 0]
        return noise_from_words(self.table, words(count * levels).reshape(count, levels, 2))  # quicker for a stream

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that the release meets at `epsilon`, rounded up."""
        loss = math.log(self.table.error * self.draws) + float(np.logaddexp(0.0, epsilon))
        return min(1.0, Profile(self.mu).delta(epsilon) + math.exp(min(loss, 0.0)) * (1 + 1e-12))


def odds_text(epsilon: float, delta: float) -> str:
    """Explain (epsilon, delta) for an observer, as the end of a sentence."""
    factor = rounded_up(math.exp(min(epsilon, 700)), 3)
    return f"any outcome is at most e^{epsilon:g} = {factor} times as likely with it as without, plus {delta:g}"


def band(standard_deviation: FloatArray | float, confidence: float) -> FloatArray:
    """Return the error that values stay within with this confidence."""
    if not 0 < as_number("confidence", confidence) < 1:
        raise InputError(f"confidence={confidence!r}: give a number between 0 and 1.", confidence=confidence)
    return np.asarray(standard_deviation * float(ndtri((1 + confidence) / 2)))
