"""Tables of counts over sets of attributes, and the Walsh coefficients that they consist of."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray, describe_argument, frozen
from cloakwork._compile import compiled
from cloakwork.errors import InputError

_MOST_ATTRIBUTES = 62
_MOST_CELLS = 1 << 24
_BLOCK = 512  # words of each column at a time: they stay in the cache


@dataclass(frozen=True, eq=False)
class AttributeTables:
    """Requested tables of `attributes` binary attributes; each holds the counts over some of them.

    Notes
    -----
    A coefficient stands for a set T of attributes, W_T = sum over rows of (-1)^{sum of the bits in T}, and a cell of
    the table of S is 2^-|S| times the sum over T in S of +-W_T. The squared errors of all its 2^|S| cells add up to
    2^-|S| times the sum of the variances of its coefficients; `worth` is the share of each coefficient in that.
    """

    attributes: int
    sets: tuple[tuple[int, ...], ...]
    masks: IntArray = field(init=False)
    worth: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        masks = [subset_masks(np.array(group, dtype=np.int64)) for group in self._by_size.values()]
        flat = np.concatenate([part.ravel() for part in masks])
        shares = np.concatenate([np.full(part.size, 1 / part.shape[1]) for part in masks])
        known, place = np.unique(flat, return_inverse=True)
        object.__setattr__(self, "masks", frozen(known))
        object.__setattr__(self, "worth", frozen(np.bincount(place, weights=shares) / self.cells))

    @classmethod
    def all_of(cls, attributes: int, order: int) -> "AttributeTables":
        """All sets of `order` attributes."""
        _refuse_too_many(math.comb(attributes, order) << order)
        return cls(attributes, tuple(combinations(range(attributes), order)))

    @classmethod
    def chosen(cls, attributes: int, sets: Sequence[Sequence[int]]) -> "AttributeTables":
        """These sets, each a list of different attributes."""
        if not isinstance(sets, Iterable):
            raise InputError(f"sets={describe_argument(sets)}: give a list of sets of attributes, such as [(0, 1)].")
        clean = tuple(attribute_set(attributes, members) for members in sets)
        if not clean:
            raise InputError("sets: give at least one set of attributes, such as [(0, 1)].")
        if len({frozenset(members) for members in clean}) < len(clean):
            raise InputError("sets: two sets have the same attributes. Give each set once.")
        _refuse_too_many(sum(1 << len(members) for members in clean))
        return cls(attributes, clean)

    @cached_property
    def cells(self) -> int:
        """Number of cells in all tables."""
        return sum(1 << len(members) for members in self.sets)

    @cached_property
    def separate(self) -> float:
        """Mean squared error of separate noise for each table, with the best budget for each, in units of 1/mu^2.

        A row is in one cell of each table, so tables with variances v_S cost sum 1/v_S in all.
        """
        return math.fsum(2.0 ** (len(members) / 2) for members in self.sets) ** 2 / self.cells

    def places(self, attributes: Sequence[int]) -> IntArray:
        """The places of the coefficients of one table, shape (2^s,); refuses tables that were not requested."""
        masks = subset_masks(np.array([attribute_set(self.attributes, attributes)], dtype=np.int64))[0]
        places = np.minimum(np.searchsorted(self.masks, masks), len(self.masks) - 1)
        if (self.masks[places] != masks).any():
            raise InputError(
                f"{tuple(attributes)}: no requested table has these attributes. Include them in one next time.",
                attributes=tuple(attributes),
            )
        return np.asarray(places)

    def tables(self, coefficients: FloatArray) -> dict[tuple[int, ...], FloatArray]:
        """All requested tables, by their attributes, an axis of length 2 for each."""
        tables: dict[tuple[int, ...], FloatArray] = {}
        for size, group in self._by_size.items():
            masks = subset_masks(np.array(group, dtype=np.int64))
            cells = transformed(coefficients[np.searchsorted(self.masks, masks)]) / 2**size
            tables.update(zip(group, cells.reshape(len(group), *(2,) * size), strict=True))
        return {members: tables[members] for members in self.sets}

    def coefficients(self, rows: NDArray[np.bool_]) -> IntArray:
        """The exact W_T of all coefficients for rows of shape (n, attributes): n - 2 times the rows that are odd in T.

        Each coefficient takes one pass over n/64 words; no table of 2^d cells is needed.
        """
        words = -(-max(len(rows), 1) // 64)
        packed = np.zeros((self.attributes, 8 * words), dtype=np.uint8)
        packed[:, : -(-len(rows) // 8)] = np.packbits(rows.T, axis=1)
        odd = np.zeros(len(self.masks), dtype=np.int64)
        _count_odd(packed.view(np.uint64), self._members, odd)
        return len(rows) - 2 * odd

    @cached_property
    def _by_size(self) -> dict[int, list[tuple[int, ...]]]:
        groups: dict[int, list[tuple[int, ...]]] = {}
        for members in self.sets:
            groups.setdefault(len(members), []).append(members)
        return groups

    @cached_property
    def _members(self) -> IntArray:
        """The attributes of each coefficient, padded with -1, shape (coefficients, largest)."""
        largest = max(*map(len, self.sets), 1)
        members = np.full((len(self.masks), largest), -1, dtype=np.int64)
        filled = np.zeros(len(self.masks), dtype=np.int64)
        for attribute in range(self.attributes):
            inside = np.flatnonzero((self.masks >> attribute) & 1)
            members[inside, filled[inside]] = attribute
            filled[inside] += 1
        return members


def attribute_set(attributes: int, chosen: Sequence[int]) -> tuple[int, ...]:
    """Check that `chosen` holds different attributes from 0 to attributes - 1."""
    if not isinstance(chosen, Iterable):
        raise InputError(f"{describe_argument(chosen)}: give a list of attributes, such as (0, 1).")
    members = tuple(chosen)
    whole = all(isinstance(member, int | np.integer) and not isinstance(member, bool) for member in members)
    if not whole or len(set(members)) < len(members) or any(not 0 <= member < attributes for member in members):
        raise InputError(
            f"{members!r}: give different attributes, as whole numbers from 0 to {attributes - 1}.", members=members
        )
    return tuple(map(int, members))


def check_attributes(attributes: int) -> int:
    """Check that a set of this number of attributes fits into a machine word."""
    if isinstance(attributes, bool) or not isinstance(attributes, int | np.integer):
        raise InputError(f"attributes={attributes!r}: give their number.", attributes=attributes)
    if not 1 <= attributes <= _MOST_ATTRIBUTES:
        raise InputError(f"attributes={attributes}: give 1 to {_MOST_ATTRIBUTES}.", attributes=attributes)
    return int(attributes)


def subset_masks(sets: IntArray) -> IntArray:
    """All subsets of each of the sets, shape (m, s), as masks: shape (m, 2^s), the last attribute fastest."""
    bits = np.left_shift(np.int64(1), sets)
    masks = np.zeros((len(sets), 1), dtype=np.int64)
    for k in range(bits.shape[1]):
        masks = np.stack([masks, masks + bits[:, k : k + 1]], axis=2).reshape(len(sets), -1)
    return masks


def _refuse_too_many(cells: int) -> None:
    if cells > _MOST_CELLS:
        raise InputError(f"the tables have {cells:,} cells: give fewer or smaller sets, up to {_MOST_CELLS:,} cells.")


@compiled
def _count_odd(columns: NDArray[np.uint64], members: IntArray, odd: IntArray) -> None:
    """Count the rows with an odd number of ones among the members of each set."""
    words = columns.shape[1]
    mixed = np.zeros(_BLOCK, np.uint64)
    pairs, fours, eights = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
    ones, one, two, four, last = np.uint64(0x0101010101010101), np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)
    for start in range(0, words, _BLOCK):
        size = min(_BLOCK, words - start)
        for which in range(len(members)):
            mixed[:size] = np.uint64(0)
            for k in range(members.shape[1]):
                member = members[which, k]
                if member >= 0:
                    for word in range(size):
                        mixed[word] ^= columns[member, start + word]
            total = np.uint64(0)
            for word in range(size):
                bits = mixed[word]
                bits -= (bits >> one) & pairs
                bits = (bits & fours) + ((bits >> two) & fours)
                bits = (bits + (bits >> four)) & eights
                total += (bits * ones) >> last
            odd[which] += np.int64(total)


def transformed(values: NDArray[Any]) -> NDArray[Any]:
    """The Walsh-Hadamard transform along the last axis, of a length 2^d: sum over b of (-1)^{T.b} values[b].

    Twice the transform is 2^d times the values. Exact for whole numbers.

    >>> transformed(np.array([3, 1, 0, 2])).tolist()
    [6, 0, 2, 4]
    """
    result = np.array(values)
    size = result.shape[-1]
    half = 1
    while half < size:
        pairs = result.reshape(*result.shape[:-1], size // (2 * half), 2, half)
        first, second = pairs[..., 0, :].copy(), pairs[..., 1, :]
        pairs[..., 0, :] += second
        pairs[..., 1, :] = first - second
        half *= 2
    return result


@dataclass(frozen=True, eq=False)
class WalshStrategy:
    """A whole weight for each coefficient: weight times coefficient is released.

    `worth` is what a unit of variance in each coefficient adds to the mean squared error of the outputs.

    Notes
    -----
    A row, or a count, enters each coefficient as +1 or -1, so one unit moves the release by exactly ||a||_2. At noise
    ||a|| / mu the mean squared error is (sum a_T^2) (sum worth_T / a_T^2) / mu^2. By Cauchy and Schwarz its minimum is
    (sum sqrt worth_T)^2 / mu^2, for a_T^2 proportional to sqrt worth_T.
    """

    worth: FloatArray
    weights: IntArray
    variances: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        mean = float((self.worth / self.weights.astype(np.float64) ** 2).sum())
        object.__setattr__(self, "variances", np.array([[mean]]))
        object.__setattr__(self, "weights", frozen(self.weights))

    @property
    def length(self) -> int:
        return len(self.weights)

    @property
    def ideal(self) -> float:
        return float(np.sqrt(self.worth).sum()) ** 2

    def applied(self, steps: IntArray) -> IntArray:
        return steps * self.weights

    def outputs(self, released: FloatArray) -> FloatArray:
        return np.asarray(released / self.weights)[None]
