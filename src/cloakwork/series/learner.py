"""Learners: follow the schedule that does best, by private running sums of what each would have cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cloakwork._checks import FloatArray, IntArray, as_number, count, instance_of, numbers, read_only, whole_numbers
from cloakwork.errors import BudgetError, CalibrationError, InputError, ReadingError
from cloakwork.privacy import Immutable, Ledger
from cloakwork.series.filters import RunningSum
from cloakwork.series.stream import Stream

_FINENESS = 2.0**16  # steps of a release for the largest effect of one visit
_NEGLIGIBLE = 1e-12
_MAX_ROUNDS, _CLOSE = 1000, 1e-3  # of the search for the best noise: any result is private


@dataclass(frozen=True, eq=False)
class Experts:
    """Some schedules, and the loss of each for each number of people, in each public context.

    Parameters
    ----------
    names
        One for each expert, at least two.
    losses
        Shape (contexts, experts, max_count + 1), or without contexts (experts, max_count + 1): the loss of one round
        for a count of 0, 1, ..., `max_count`, from 0 to 1. Higher counts count as `max_count`. A context is public,
        such as the hour of day.

    Notes
    -----
    Let d be the change of all losses when a count in some context rises by one; what all experts have in common is left
    out, since it does not change who leads. Noise of covariance S hides every d equally or better if d' S^-1 d <= 1.
    The least total variance tr S is found by weighing the d's: S = tr(R) R, where R is the root of sum p_j d_j d_j',
    for the p that maximises tr R; p_j <- p_j d_j' R^-1 d_j / tr R climbs to it (Yu, Yaming).

    The release has coordinates u with d = basis u, in whole `steps`; one visit moves them by at most `reach`.

    >>> Experts(["low", "high"], [[0.0, 0.5, 1.0], [0.3, 0.2, 0.1]]).table.shape
    (1, 2, 3)
    """

    names: Sequence[str]
    losses: ArrayLike = field(repr=False)
    table: FloatArray = field(init=False, repr=False)
    steps: IntArray = field(init=False, repr=False)
    basis: FloatArray = field(init=False, repr=False)
    reach: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        names, table = tuple(self.names), numbers("losses", self.losses)
        table = table[None] if table.ndim == 2 else table
        if len(names) < 2 or len(set(names)) < len(names):
            raise InputError(f"names: give at least two experts, each with its own name; these are {len(names)}.")
        if table.ndim != 3 or table.shape[1] != len(names) or table.shape[2] < 2 or not len(table):
            raise InputError(
                f"losses has shape {table.shape}: give (contexts, {len(names)}, max_count + 1).", shape=table.shape
            )
        bad = np.argwhere(~((table >= 0) & (table <= 1)))
        if len(bad):
            context, expert, people = bad[0].tolist()
            raise InputError(
                f"the loss of {names[expert]!r} in context {context} for a count of {people} is not from 0 to 1: "
                "divide all losses by the largest that can occur.",
                expert=names[expert],
                context=context,
                count=people,
            )
        changes = np.diff(table, axis=2)
        changes = np.moveaxis(changes - changes.mean(axis=1, keepdims=True), 1, 2)
        distinct = np.unique(changes.reshape(-1, len(names)).round(12), axis=0)
        basis = _best_basis(distinct[np.abs(distinct).max(axis=1) > _NEGLIGIBLE])
        if not basis.size:
            raise InputError("losses: all experts change alike with the count, so there is nothing to learn from it.")
        paths = np.cumsum(changes @ np.linalg.pinv(basis).T, axis=1)
        steps = np.pad(np.rint(paths * _FINENESS).astype(np.int64), ((0, 0), (1, 0), (0, 0)))
        square = int((np.diff(steps, axis=1) ** 2).sum(axis=2).max())
        arrays = {"table": table, "steps": steps, "basis": basis / _FINENESS}
        fields = {name: read_only(array) for name, array in arrays.items()}
        for name, value in (fields | {"names": names, "reach": math.isqrt(square - 1) + 1}).items():
            object.__setattr__(self, name, value)


@final
class Learner(Immutable):
    """Chooses among experts, round by round, and learns from private counts.

    Parameters
    ----------
    experts
        What each would cost; public.
    horizon
        The largest number of rounds.
    epsilon, delta
        The guarantee, for everything that the learner ever publishes or plays.
    contribution
        How many visits of one protected event or person count in all rounds together; 1 hides one visit in one round.
    rate
        How quickly to trust a lead: 1 / `rate` is the lead, in units of loss, that chance may still overturn. Infinity
        plays the leader.

    Notes
    -----
    Each count becomes a whole vector (`Experts`), one visit moves it by at most `reach`, and running sums of it are
    released by one `Stream` for each coordinate. Everything else follows from these sums and public losses, so no play
    spends anything. The plays minimise total_i - G_i / rate, with G of Gumbel's distribution drawn once: over G this is
    Hedge. G serves the regret, not privacy; at rate infinity the noise of the sums serves both:
    docs/science/learning.md.

    A learner lives in one process, as its streams do.

    Examples
    --------
    >>> experts = Experts(["low", "high"], [[0.0, 0.5, 1.0], [0.3, 0.2, 0.1]])
    >>> learner = Learner(experts, 1000, epsilon=1.0, delta=1e-6)
    >>> learner.choose() in (0, 1)
    True
    >>> learner.learn(2)
    >>> learner.time
    1
    """

    _kind = "learner"

    def __init__(
        self,
        experts: Experts,
        horizon: int,
        *,
        epsilon: float,
        delta: float,
        contribution: int = 1,
        rate: float = 0.5,
    ) -> None:
        self.experts = instance_of("experts", experts, Experts, "Experts(names, losses)")
        self.horizon = count("horizon", horizon)
        self.rate = as_number("rate", rate)
        if not self.rate > 0:
            raise InputError(f"rate={rate!r}: give a number above 0, or infinity to play the leader.", rate=rate)
        self.contribution = count("contribution", contribution, error=CalibrationError)
        coordinates = experts.basis.shape[1]
        self.streams = tuple(
            Stream(
                RunningSum(),
                horizon,
                epsilon=epsilon,
                delta=delta,
                contribution=experts.reach * self.contribution,
                together=coordinates,
            )
            for _ in range(coordinates)
        )
        self.epsilon, self.delta = float(epsilon), float(delta)
        self._chance = np.random.default_rng().gumbel(size=len(experts.names))
        self._public_total = np.zeros(len(experts.names))
        self._totals = np.zeros(len(experts.names))
        self._lock, self._open = Lock(), list[bool]()
        self._ledger = Ledger(
            self.horizon,
            unit="rounds",
            owner="learner",
            remedy="Start a new learner with its own budget for new rounds; choose() plays beyond the horizon too.",
        )
        self._freeze()

    @property
    def time(self) -> int:
        """The number of rounds so far."""
        return self._ledger.spent

    @property
    def totals(self) -> FloatArray:
        """The estimated losses of the experts so far, without what they have in common. Public."""
        return self._totals.copy()

    @property
    def standard_deviations(self) -> FloatArray:
        """The standard deviation of the noise in each of the `totals`."""
        variance = float(self.streams[0].variances[self.time - 1]) if self.time else 0.0
        return np.asarray(np.sqrt(variance * (self.experts.basis**2).sum(axis=1)))

    def choose(self) -> int:
        """Return the number of the expert to follow next. This spends nothing, however often it is called."""
        return int(np.argmin(self._totals - self._chance / self.rate))

    def learn(self, visits: int, context: int = 0) -> None:
        """Learn the number of visits of a round that is over.

        Call it once for each round, also if nobody came: the number of rounds is public. An interruption ends the
        learning, since a count that is learned again would count twice.
        """
        if isinstance(visits, bool) or not isinstance(visits, int | np.integer) or visits < 0:
            raise ReadingError("visits: give a whole number, 0 or above.")
        [place] = self._contexts([context])
        steps = self.experts.steps[place, min(visits, self.experts.steps.shape[1] - 1)].tolist()
        with self._lock:
            if self._open:
                raise BudgetError("this learner was interrupted while it learned a round: start a new one.")
            self._ledger.spend(1)
            self._open.append(True)
            sums = [stream.push(step).value for stream, step in zip(self.streams, steps, strict=True)]
            self._public_total[:] += self._public(np.array([place]))[0]
            self._totals[:] = self._public_total + self.experts.basis @ np.array(sums)
            self._open.clear()

    def simulate(self, counts: ArrayLike, contexts: ArrayLike | None = None, *, rng: np.random.Generator) -> FloatArray:
        """Return the probability that a new learner plays each expert in each round, for simulated noise: (n, experts).

        Reproducible, hence not private; this spends nothing.
        """
        visits = whole_numbers("counts", counts)
        places = self._contexts(np.zeros_like(visits) if contexts is None else contexts)
        if not len(visits) or len(places) != len(visits) or (visits < 0).any():
            raise ReadingError("counts: give at least one, whole numbers of 0 or above, and one context for each.")
        steps = self.experts.steps[places, np.minimum(visits, self.experts.steps.shape[1] - 1)]
        sums = self.streams[0].simulate(steps.T, rng=rng).values
        totals = np.cumsum(self._public(places), axis=0) + sums.T @ self.experts.basis.T
        before = np.vstack([np.zeros(len(self.experts.names)), totals[:-1]])
        if math.isinf(self.rate):
            return np.asarray(np.eye(before.shape[1])[before.argmin(axis=1)])
        return np.asarray(special.softmax(-self.rate * before, axis=1))

    def __reduce__(self) -> str:
        raise BudgetError("a learner cannot be copied: the copy would draw other noise for the same rounds.")

    def _public(self, places: IntArray) -> FloatArray:
        """The losses for a count of 0, which need no privacy, without what all experts have in common."""
        base = self.experts.table[places, :, 0]
        return np.asarray(base - base.mean(axis=1, keepdims=True))

    def _contexts(self, contexts: ArrayLike) -> IntArray:
        places = whole_numbers("context", contexts)
        if ((places < 0) | (places >= len(self.experts.table))).any():
            raise InputError(f"context: give a whole number from 0 to {len(self.experts.table) - 1}.")
        return places


def _best_basis(changes: FloatArray) -> FloatArray:
    """Return F, shape (experts, coordinates), so that each change is F u with ||u|| <= 1 and tr F F' is about least."""
    weights = np.full(len(changes), 1 / max(len(changes), 1))
    basis = np.zeros((changes.shape[1], 0))
    for _ in range(_MAX_ROUNDS if len(changes) else 0):
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
