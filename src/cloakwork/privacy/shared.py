"""Shared noise: whole numbers that several sensors add together, so that their noise is correlated.

A sensor sends k + own noise + what the shared draws add: k its reading in steps, its own noise round(N(0, r^2)), and
columns @ d, where `columns` are whole numbers and each d_j is a discrete Gaussian of parameter T.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray, frozen
from cloakwork.errors import CalibrationError
from cloakwork.physics import Nuisance
from cloakwork.privacy.noise_table import NoiseTable, discrete_table, table_ratio
from cloakwork.privacy.sampler import WordSource, noise_of_frames

SMOOTH = 0.25  # largest eigenvalue of I/T^2 + F' R^-2 F, for which steps of the shared part do not show
LARGEST = 8_192.0  # the largest T, whose table takes a second to make
_MARGIN = 1.01
_SYMMETRIC = 1e-9


@dataclass(frozen=True, eq=False)
class SharedNoise:
    """Noise that the sensors of a network share: `columns` (m, k), in steps, times k discrete Gaussians of `ratio` T.

    Notes
    -----
    Let r be the sensors' own noise in steps, R = diag(r) and F the columns. The density of F d + N(0, R^2) at x is
    proportional to

        sum over whole d of exp(-|d|^2 / (2 T^2)) exp(-|R^-1 (x - F d)|^2 / 2)  =  exp(-x' S^-1 x / 2) theta(x)

    with S = R^2 + T^2 F F' and theta(x) = sum_d exp(-(d - c)' L (d - c) / 2), L = I / T^2 + F' R^-2 F and c = L^-1 F'
    R^-2 x. By Poisson's formula theta is constant up to a factor of 1 +- rho, rho = sum over n != 0 of
    exp(-2 pi^2 n' L^-1 n). If L <= I/4, that is at most 1.03e-34 k. So the sum has the density of N(0, S) up to 2 rho /
    (1 - rho) in the sum of absolute differences. Readings and columns are whole, so rounding the sum is rounding
    each sensor's own noise alone: what is sent is post-processing of a Gaussian with the covariance S.
    """

    columns: IntArray
    ratio: float

    @classmethod
    def of(cls, covariance: FloatArray, own: FloatArray, steps: FloatArray) -> "SharedNoise":
        """The shared noise that adds up with own noise (m,) to a covariance (m, m), but for the rounding of columns."""
        values, vectors = np.linalg.eigh(covariance / np.outer(own, own) - np.eye(len(own)))
        spread = vectors * np.sqrt(np.maximum(values, 0.0))
        ratio = 2 * _MARGIN * math.sqrt(1 + max(float(values[-1]), 0.0))
        while True:
            if ratio > LARGEST:
                raise CalibrationError(
                    f"the shared noise is {math.sqrt(float(values[-1])):,.0f} times the own noise, too much for one "
                    "table. Give a covariance with more noise that is not shared.",
                    ratio=ratio,
                )
            columns = np.rint(spread * (own / steps)[:, None] / ratio).astype(np.int64)
            shared = cls(columns[:, columns.any(axis=0)], table_ratio(ratio))
            if shared.is_smooth(own / steps):
                return shared
            ratio *= _MARGIN

    def is_smooth(self, own: FloatArray) -> bool:
        """Whether own noise (m,), in steps, is large enough for the steps of the shared part not to show."""
        scaled = self.columns / own[:, None]
        largest = np.linalg.norm(scaled, 2) ** 2 if scaled.size else 0.0
        return bool((1 / self.ratio**2 + largest) * (1 + 1e-12) <= SMOOTH)

    @property
    def table(self) -> NoiseTable:
        """The table of each draw."""
        return discrete_table(self.ratio)

    def factor(self, steps: FloatArray) -> FloatArray:
        """A matrix A (m, k), in the unit of the readings: A A' is the covariance of the shared part."""
        return np.asarray(self.columns * self.ratio * steps[:, None])

    def nuisance(self, steps: FloatArray) -> Nuisance:
        """The shared part as recovery takes it: offsets that are fresh in each frame."""
        size = self.columns.shape[1]
        return Nuisance(self.columns * steps[:, None], np.full(size, self.ratio), np.zeros(size))

    def draw(self, frames: int, words: WordSource) -> IntArray:
        """Draw what the sensors add in each frame, in steps, shape (frames, m)."""
        drawn = noise_of_frames([self.table] * self.columns.shape[1], frames, words)
        return np.asarray(drawn @ self.columns.T)


def checked_covariance(covariance: ArrayLike, sensors: int) -> FloatArray:
    """A covariance that a caller states, shape (m, m); refused unless it is symmetric and positive."""
    values = np.asarray(covariance, dtype=np.float64)
    if values.shape != (sensors, sensors) or not np.isfinite(values).all():
        raise CalibrationError(
            f"covariance has shape {values.shape}: give a finite number for each two of the {sensors} sensors.",
            shape=values.shape,
        )
    scale = np.sqrt(np.abs(np.diagonal(values)))
    if (np.abs(values - values.T) > _SYMMETRIC * np.outer(scale, scale)).any():
        raise CalibrationError("covariance is not symmetric: give the same number for two sensors in either order.")
    least = float(np.linalg.eigvalsh(values)[0])
    if not least > 1e-12 * float(scale.max()) ** 2:
        raise CalibrationError(
            f"covariance is not positive: its least eigenvalue is {least:.3g}. Noise has a variance above 0 in every "
            "combination of sensors. Add to the diagonal.",
            least=least,
        )
    return frozen((values + values.T) / 2)


def own_noise_in(covariance: FloatArray) -> FloatArray:
    """Standard deviations (m,) of independent noise that the covariance contains.

    Each sensor gets the same share of what its noise varies by once that of all others is known, the largest that
    leaves a covariance for the shared part.
    """
    inverse = np.linalg.inv(covariance)
    alone = 1 / np.sqrt(np.diagonal(inverse))
    share = 1 / float(np.linalg.eigvalsh(inverse * np.outer(alone, alone))[-1])
    return np.asarray(alone * math.sqrt(share * (1 - 1e-6)))
