"""Marginals: private tables of counts over a few of many binary attributes, all consistent with each other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork._checks import FloatArray, count, frozen, rounded_down
from cloakwork.errors import InputError, ReadingError
from cloakwork.privacy import Explanation, WordSource, private_words, simulated_words
from cloakwork.series.coefficients import CoefficientsCloak
from cloakwork.series.explain_walsh import explain_marginals
from cloakwork.series.given import array_of
from cloakwork.series.hadamard import transformed
from cloakwork.series.subsets import Wanted, check_attributes

_MOST = 2.0**61
_RAGGED = "rows: give one row a person, of zeros and ones, all of the same length."


@dataclass(frozen=True, eq=False)
class Marginals:
    """Private tables of counts, all made from the same coefficients.

    A table summed over one of its attributes is the table of the others: no two of them disagree. Entries are real
    numbers and may lie below 0; rounding them is free, but breaks that.
    """

    coefficients: FloatArray
    cloak: "MarginalsCloak"

    def __post_init__(self) -> None:
        frozen(self.coefficients)

    @property
    def tables(self) -> dict[tuple[int, ...], FloatArray]:
        """All tables that were asked for, by their attributes."""
        return self.cloak.wanted.tables(self.coefficients)

    @property
    def rows(self) -> float:
        """How many rows there are, about: the total of every table."""
        return float(self.coefficients[0])

    @property
    def epsilon(self) -> float:
        """Of the claim that all tables meet together."""
        return self.cloak.epsilon

    @property
    def delta(self) -> float:
        """Of the claim that all tables meet together."""
        return self.cloak.delta

    @property
    def expected_mse(self) -> float:
        """The mean squared error over all cells of all tables to expect, with the cost of rounding."""
        return self.cloak.expected_mse

    def table(self, attributes: Sequence[int]) -> FloatArray:
        """Counts by these attributes, an axis of length 2 for each: those of a wanted table, or some of them."""
        chosen = self.coefficients[self.cloak.wanted.places(attributes)]
        return np.asarray(transformed(chosen) / len(chosen)).reshape((2,) * len(attributes))

    def standard_deviation(self, attributes: Sequence[int]) -> float:
        """Of each cell of the table of these attributes."""
        return self.cloak.standard_deviation(attributes)

    def explain(self) -> Explanation:
        """What is hidden, what is not, what it costs and what drives it, in plain sentences."""
        return self.cloak.explain()


@final
class MarginalsCloak(CoefficientsCloak):
    """Publishes tables of counts over binary attributes, once, with the least noise that meets the claim.

    Parameters
    ----------
    attributes
        How many binary attributes each row has, up to 62.
    order
        Publish the tables of all sets of this many attributes.
    sets
        Or: publish the tables of these sets of attributes, numbered from 0.
    epsilon, delta
        The claim, for all tables together.
    contribution
        How many rows one protected person may add or remove.

    Notes
    -----
    What goes out is a_T W_T + noise for each set T of attributes within a wanted one, W_T being the sum over all rows
    of (-1)^{sum of the bits in T} and a_T a public whole number (`WalshStrategy`): a row enters each W_T as +1 or -1,
    so that adding or removing one moves the release by ||a||_2 exactly. The tables follow by a short Walsh-Hadamard
    transform each (Barak, Chaudhuri, Dwork, Kale, McSherry and Talwar).

    No other linear strategy with Gaussian noise has a smaller mean squared error over all cells: what is wanted stays
    the same when a fixed pattern is xored to all rows, so that the mean over all patterns of any strategy's Gram matrix
    is as good and as private, and that mean is diagonal in the Walsh basis, where these a_T are the best (compare
    Cormode, Procopiuc, Srivastava and Yaroslavtsev).

    Examples
    --------
    >>> cloak = MarginalsCloak(20, order=2, epsilon=1.0, delta=1e-6)
    >>> cloak.tables, cloak.coefficients
    (190, 211)
    >>> round(cloak.separate_mse / cloak.expected_mse, 1)  # noise for each table apart would be so much worse
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
        self.wanted = _wanted(self.attributes, order, sets)
        super().__init__(
            self.wanted.worth, epsilon=epsilon, delta=delta, contribution=contribution, owner="marginals cloak"
        )
        self._freeze()

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The attributes of each wanted table."""
        return self.wanted.sets

    @property
    def tables(self) -> int:
        """How many tables are wanted."""
        return len(self.sets)

    @property
    def separate_mse(self) -> float:
        """What noise on each table apart would reach at the same claim, shared among the tables as well as can be."""
        return self.wanted.separate * self.plan.noise.ideal * self.contribution**2

    @cached_property
    def variances(self) -> FloatArray:
        """Variance of each Walsh coefficient, shape (coefficients,)."""
        return frozen(self.plan.variances)

    def standard_deviation(self, attributes: Sequence[int]) -> float:
        """Of each cell of the table of these attributes: a wanted set, or a part of one."""
        places = self.wanted.places(attributes)
        return math.sqrt(float(self.variances[places].sum())) / len(places)

    def release(self, rows: ArrayLike) -> Marginals:
        """Publish the tables of true rows, shape (n, attributes) of zeros and ones, for real. A cloak does so once."""
        bits = self._bits(rows)
        self._ledger.spend(1)
        return self._published(bits, private_words)

    def simulate(self, rows: ArrayLike, *, rng: np.random.Generator) -> Marginals:
        """The same law as `release`, reproducible and therefore not private; spends nothing."""
        return self._published(self._bits(rows), simulated_words(rng))

    def explain(self) -> Explanation:
        """What is hidden, what is not, what it costs and what drives it, in plain sentences."""
        return explain_marginals(self)

    def __repr__(self) -> str:
        return (
            f"MarginalsCloak({self.tables} tables of {self.attributes} attributes, epsilon={self.epsilon:g}, "
            f"delta={self.delta:g})"
        )

    def _bits(self, rows: ArrayLike) -> NDArray[np.bool_]:
        given = array_of(rows)
        if given is None:
            raise ReadingError(_RAGGED)
        if given.ndim != 2 or given.shape[1] != self.attributes:
            raise ReadingError(
                f"rows has shape {given.shape}: give one row a person, with {self.attributes} zeros and ones in each.",
                shape=given.shape,
            )
        bits = given == 1
        bad = np.argwhere(~(bits | (given == 0)))
        if len(bad):
            row, attribute = map(int, bad[0])
            raise ReadingError(
                f"rows[{row}, {attribute}] is neither 0 nor 1 ({len(bad)} such entries): code each attribute as one or "
                "more bits first.",
                row=row,
                attribute=attribute,
            )
        most = _MOST / float(self.plan.strategy.weights.max())
        if len(bits) >= most:
            raise ReadingError(
                "there are too many rows to release them with their noise in 63 bits: give fewer than "
                f"{rounded_down(most)}.",
                most=most,
            )
        return np.asarray(bits)

    def _published(self, bits: NDArray[np.bool_], words: WordSource) -> Marginals:
        return Marginals(self.plan.estimates(self.wanted.coefficients(bits), words), self)


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
    given = array_of(rows)
    if given is None:
        raise ReadingError(_RAGGED)
    shape = given.shape
    if len(shape) != 2 or shape[1] < 1:
        raise InputError(f"rows has shape {shape}: give one row a person, with its attributes.", shape=shape)
    cloak = MarginalsCloak(shape[1], order=order, sets=sets, epsilon=epsilon, delta=delta, contribution=contribution)
    return cloak.release(given)


def _wanted(attributes: int, order: int | None, sets: Sequence[Sequence[int]] | None) -> Wanted:
    if (order is None) == (sets is None):
        raise InputError("give either order=, for all sets of so many attributes, or sets=, for some.")
    if sets is not None:
        return Wanted.chosen(attributes, sets)
    if count("order", order or 0) > attributes:
        raise InputError(f"order={order}: there are {attributes} attributes.", order=order, attributes=attributes)
    return Wanted.all_of(attributes, int(order or 0))
