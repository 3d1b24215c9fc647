"""Bets against a claim: wealth that cannot be expected to grow while the claim holds."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from cloakwork._checks import FloatArray
from cloakwork.auditing.events import AuditedClaim, Event
from cloakwork.auditing.portfolio import Bet
from cloakwork.auditing.reports import ReportPair

LARGEST_EPSILON = 700.0
_PARTS = np.array([1.0, 0.5, 0.2])  # of the best stake: luck flatters a chosen event
_LARGEST_STAKE = 0.98
_HALVINGS = 22
_HEAD_START = 3.0  # of events that a person can check, in the choice of the witness
_BELOW = np.concatenate([np.arange(18) * 0.05, np.arange(90, 101) * 0.01])
_ABOVE = np.array([1e-6, 1e-4, 1e-3, 2e-3, 5e-3, *np.arange(1, 10) * 0.01, *np.geomspace(0.1, 12.0, 22)])
_DELTAS = np.concatenate([[0.0], np.geomspace(1e-8, 1e-2, 25), np.linspace(0.015, 0.95, 30)])


class Book:
    """All bets of an audit, each against a grid of claims at once.

    For an event E chosen before they came, a pair of reports x on input 0 and y on input 1 pays
    1 + f Z / (e^eps + delta), Z = 1[x in E] - e^eps 1[y in E] - delta, for a stake f in [0, 1).

    Notes
    -----
    Under the claim Z has mean at most 0. So the product of these factors, and any average of such products over events,
    stakes and directions, is a non-negative supermartingale that starts at 1: it ever reaches 1/a with probability at
    most a (Ville's inequality). No split of the data and no correction for looking often is needed.

    This holds if the distributions of x and of y do not depend on earlier pairs. Dependence between x and y of one pair
    does not matter: the mean of Z is a difference of two. A bet on k reports of a run is against (k eps, k delta),
    which reports that are each private given the earlier ones keep together.
    """

    def __init__(self, bets: Sequence[Bet], claim: AuditedClaim, confidence: float) -> None:
        deltas = np.unique([*_DELTAS, claim.delta, *(claim.delta + (1 - claim.delta) * np.array([1e-6, 1e-4, 1e-3]))])
        self._epsilons, self._deltas = _epsilons(claim.epsilon), deltas
        self._claim, self._threshold = claim, -math.log1p(-confidence)
        self._at_claim = int(np.searchsorted(self._epsilons, claim.epsilon))
        grid = np.stack(
            [
                np.concatenate([self._epsilons, np.full(len(deltas), claim.epsilon)]),
                np.concatenate([np.full(len(self._epsilons), claim.delta), deltas]),
            ]
        )
        self._pays = np.stack([_payments(*(bet.span * grid)) for bet in bets], axis=1)  # (4, bets, grid)
        shares = np.array([bet.share for bet in bets])
        self._log_shares = np.log(shares / shares.sum() / (2 * len(_PARTS)))[:, None, None, None]
        self._wealth = np.zeros((len(bets), 2, len(_PARTS), grid.shape[1]))
        self._most = np.zeros(grid.shape[1])
        self.choose(bets)

    def choose(self, bets: Sequence[Bet]) -> None:
        """Fix the events and stakes of the next batch."""
        self._bets = bets
        p, q = (np.array([[_chance(event, name) for event in bet.choice] for bet in bets]) for name in ("p", "q"))
        best = _best_stakes(p[..., None], q[..., None], self._pays[:, :, None, :])
        self._stakes = best[:, :, None, :] * _PARTS[:, None]

    def settle(self, batch: ReportPair) -> None:
        """Pay out the bets on a batch of new pairs."""
        runs = batch.runs()
        counts = np.zeros((4, len(self._bets), 2))
        for number, bet in enumerate(self._bets):
            for way, event in enumerate(bet.choice):
                if event is not None and self._stakes[number, way].any():
                    favoured, other = (event.holds((batch if bet.span == 1 else runs)[k]) for k in (way, 1 - way))
                    both = np.count_nonzero(favoured & other)
                    ones, others = np.count_nonzero(favoured), np.count_nonzero(other)
                    counts[:, number, way] = both, ones - both, others - both, len(favoured) - ones - others + both
        for times, pays in zip(counts, self._pays, strict=True):
            self._wealth += times[:, :, None, None] * np.log1p(self._stakes * pays[:, None, None, :])
        self._most = np.maximum(self._most, logsumexp(self._wealth + self._log_shares, axis=(0, 1, 2)))

    @property
    def violation(self) -> bool:
        """Whether the claim is rejected."""
        return self.epsilon_lower > self._claim.epsilon

    @property
    def epsilon_lower(self) -> float:
        """The largest epsilon of the grid up to which every claim is rejected, 0 if none is."""
        return _rejected_up_to(self._epsilons, self._most[: len(self._epsilons)] >= self._threshold)

    @property
    def delta_lower(self) -> float:
        """The largest delta of the grid up to which every claim is rejected at the claimed epsilon, 0 if none is."""
        return _rejected_up_to(self._deltas, self._most[len(self._epsilons) :] >= self._threshold)

    def winner(self) -> tuple[Bet, Event]:
        """Return the bet and the event that have won most against the claim, preferably a plain one."""
        plain = np.array([bet.plain for bet in self._bets])
        wealth = (self._wealth + self._log_shares)[..., self._at_claim].max(axis=2) + _HEAD_START * plain[:, None]
        ranking = (np.unravel_index(place, wealth.shape) for place in np.argsort(-wealth, axis=None))
        events = ((self._bets[k], self._bets[k].choice[way]) for k, way in ranking)
        return next((bet, event) for bet, event in events if event is not None)


def _epsilons(epsilon: float) -> FloatArray:
    below = epsilon * _BELOW if epsilon > 0 else np.zeros(1)
    above = epsilon + _ABOVE * max(1.0, epsilon / 100)
    return np.concatenate([below, above[above < LARGEST_EPSILON + 5]])


def _payments(epsilons: FloatArray, deltas: FloatArray) -> FloatArray:
    """Return what a whole stake pays if x and y, only x, only y, or none is in the event; shape (4, grid)."""
    scale = np.exp(epsilons) + deltas
    return np.stack([1 / scale - 1, (1 - deltas) / scale, -np.ones_like(scale), -deltas / scale])


def _best_stakes(p: FloatArray, q: FloatArray, pays: FloatArray) -> FloatArray:
    """Return the stakes at which log wealth grows fastest if the event has chances p and q (Kelly)."""
    chances = (p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q))

    def slope(stake: FloatArray) -> FloatArray:
        return np.asarray(sum(chance * pay / (1 + stake * pay) for chance, pay in zip(chances, pays, strict=True)))

    low = np.zeros(np.broadcast_shapes(p.shape, pays[0].shape))
    high = np.full_like(low, _LARGEST_STAKE)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rising = slope(middle) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return np.where(slope(np.zeros_like(low)) > 0, low, 0.0)


def _chance(event: Event | None, name: str) -> float:
    return 0.0 if event is None else min(float(getattr(event, name)), 1.0)


def _rejected_up_to(grid: FloatArray, rejected: NDArray[np.bool_]) -> float:
    stands = np.flatnonzero(~rejected)
    first = int(stands[0]) if len(stands) else len(grid)
    return float(grid[first - 1]) if first else 0.0
