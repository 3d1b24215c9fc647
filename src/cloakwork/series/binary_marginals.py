"""Marginals: private, consistent tables of counts over a few of many binary attributes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork._checks import FloatArray, array_or_none, count, frozen, rounded_down
from cloakwork.errors import CalibrationError, InputError, ReadingError
from cloakwork.privacy import (
    Explanation,
    Immutable,
    Ledger,
    WordSource,
    check_claim,
    private_words,
    simulated_words,
)
from cloakwork.series.attribute_tables import AttributeTables, WalshStrategy, check_attributes, transformed
from cloakwork.series.release_noise import (
    MOST_RELEASED,
    GaussianNoise,
    Publication,
    ReleaseClaim,
    odds_text,
    percent_text,
)
from cloakwork.series.strategies import Strategy, finest

_RAGGED = "rows: give one row for each person, of zeros and ones, all of the same length."


@dataclass(frozen=True, eq=False)
class Marginals(Publication):
    """Private tables of counts, all computed from the same coefficients.

    Tables are consistent: a table summed over one of its attributes is the table of the others. Entries are real
    numbers and may be negative; rounding them costs no privacy, but breaks the consistency.
    """

    coefficients: FloatArray
    cloak: "MarginalsCloak"

    def __post_init__(self) -> None:
        frozen(self.coefficients)

    @property
    def tables(self) -> dict[tuple[int, ...], FloatArray]:
        """All requested tables, by their attributes."""
        return self.cloak.requested.tables(self.coefficients)

    @property
    def rows(self) -> float:
        """The estimated number of rows: the total of every table."""
        return float(self.coefficients[0])

    def table(self, attributes: Sequence[int]) -> FloatArray:
        """Counts by these attributes, an axis of length 2 for each: those of a requested table, or some of them."""
        chosen = self.coefficients[self.cloak.requested.places(attributes)]
        return np.asarray(transformed(chosen) / len(chosen)).reshape((2,) * len(attributes))

    def standard_deviation(self, attributes: Sequence[int]) -> float:
        """Of each cell of the table of these attributes."""
        return self.cloak.standard_deviation(attributes)


@final
class MarginalsCloak(Immutable):
    """Publishes tables of counts over binary attributes, once, with the least noise that meets the claim.

    Parameters
    ----------
    attributes
        Number of binary attributes of each row, up to 62.
    order
        Publish the tables of all sets of this number of attributes.
    sets
        Or: publish the tables of these sets of attributes, numbered from 0.
    epsilon, delta
        The claim, for all tables together.
    contribution
        How many rows one protected person may add or remove.

    Notes
    -----
    The release is a_T W_T + noise for each set T of attributes within a requested one: W_T is the sum over all rows of
    (-1)^{sum of the bits in T} and a_T a public whole number (`WalshStrategy`). A row enters each W_T as +1 or -1, so
    adding or removing one moves the release by exactly ||a||_2. Each table follows by a short Walsh-Hadamard transform
    (Barak, Chaudhuri, Dwork, Kale, McSherry and Talwar).

    No other linear strategy with Gaussian noise has a smaller mean squared error over all cells. The requested tables
    stay the same when a fixed pattern is xored to all rows, so the mean over all patterns of any strategy's Gram matrix
    is as good and as private. That mean is diagonal in the Walsh basis, where these a_T are the best (compare Cormode,
    Procopiuc, Srivastava and Yaroslavtsev).

    Examples
    --------
    >>> cloak = MarginalsCloak(20, order=2, epsilon=1.0, delta=1e-6)
    >>> cloak.tables, cloak.coefficients
    (190, 211)
    >>> round(cloak.separate_mse / cloak.expected_mse, 1)  # separate noise for each table would be so much worse
    6.8
    """

    def __init__(
        self,
        attributes: int,
        *,
        order: int | None = None,
        sets: Sequence[Sequence[int]] | None = None,
        epsilon: float,
        delta: float,
        contribution: int = 1,
    ) -> None:
        self.attributes = check_attributes(attributes)
        self.requested = _requested_tables(self.attributes, order, sets)
        check_claim(epsilon, delta)
        self.epsilon, self.delta = float(epsilon), float(delta)
        self.contribution = count("contribution", contribution, error=CalibrationError)
        worth = self.requested.worth
        self.strategy: Strategy = finest(worth**0.25, lambda weights: WalshStrategy(worth, np.maximum(weights, 1)))
        claim = ReleaseClaim(self.epsilon, self.delta, self.contribution)
        self.noise = GaussianNoise.meeting(self.strategy, claim)
        self._ledger = Ledger(
            1,
            unit="release",
            owner="marginals cloak",
            remedy="Each release costs its own budget; to experiment, use simulate(..., rng=...).",
        )
        self._freeze()

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The attributes of each requested table."""
        return self.requested.sets

    @property
    def tables(self) -> int:
        """Number of requested tables."""
        return len(self.sets)

    @property
    def coefficients(self) -> int:
        """Number of Walsh coefficients that are released."""
        return self.strategy.length

    @property
    def expected_mse(self) -> float:
        """Mean squared error over all cells, including the cost of rounding."""
        return float(self.strategy.variances.mean()) * self.noise.variance

    @property
    def ideal_mse(self) -> float:
        """The mean squared error with unrounded weights and noise."""
        return self.strategy.ideal * self.noise.ideal * self.contribution**2

    @property
    def rounding_cost(self) -> float:
        """The increase of the mean squared error due to whole weights and noise, as a fraction."""
        return self.expected_mse / self.ideal_mse - 1

    @property
    def separate_mse(self) -> float:
        """The mean squared error of separate noise for each table at the same claim, with the best budget for each."""
        return self.requested.separate * self.noise.ideal * self.contribution**2

    @cached_property
    def variances(self) -> FloatArray:
        """Variance of each Walsh coefficient, shape (coefficients,)."""
        return frozen(self.noise.variance / self.strategy.weights.astype(np.float64) ** 2)

    def standard_deviation(self, attributes: Sequence[int]) -> float:
        """Of each cell of the table of these attributes: a requested set, or a part of one."""
        places = self.requested.places(attributes)
        return math.sqrt(float(self.variances[places].sum())) / len(places)

    def release(self, rows: ArrayLike) -> Marginals:
        """Publish the tables of true rows, shape (n, attributes) of zeros and ones. A cloak does so once."""
        bits = self._bits(rows)
        self._ledger.spend(1)
        return self._published(bits, private_words)

    def simulate(self, rows: ArrayLike, *, rng: np.random.Generator) -> Marginals:
        """Draw from the same distribution as `release`; reproducible, hence not private. Spends nothing."""
        return self._published(self._bits(rows), simulated_words(rng))

    def explain(self) -> Explanation:
        """Explain what is hidden, what is not, what it costs and why."""
        tables = f"{self.tables:,} tables" if self.tables > 1 else "the table"
        rows = "one row" if self.contribution == 1 else f"{self.contribution} rows"
        present = "one row is" if self.contribution == 1 else f"up to {rows} are"
        odds = odds_text(self.epsilon, self.delta)
        return Explanation(
            (f"Someone who sees all of {tables} can hardly tell whether {present} present: {odds}.",),
            (
                "The attributes, the list of tables and the error of each cell are public. A person with k times "
                f"{rows} is hidden with k mu only.",
                "Publishing other tables of the same rows adds up: each release spends its own (epsilon, delta).",
            ),
            (
                f"Counts are off by {math.sqrt(self.expected_mse):.4g} (root mean square over all cells); with "
                f"separate noise for each table, at the same claim, by {math.sqrt(self.separate_mse):.4g}: a mean "
                f"squared error {self.separate_mse / self.expected_mse:.3g} times as large.",
                f"Whole numbers cost {percent_text(self.rounding_cost)} of the mean squared error.",
            ),
            (
                f"{self.coefficients:,} whole numbers are released, each with its own noise, and less of it for those "
                "that more tables need; all tables follow from them and agree with each other.",
            ),
        )

    def __repr__(self) -> str:
        return (
            f"MarginalsCloak({self.tables} tables of {self.attributes} attributes, epsilon={self.epsilon:g}, "
            f"delta={self.delta:g})"
        )

    def _bits(self, rows: ArrayLike) -> NDArray[np.bool_]:
        array = array_or_none(rows)
        if array is None:
            raise ReadingError(_RAGGED)
        if array.ndim != 2 or array.shape[1] != self.attributes:
            raise ReadingError(
                f"rows has shape {array.shape}: give one row for each person, with {self.attributes} zeros and ones.",
                shape=array.shape,
            )
        bits = array == 1
        bad = np.argwhere(~(bits | (array == 0)))
        if len(bad):
            row, attribute = map(int, bad[0])
            raise ReadingError(
                f"rows[{row}, {attribute}] is neither 0 nor 1 ({len(bad)} such entries): code each attribute as one or "
                "more bits first.",
                row=row,
                attribute=attribute,
            )
        most = MOST_RELEASED / float(self.strategy.weights.max())
        if len(bits) >= most:
            raise ReadingError(
                f"too many rows to release with their noise in 63 bits: give fewer than {rounded_down(most)}.",
                most=most,
            )
        return np.asarray(bits)

    def _published(self, bits: NDArray[np.bool_], words: WordSource) -> Marginals:
        exact = self.strategy.applied(self.requested.coefficients(bits))
        noisy = (exact + self.noise.draw(exact.size, words)).astype(np.float64)
        return Marginals(self.strategy.outputs(noisy)[0], self)


