"""Betting against a claim: wealth that cannot be expected to grow while the claim holds."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from cloakwork._checks import FloatArray
from cloakwork.auditing.event_search import CandidateEvent, Candidates
from cloakwork.auditing.output_events import Mask
from cloakwork.auditing.portfolio import EventFamily
from cloakwork.auditing.report_samples import Past, Reports

PARTS = np.array([1.0, 0.5, 0.2])  # of the stake that would have grown fastest: luck flatters a chosen event
LARGEST_STAKE = 0.98
_HALVINGS = 22
_HEAD_START = 3.0
LARGEST_EPSILON = 700.0
_BELOW = np.concatenate([np.arange(18) * 0.05, np.arange(90, 101) * 0.01])
_ABOVE = np.array([1e-6, 1e-4, 1e-3, 2e-3, 5e-3, *np.arange(1, 10) * 0.01, *np.geomspace(0.1, 12.0, 22)])
_DELTAS = np.concatenate([[0.0], np.geomspace(1e-8, 1e-2, 25), np.linspace(0.015, 0.95, 30)])


class Book:
    """All bets of an audit, each against a grid of claims at once.

    For an event E chosen before they came, a pair of reports x on input 0 and y on input 1 pays
    1 + f Z / (e^eps + delta), Z = 1[x in E] - e^eps 1[y in E] - delta, for a stake f in [0, 1).

    Notes
    -----
    Under the claim Z has mean at most 0, so the product of these factors, and any average of such products over events,
    stakes and directions, is a non-negative supermartingale that starts at 1: it ever reaches 1/a with probability at
    most a (Ville's inequality). Hence no split of the data and no correction for looking often.

    That needs the law of x, and that of y, to be the same whatever the pairs before were. Dependence between x and y of
    one pair does not matter: the mean of Z is a difference of two.

    A bet on k reports of a run is against (k eps, k delta), which k reports keep that are private given those before
    them. It needs runs that do not depend on earlier runs, and nothing of the reports within one.
    """

    def __init__(self, families: list[EventFamily], *, epsilon: float, delta: float, confidence: float) -> None:
        self._epsilons = _epsilons(epsilon)
        self._deltas = _grid_deltas(delta)
        self._claim = epsilon, delta
        self._at_claim = int(np.searchsorted(self._epsilons, epsilon))
        epsilons = np.concatenate([self._epsilons, np.full(len(self._deltas), epsilon)])
        deltas = np.concatenate([np.full(len(self._epsilons), delta), self._deltas])
        self._grid = np.stack([epsilons, deltas])
        self._threshold = -math.log1p(-confidence)
        self._most = np.zeros(len(epsilons))
        self._share_out(families, self._most)

    def reopen(self, families: list[EventFamily]) -> None:
        """Continue with other families, which share the wealth of the present ones."""
        self._share_out(families, self._total())

    def _share_out(self, families: list[EventFamily], wealth: FloatArray) -> None:
        self._plain = np.array([family.plain for family in families])
        self._spans = [family.span for family in families]
        self._pays = np.stack([payments(*(span * self._grid)) for span in self._spans], axis=1)
        shares = np.array([family.share for family in families])
        self._log_share = np.log(shares / (2 * len(PARTS)))[:, None, None, None]
        self._wealth = np.zeros((len(families), 2, len(PARTS), 1)) + wealth
        self._stakes = np.zeros_like(self._wealth)
        self._choices: list[Candidates] = [(None, None)] * len(families)

    def _total(self) -> FloatArray:
        """The logarithm of the wealth against each claim of the grid."""
        return np.asarray(logsumexp(self._wealth + self._log_share, axis=(0, 1, 2)))

    def choose(self, choices: list[Candidates]) -> None:
        """Fix the events and stakes of the next batch."""
        self._choices = choices
        p, q = (np.array([[_of(choice, name) for choice in pair] for pair in choices]) for name in ("p", "q"))
        best = best_stakes(p[..., None], q[..., None], self._pays[:, :, None, :])
        self._stakes = best[:, :, None, :] * PARTS[:, None]

    def settle(self, x: Reports, y: Reports) -> None:
        """Pay out the bets on a batch of pairs."""
        counts = np.zeros((4, len(self._choices), 2))
        runs = x.runs(), y.runs()
        for family, pair in enumerate(self._choices):
            sides = (x, y) if self._spans[family] == 1 else runs
            for way, choice in enumerate(pair):
                if choice is not None and self._stakes[family, way].any():
                    ins = [choice.event.holds(side) for side in sides]
                    counts[:, family, way] = _four(ins[way], ins[1 - way])
        for number, pays in zip(counts, self._pays, strict=True):
            self._wealth += number[:, :, None, None] * np.log1p(self._stakes * pays[:, None, None, :])
        self._most = np.maximum(self._most, self._total())

    @property
    def wealth(self) -> float:
        """The present wealth of an initial stake of 1 against the claim."""
        return float(np.exp(self._total()[self._at_claim]))

    @property
    def violation(self) -> bool:
        """Whether the claim is rejected."""
        return self.epsilon_lower > self._claim[0]

    @property
    def epsilon_lower(self) -> float:
        """The largest epsilon of the grid up to which all are rejected, 0 where none is."""
        return _up_to(self._epsilons, self._most[: len(self._epsilons)] >= self._threshold)

    @property
    def delta_lower(self) -> float:
        """The largest delta of the grid up to which all are rejected at the claimed epsilon, 0 where none is.

        It is not raised to the claimed delta where the claim is rejected and a smaller delta stands: a bound from two
        tests would be wrong whenever either is.
        """
        return _up_to(self._deltas, self._most[len(self._epsilons) :] >= self._threshold)

    def winner(self) -> tuple[int, int, CandidateEvent]:
        """The family, direction and event that have won most against the claim, preferably of a plain family."""
        wealth = (self._wealth + self._log_share)[..., self._at_claim].max(axis=2) + _HEAD_START * self._plain[:, None]
        for place in np.argsort(-wealth, axis=None):
            family, way = np.unravel_index(place, wealth.shape)
            choice = self._choices[int(family)][int(way)]
            if choice is not None:
                return int(family), int(way), choice
        raise AssertionError("no family has an event")  # not after a violation: only events win


def counts_of(choice: CandidateEvent, past: Past) -> tuple[int, int]:
    """Remembered reports on inputs 0 and 1 that are in the event."""
    return int(choice.event.holds(past.x).sum()), int(choice.event.holds(past.y).sum())


def _epsilons(epsilon: float) -> FloatArray:
    below = epsilon * _BELOW if epsilon > 0 else np.zeros(1)
    above = epsilon + _ABOVE * max(1.0, epsilon / 100)
    return np.concatenate([below, above[above < LARGEST_EPSILON + 5]])


def _grid_deltas(delta: float) -> FloatArray:
    more = delta + (1 - delta) * np.array([1e-6, 1e-4, 1e-3])
    return np.unique(np.concatenate([_DELTAS, [delta], more]))


def payments(epsilons: FloatArray, deltas: FloatArray) -> FloatArray:
    """Payment of a whole stake when x and y, only x, only y, or none is in the event; shape (4, grid)."""
    scale = np.exp(epsilons) + deltas
    return np.stack([1 / scale - 1, (1 - deltas) / scale, -np.ones_like(scale), -deltas / scale])


def _four(favoured: Mask, other: Mask) -> NDArray[np.int64]:
    both = int(np.count_nonzero(favoured & other))
    one, two = int(np.count_nonzero(favoured)), int(np.count_nonzero(other))
    return np.array([both, one - both, two - both, len(favoured) - one - two + both])


def best_stakes(p: FloatArray, q: FloatArray, pays: FloatArray) -> FloatArray:
    """The stake at which the logarithm of wealth grows fastest if the event has chances p and q (Kelly's)."""
    chances = (p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q))

    def slope(stake: FloatArray) -> FloatArray:
        return np.asarray(sum(chance * pay / (1 + stake * pay) for chance, pay in zip(chances, pays, strict=True)))

    low = np.zeros(np.broadcast_shapes(p.shape, pays[0].shape))
    high = np.full_like(low, LARGEST_STAKE)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rising = slope(middle) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return np.where(slope(np.zeros_like(low)) > 0, low, 0.0)


def _of(choice: CandidateEvent | None, name: str) -> float:
    return 0.0 if choice is None else min(float(getattr(choice, name)), 1.0)


def _up_to(grid: FloatArray, rejected: NDArray[np.bool_]) -> float:
    """The last point before the first that stands; 0 if there is none."""
    stands = np.flatnonzero(~rejected)
    first = int(stands[0]) if len(stands) else len(grid)
    return float(grid[first - 1]) if first else 0.0
