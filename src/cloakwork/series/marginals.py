"""Marginals: private, consistent tables of counts over a few of many binary attributes."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork._checks import FloatArray, IntArray, array_or_none, count, read_only
from cloakwork.errors import CalibrationError, InputError, ReadingError
from cloakwork.privacy import check_claim, largest_mu, private_words, simulated_words
from cloakwork.series.release_noise import MAX_RELEASED, ReleaseNoise
from cloakwork.series.strategies import norm_above

_MAX_ATTRIBUTES = 62
_MAX_CELLS = 1 << 24
_NORM = 2.0**14  # of the whole weights: rounding them then costs less than 0.1 % of the error


@dataclass(frozen=True, eq=False)
class Marginals:
    """Private tables of counts, all computed from the same coefficients.

    Tables are consistent: a table summed over one of its attributes is the table of the others. Entries are real
    numbers and may be negative; rounding them costs no privacy, but breaks the consistency. `expected_mse` is the mean
    squared error over all cells; `separate_mse` is the error of separate noise for each table with the same guarantee.
    """

    sets: tuple[tuple[int, ...], ...]
    masks: IntArray
    coefficients: FloatArray
    variances: FloatArray
    noise: ReleaseNoise
    epsilon: float
    delta: float
    expected_mse: float
    separate_mse: float

    @property
    def tables(self) -> dict[tuple[int, ...], FloatArray]:
        """All requested tables, by their attributes."""
        return {members: self.table(members) for members in self.sets}

    @property
    def rows(self) -> float:
        """The estimated number of rows: the total of every table."""
        return float(self.coefficients[0])

    def table(self, attributes: Sequence[int]) -> FloatArray:
        """Return the counts by these attributes, an axis of length 2 for each: a requested set, or a part of one."""
        chosen = self.coefficients[self._places(attributes)]
        return np.asarray(transformed(chosen) / len(chosen)).reshape((2,) * len(attributes))

    def standard_deviation(self, attributes: Sequence[int]) -> float:
        """Return the standard deviation of each cell of the table of these attributes."""
        places = self._places(attributes)
        return math.sqrt(float(self.variances[places].sum())) / len(places)

    def _places(self, attributes: Sequence[int]) -> IntArray:
        masks = _subsets([_attribute_set(_MAX_ATTRIBUTES, attributes)])[0]
        places = np.minimum(np.searchsorted(self.masks, masks), len(self.masks) - 1)
        if (self.masks[places] != masks).any():
            raise InputError(
                f"{tuple(attributes)}: no requested table has these attributes. Include them in one next time.",
                attributes=tuple(attributes),
            )
        return np.asarray(places)


def marginals(
    rows: ArrayLike,
    order: int | None = None,
    *,
    sets: Sequence[Sequence[int]] | None = None,
    epsilon: float,
    delta: float,
    contribution: int = 1,
    rng: np.random.Generator | None = None,
) -> Marginals:
    """Publish tables of counts of private rows, shape (n, attributes) of zeros and ones.

    Parameters
    ----------
    order
        Publish the tables of all sets of this number of attributes.
    sets
        Or: publish the tables of these sets of attributes, numbered from 0.
    epsilon, delta
        The guarantee, for all tables together. Each call spends its own.
    contribution
        How many rows one protected person may add or remove.
    rng
        Draw reproducible noise instead, for experiments. The result is not private.

    Notes
    -----
    The release is a_T W_T + noise for each set T of attributes within a requested one: W_T is the sum over all rows of
    (-1)^{sum of the bits in T}. A row enters each W_T as +1 or -1, so one row moves the release by exactly ||a||_2. A
    cell of the table of S is 2^-|S| times the sum over T in S of +-W_T (Barak, Chaudhuri, Dwork, Kale, McSherry and
    Talwar), so the mean squared error is (sum a_T^2) (sum worth_T / a_T^2) / mu^2, where worth_T is the sum of 2^-|S|
    over the tables that need T, divided by the number of cells. By Cauchy and Schwarz a_T^2 proportional to
    sqrt worth_T is best; no other linear strategy with Gaussian noise does better (compare Cormode, Procopiuc,
    Srivastava and Yaroslavtsev).

    Examples
    --------
    >>> rows = np.random.default_rng(1).integers(0, 2, size=(1000, 12))
    >>> published = marginals(rows, order=2, epsilon=1.0, delta=1e-6)
    >>> published.table((3, 7)).shape, len(published.tables)
    ((2, 2), 66)
    """
    check_claim(epsilon, delta)
    count("contribution", contribution, error=CalibrationError)
    bits = _bits(rows)
    requested = _requested(bits.shape[1], order, sets)
    cells = sum(1 << len(members) for members in requested)
    masks, worth = _coefficients_of(requested, cells)
    root = worth**0.25
    weights = np.maximum(np.rint(root * (_NORM * math.sqrt(len(root)) / np.linalg.norm(root))), 1).astype(np.int64)
    if len(bits) >= MAX_RELEASED / float(weights.max()):
        raise ReadingError("too many rows to release with their noise in 63 bits.")
    shift = contribution * norm_above(weights) * (1 + 1e-15)
    noise = ReleaseNoise.hiding(shift, epsilon=epsilon, delta=delta, draws=len(weights))
    released = weights * walsh(bits, masks) + noise.draw(
        len(weights), private_words if rng is None else simulated_words(rng)
    )
    variances = noise.variance / weights.astype(np.float64) ** 2
    separate = math.fsum(2.0 ** (len(members) / 2) for members in requested) ** 2 / cells
    return Marginals(
        requested,
        read_only(masks),
        read_only(released / weights),
        read_only(variances),
        noise,
        float(epsilon),
        float(delta),
        float((worth * variances).sum()),
        separate * (contribution / largest_mu(epsilon, delta)) ** 2,
    )


def _bits(rows: ArrayLike) -> NDArray[np.bool_]:
    array = array_or_none(rows)
    form = "rows: give one row for each person, of zeros and ones, all of the same length."
    if array is None or array.ndim != 2 or not 1 <= array.shape[1] <= _MAX_ATTRIBUTES:
        raise ReadingError(f"{form} There may be 1 to {_MAX_ATTRIBUTES} attributes.")
    bits = np.asarray(array == 1)
    bad = np.argwhere(~(bits | (array == 0)))
    if len(bad):
        row, attribute = map(int, bad[0])
        raise ReadingError(
            f"rows[{row}, {attribute}] is neither 0 nor 1 ({len(bad)} such entries): code each attribute as one or "
            "more bits first.",
            row=row,
            attribute=attribute,
        )
    return bits


def _requested(attributes: int, order: int | None, sets: Sequence[Sequence[int]] | None) -> tuple[tuple[int, ...], ...]:
    """Return the sets of attributes of all tables, each once."""
    if (order is None) == (sets is None):
        raise InputError("give either order=, for all sets of this number of attributes, or sets=, for some.")
    if order is not None:
        if count("order", order) > attributes:
            raise InputError(f"order={order}: there are {attributes} attributes.", order=order, attributes=attributes)
        _refuse_too_many(math.comb(attributes, order) << order)
        return tuple(combinations(range(attributes), order))
    if not isinstance(sets, Iterable):
        raise InputError("sets: give a list of sets of attributes, such as [(0, 1)].")
    chosen = tuple(_attribute_set(attributes, members) for members in sets)
    if not chosen or len({frozenset(members) for members in chosen}) < len(chosen):
        raise InputError("sets: give at least one set of attributes, each once, such as [(0, 1)].")
    _refuse_too_many(sum(1 << len(members) for members in chosen))
    return chosen


def _refuse_too_many(cells: int) -> None:
    if cells > _MAX_CELLS:
        raise InputError(f"the tables have {cells:,} cells: give fewer or smaller sets, up to {_MAX_CELLS:,} cells.")


def _attribute_set(attributes: int, chosen: Sequence[int]) -> tuple[int, ...]:
    members: tuple[Any, ...] = tuple(chosen) if isinstance(chosen, Iterable) else (None,)
    whole = all(isinstance(member, int | np.integer) and not isinstance(member, bool) for member in members)
    if not whole or len(set(members)) < len(members) or any(not 0 <= member < attributes for member in members):
        raise InputError(f"{chosen!r}: give different attributes, as whole numbers from 0 to {attributes - 1}.")
    return tuple(map(int, members))


def _by_size(sets: Sequence[tuple[int, ...]]) -> list[list[tuple[int, ...]]]:
    """Group sets of the same size, which can be computed together."""
    return [[members for members in sets if len(members) == size] for size in sorted(set(map(len, sets)))]


def _subsets(sets: Sequence[tuple[int, ...]]) -> IntArray:
    """Return all subsets of sets of the same size as masks, shape (sets, 2^size), the last attribute fastest."""
    masks = np.zeros((len(sets), 1), dtype=np.int64)
    for members in np.array(sets, dtype=np.int64).T:
        masks = np.stack([masks, masks + (1 << members)[:, None]], axis=2).reshape(len(sets), -1)
    return masks


def _coefficients_of(requested: Sequence[tuple[int, ...]], cells: int) -> tuple[IntArray, FloatArray]:
    """Return the masks of all coefficients that the tables need, and the worth of each."""
    parts = [_subsets(group) for group in _by_size(requested)]
    masks, place = np.unique(np.concatenate([part.ravel() for part in parts]), return_inverse=True)
    shares = np.concatenate([np.full(part.size, 1 / part.shape[1]) for part in parts])
    return masks, np.bincount(place, weights=shares) / cells


def walsh(bits: NDArray[np.bool_], masks: IntArray) -> IntArray:
    """Return the exact W_T of each mask: the number of rows, minus twice the rows that are odd in T."""
    words = -(-max(len(bits), 1) // 64)
    packed = np.zeros((bits.shape[1], 8 * words), dtype=np.uint8)
    packed[:, : -(-len(bits) // 8)] = np.packbits(bits.T, axis=1)
    columns = packed.view(np.uint64)
    members = ([place for place in range(len(columns)) if mask >> place & 1] for mask in masks.tolist())
    odd = [int(np.bitwise_count(np.bitwise_xor.reduce(columns[chosen], axis=0)).sum()) for chosen in members]
    return len(bits) - 2 * np.array(odd, dtype=np.int64)


def transformed(values: NDArray[Any]) -> NDArray[Any]:
    """Return the Walsh-Hadamard transform along the last axis, of 2^d numbers: sum over b of (-1)^{T.b} values[b].

    >>> transformed(np.array([3, 1, 0, 2])).tolist()
    [6, 0, 2, 4]
    """
    result, half = np.array(values), 1
    while half < values.shape[-1]:
        pairs = result.reshape(-1, 2, half)
        result = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        half *= 2
    return result.reshape(values.shape)
