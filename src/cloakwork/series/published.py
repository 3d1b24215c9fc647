"""What was published: the values, and how far off they are."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from cloakwork._checks import FloatArray, frozen
from cloakwork.errors import InputError
from cloakwork.privacy import Explanation

if TYPE_CHECKING:
    from cloakwork.series.cloak import SeriesCloak


@dataclass(frozen=True, eq=False)
class Published:
    """Private outputs of one or more filters.

    Parameters
    ----------
    values
        Shape (n,), or (series, n) for several series; with a leading axis for several filters.
    standard_deviation
        Of each value, the same for all series: shape (n,), or (filters, n). Public: it does not depend on the data.
    cloak
        What they were published with: the claim, the mechanism and its cost.
    """

    values: FloatArray
    standard_deviation: FloatArray
    cloak: "SeriesCloak"

    def __post_init__(self) -> None:
        frozen(self.values)
        frozen(self.standard_deviation)

    @property
    def epsilon(self) -> float:
        """Of the claim that the values meet together."""
        return self.cloak.epsilon

    @property
    def delta(self) -> float:
        """Of the claim that the values meet together."""
        return self.cloak.delta

    @property
    def expected_mse(self) -> float:
        """The mean squared error to expect, with the cost of rounding."""
        return self.cloak.expected_mse

    @property
    def spectral_shape(self) -> float:
        """The papers' specLB of the filter, to compare filters by: known up to a constant only."""
        return self.cloak.spectral_shape

    def band(self, confidence: float = 0.95) -> FloatArray:
        """How far a value may be off with this confidence, each for itself; the shape of `standard_deviation`."""
        if not 0 < confidence < 1:
            raise InputError(f"confidence={confidence!r}: give a number between 0 and 1.", confidence=confidence)
        return np.asarray(self.standard_deviation * ndtri((1 + confidence) / 2))

    def explain(self) -> Explanation:
        """What is hidden, what is not, what it costs and what drives it, in plain sentences."""
        return self.cloak.explain()
