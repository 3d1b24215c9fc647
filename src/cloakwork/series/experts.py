"""Experts: what each of some schedules would cost, for each count, and the noise that hides one visit at least cost."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray, count, frozen, numbers
from cloakwork.errors import InputError

_FINENESS = 2.0**16  # steps of a release for the largest effect of one visit
_NEGLIGIBLE = 1e-12
_MOST_ROUNDS, _CLOSE = 1000, 1e-3  # of the search for the best noise: any result is private


@dataclass(frozen=True, eq=False)
class Experts:
    """Some schedules, and the loss of each for each number of people, in each public context.

    Parameters
    ----------
    names
        One for each expert, at least two.
    losses
        Shape (contexts, experts, most + 1), or without contexts (experts, most + 1): the loss of one round for a count
        of 0, 1, ..., `most`, from 0 to 1. Higher counts count as `most`. A context is public, such as the hour of day.
    settings
        What each expert sets in each context, shape (contexts, experts); None if `choose` is to return names only.

    Notes
    -----
    Let d be the change of all losses when a count in some context rises by one; what all experts have in common is left
    out, since it does not change who leads. Noise of covariance S hides every d equally or better if d' S^-1 d <= 1.
    The least total variance tr S is found by weighing the d's: S = tr(R) R, where R is the root of sum p_j d_j d_j',
    for the p that maximises tr R; p_j <- p_j d_j' R^-1 d_j / tr R climbs to it (Yu, Yaming). More contexts and
    experts cost nothing where their d's are alike.

    The release has coordinates u with d = F u, F F' = S, in whole `steps`; one visit moves them by at most `reach`.
    """

    names: Sequence[str]
    losses: ArrayLike
    settings: ArrayLike | None = None
    table: FloatArray = field(init=False, repr=False)
    steps: IntArray = field(init=False, repr=False)
    basis: FloatArray = field(init=False, repr=False)
    reach: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        names = tuple(self.names)
        if len(names) < 2 or len(set(names)) < len(names):
            raise InputError(f"names: give at least two experts, each with its own name; these are {len(names)}.")
        table = numbers("losses", self.losses)
        table = table[None] if table.ndim == 2 else table
        if table.ndim != 3 or table.shape[1] != len(names) or table.shape[2] < 2 or not len(table):
            raise InputError(
                f"losses has shape {table.shape}: give (contexts, {len(names)}, most + 1), losses for each count.",
                shape=table.shape,
            )
        bad = np.argwhere(~((table >= 0) & (table <= 1)))
        if len(bad):
            context, expert, place = bad[0].tolist()
            raise InputError(
                f"the loss of {names[expert]!r} in context {context} for a count of {place} is "
                f"{table[context, expert, place]:g}: give losses from 0 to 1, divided by the largest that can occur.",
                expert=names[expert],
                context=context,
                count=place,
            )
        changes = np.diff(table, axis=2)
        changes = changes - changes.mean(axis=1, keepdims=True)
        distinct = np.unique(np.moveaxis(changes, 1, 2).reshape(-1, len(names)).round(12), axis=0)
        basis = _best_basis(distinct[np.abs(distinct).max(axis=1) > _NEGLIGIBLE])
        if not basis.size:
            raise InputError("losses: all experts change alike with the count, so there is nothing to learn from it.")
        paths = np.cumsum(np.moveaxis(changes, 1, 2) @ np.linalg.pinv(basis).T, axis=1)
        steps = np.zeros((len(table), table.shape[2], basis.shape[1]), dtype=np.int64)
        steps[:, 1:] = np.rint(paths * _FINENESS)
        square = int((np.diff(steps, axis=1) ** 2).sum(axis=2).max())
        settings = None if self.settings is None else numbers("settings", self.settings)
        if settings is not None and settings.shape != table.shape[:2]:
            raise InputError(f"settings has shape {settings.shape}: give {table.shape[:2]}.", shape=settings.shape)
        for name, value in {
            "names": names,
            "losses": frozen(table),
            "table": frozen(table),
            "settings": settings,
            "steps": frozen(steps),
            "basis": frozen(basis / _FINENESS),
            "reach": math.isqrt(square - 1) + 1,
        }.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of_schedules(
        cls,
        schedules: Mapping[str, Sequence[float]],
        loss: Callable[[FloatArray, FloatArray], FloatArray],
        *,
        most: int,
        step: float = 1.0,
    ) -> "Experts":
        """Make experts of schedules: names with a setting for each context.

        `loss(settings, counts)` returns losses from 0 to 1 for arrays of settings and counts, which it broadcasts.
        Counts go from 0 to `most` in steps of `step`.

        >>> def loss(level, people):
        ...     return np.where(people / 6 > level, people / 6 - level, (level - people / 6) / 2)
        >>> Experts.of_schedules({"low": [0.2, 0.0], "high": [0.9, 0.3]}, loss, most=6).table.shape
        (2, 2, 7)
        """
        if not isinstance(schedules, Mapping):
            raise InputError('schedules: give names with settings, such as {"low": [0.2], "high": [0.8]}.')
        lengths = {len(setting) for setting in schedules.values()}
        if len(lengths) > 1:
            raise InputError(f"schedules have {sorted(lengths)} settings: give each one for each context.")
        settings = numbers("schedules", [list(setting) for setting in schedules.values()]).T
        bad = np.argwhere(~np.isfinite(settings))
        if len(bad):
            context, expert = bad[0].tolist()
            name = list(schedules)[expert]
            raise InputError(f"schedules: {name!r} has no finite setting in context {context}.", expert=name)
        counts = step * np.arange(count("most", most) / step + 1e-9)
        return cls(tuple(schedules), loss(settings[:, :, None], counts), settings)

    @property
    def most(self) -> int:
        """The largest count that matters."""
        return int(self.table.shape[2]) - 1


def _best_basis(changes: FloatArray) -> FloatArray:
    """F, shape (experts, coordinates), so that each change is F u with ||u|| <= 1 and tr F F' is about the least."""
    weights = np.full(len(changes), 1 / max(len(changes), 1))
    basis = np.zeros((changes.shape[1], 0))
    for _ in range(_MOST_ROUNDS if len(changes) else 0):
        sizes, vectors = np.linalg.eigh((changes * weights[:, None]).T @ changes)
        used = sizes > _NEGLIGIBLE * sizes[-1]
        roots, vectors = np.sqrt(sizes[used]), vectors[:, used]
        lengths = ((changes @ vectors) ** 2 / roots).sum(axis=1)
        basis = vectors * np.sqrt(roots * lengths.max())
        if lengths.max() <= (1 + _CLOSE) * roots.sum():
            break
        weights *= lengths / roots.sum()
        weights /= weights.sum()
    return basis
