"""How many people have a found position of their own, within so many pixels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from cloakwork._checks import FloatArray, IntArray
from cloakwork.demo.recorded import Position
from papers.trials import Mean

WITHIN = (1.0, 2.0, 3.0, 4.0, 6.0)


@dataclass(frozen=True)
class Shares:
    """Share of the people found within each of `WITHIN`: with errors over pictures, and over people where known."""

    over_pictures: tuple[Mean, ...]
    between_people: tuple[float, ...] = ()

    def within(self, reach: float) -> Mean:
        """The share within so many pixels, with the larger of its errors."""
        number = WITHIN.index(reach)
        share = self.over_pictures[number]
        return Mean(share.value, max(share.error, self.between_people[number] if self.between_people else 0.0))


def shares(
    people: Sequence[FloatArray], found: Sequence[Sequence[Position]], names: Sequence[IntArray] | None = None
) -> Shares:
    """Share of the people that have a found position of their own; `names` say who is who in all pictures."""
    hits = [near(at, np.array(listed).reshape(-1, 2)) for at, listed in zip(people, found, strict=True)]
    counts = np.array([len(at) for at in people])
    sums, total = np.array([one.sum(axis=0) for one in hits]), counts.sum()
    means = sums.sum(axis=0) / total
    rough = (sums.sum(axis=0) + 1) / (total + 2)  # pictures that all are alike do not make it certain
    errors = np.maximum(_error(sums, counts, means), np.sqrt(rough * (1 - rough) / total))
    pairs = tuple(Mean(float(mean), float(error)) for mean, error in zip(means, errors, strict=True))
    if names is None:
        return Shares(pairs)
    everyone, who = np.concatenate(hits), np.concatenate(names[: len(hits)])
    each = np.array([everyone[who == name].sum(axis=0) for name in np.unique(who)])
    between = _error(each, np.bincount(who)[np.unique(who)], means)
    return Shares(pairs, tuple(between.tolist()))


def _error(sums: FloatArray, counts: IntArray, means: FloatArray) -> FloatArray:
    """Standard error of a share over groups that belong together, so many people each."""
    groups = len(counts)
    spread = ((sums - means * counts[:, None]) ** 2).sum(axis=0)
    return np.asarray(np.sqrt(spread * groups / max(groups - 1, 1)) / counts.sum())


def near(people: FloatArray, found: FloatArray) -> FloatArray:
    """Who has a position of their own within each of `WITHIN`: 1 or 0, shape (people, reaches)."""
    apart = np.hypot(*(people[:, None] - found[None]).transpose(2, 0, 1))
    hits = np.zeros((len(people), len(WITHIN)))
    for column, reach in enumerate(WITHIN):
        mine, theirs = linear_sum_assignment(np.where(apart <= reach, apart, 1e3))
        hits[mine, column] = apart[mine, theirs] <= reach
    return hits
