"""The distribution of the noise: Gaussian, or for single sensors Laplace.

A distribution turns a claim into the mu of a frame, noise in steps into the table of a device, and a mu into the
claims that it meets. Nothing else depends on which of the two it is.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from typing import final

from cloakwork.errors import CalibrationError
from cloakwork.privacy.claim import Claim, Scope
from cloakwork.privacy.gaussian import Profile, check_claim
from cloakwork.privacy.laplace import LaplaceProfile, laplace_table, largest_shift
from cloakwork.privacy.noise_table import DEVICE_TABLES, NoiseTable, noise_table, table_ratio

ROOT_2 = math.sqrt(2.0)  # the standard deviation of Laplace noise, in scales
_BASE, _COARSEST = 512, 16  # blocks with which all tables of a device stay below 56 kB


class NoiseLaw(StrEnum):
    """Which noise a device adds."""

    GAUSSIAN = "gaussian"
    """For every scope."""
    LAPLACE = "laplace"
    """For single sensors; it allows a delta of 0."""

    @property
    def distribution(self) -> "GaussianNoise | LaplaceNoise":
        """What depends on the distribution of this noise."""
        return GaussianNoise() if self is NoiseLaw.GAUSSIAN else LaplaceNoise()


@final
class GaussianNoise:
    """Gaussian noise, for every scope.

    `efficiency` is its standard deviation over that of Gaussian noise that reveals as much of a source.
    """

    efficiency = 1.0

    def refuse_unknown(self, claim: Claim, stated: Mapping[str, bool]) -> None:  # noqa: ARG002 - all of it is calibrated
        """Refuse a claim that this noise cannot meet, and what is `stated` beside it that is not calibrated."""
        check_claim(claim.epsilon, claim.delta)

    def frame_mu(self, claim: Claim, sensors: int, doubt: float) -> float:
        """Return how far a frame may shift, in standard deviations of this noise; rounded down."""
        return claim.frame_mu(sensors, doubt=doubt)

    def profile(self, mu: float, doubt: float, readings: int) -> Profile:
        """Return all (epsilon, delta) that so many frames of this mu meet together."""
        return Profile(mu, doubt).compose(readings)

    def table(self, ratio: float) -> NoiseTable:
        """Return the table of a device for noise with a standard deviation of `ratio` steps."""
        return noise_table(ratio)


@final
class LaplaceNoise:
    """Laplace noise, for single sensors; it allows a delta of 0, which leaves out the error of the tables."""

    efficiency = ROOT_2

    def refuse_unknown(self, claim: Claim, stated: Mapping[str, bool]) -> None:
        if claim.scope is Scope.NETWORK:
            raise CalibrationError(
                'noise="laplace" for several sensors together: a move shifts many readings a little, which Gaussian '
                'noise hides with less. Give scope="sensor", or leave noise out.',
                noise="laplace",
            )
        for name in (name for name, is_stated in stated.items() if is_stated):
            raise CalibrationError(
                f'noise="laplace" with {name}: only Gaussian noise is calibrated for that. Leave one of them out.',
                noise="laplace",
                name=name,
            )

    def frame_mu(self, claim: Claim, sensors: int, doubt: float) -> float:  # noqa: ARG002 - it is of one sensor
        tables = 2 * math.exp(min(claim.epsilon, 700.0)) * claim.readings * DEVICE_TABLES.error
        if 0 < claim.delta <= tables:
            raise CalibrationError(
                f"epsilon={claim.epsilon:g} with delta={claim.delta:g}: the error of the noise table exceeds delta. "
                "Use a smaller epsilon, a larger delta, or a delta of 0, which is that of the law of the noise.",
                epsilon=claim.epsilon,
                delta=claim.delta,
            )
        shift = largest_shift(claim.epsilon, claim.delta - tables, readings=claim.readings)
        return shift / ROOT_2 * (1 - 1e-15)

    def profile(self, mu: float, doubt: float, readings: int) -> LaplaceProfile:  # noqa: ARG002 - no sketch is allowed
        return LaplaceProfile(ROOT_2 * mu * (1 + 1e-15), readings)

    @staticmethod
    @lru_cache(maxsize=64)
    def table(ratio: float) -> NoiseTable:
        return replace(laplace_table(table_ratio(ratio / ROOT_2), base=_BASE, coarsest=_COARSEST), ratio=ratio)