def marginals(
    rows: ArrayLike,
    order: int | None = None,
    *,
    sets: Sequence[Sequence[int]] | None = None,
    epsilon: float,
    delta: float,
    contribution: int = 1,
) -> Marginals:
    """Publish tables of counts of private rows, shape (n, attributes) of zeros and ones.

    The arguments are those of `MarginalsCloak`. Each call spends its own (epsilon, delta).

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.random.default_rng(1).integers(0, 2, size=(1000, 12))
    >>> published = marginals(rows, order=2, epsilon=1.0, delta=1e-6)
    >>> published.table((3, 7)).shape, len(published.tables)
    ((2, 2), 66)
    """
    array = array_or_none(rows)
    if array is None:
        raise ReadingError(_RAGGED)
    shape = array.shape
    if len(shape) != 2 or shape[1] < 1:
        raise InputError(f"rows has shape {shape}: give one row for each person, with its attributes.", shape=shape)
    cloak = MarginalsCloak(shape[1], order=order, sets=sets, epsilon=epsilon, delta=delta, contribution=contribution)
    return cloak.release(array)


def _requested_tables(attributes: int, order: int | None, sets: Sequence[Sequence[int]] | None) -> AttributeTables:
    if (order is None) == (sets is None):
        raise InputError("give either order=, for all sets of this number of attributes, or sets=, for some.")
    if sets is not None:
        return AttributeTables.chosen(attributes, sets)
    if count("order", order or 0) > attributes:
        raise InputError(f"order={order}: there are {attributes} attributes.", order=order, attributes=attributes)
    return AttributeTables.all_of(attributes, int(order or 0))
