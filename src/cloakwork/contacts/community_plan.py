"""Whether communities can be found from flipped contacts, from which epsilon on, and how well."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from cloakwork._checks import FloatArray, count, instance_of, rounded_up
from cloakwork.contacts.blocks import Blocks
from cloakwork.contacts.contact_pairs import report_rates
from cloakwork.privacy import Flip

LARGEST_EPSILON = 60.0  # no bit of any network flips
PERSON_DELTA = 1e-6  # at which the privacy of all contacts of a person is stated
DRAWS = 20_000


@final
@dataclass(frozen=True, eq=False)
class CommunityPlan:
    """What can be learnt about the groups of n people.

    `snr` is the signal to noise of the difference that shows best, and `right` the share of people whom `communities`
    puts into their group, for large n. `least_epsilon` and `least_n` are where `snr` passes 1, or infinite. `reports`
    is how many ones all devices together send on average.
    """

    n: int
    blocks: Blocks
    epsilon: float
    snr: float
    right: float
    least_epsilon: float
    least_n: float
    reports: float

    @property
    def findable(self) -> bool:
        """Whether any groups can be found."""
        return self.snr > 1

    def explain(self) -> str:
        """Explain in plain sentences what is learnt, and what is hidden."""
        typical = max(1, round((self.n - 1) * self.blocks.density))
        person = rounded_up(Flip(epsilon=self.epsilon, readings_per_window=1).over(typical, PERSON_DELTA), 3)
        learnt = f"the group of {100 * self.right:.0f} % of" if self.findable else "nothing about the groups of"
        people = f"from {self.least_n:,.0f} people on" if math.isfinite(self.least_n) else "with no number of people"
        least = f"from epsilon {rounded_up(self.least_epsilon, 3)} on" if math.isfinite(self.least_epsilon) else "never"
        return (
            f"Learnt: {learnt} {self.n:,} people (signal to noise {self.snr:.3g}; it must be above 1). Groups begin to "
            f"show {people} at epsilon {self.epsilon:g}, and {least} with {self.n:,} people.\n"
            "Hidden: whether any two people met. Any reports are at most "
            f"e^{self.epsilon:g} = {rounded_up(math.exp(self.epsilon), 3)} times as likely if they did as if they did "
            "not.\n"
            f"Less hidden: everything about one person. All {typical} contacts of a typical person together have "
            f"epsilon {person} at delta {PERSON_DELTA:g}. Every further release adds to both."
        )


def plan_communities(*, n: int, blocks: Blocks, epsilon: float, kept: float = 1.0) -> CommunityPlan:
    """Plan whether groups can be found among n people whose devices flip the bit of each pair.

    `blocks` are the groups that you expect, `epsilon` is the privacy of one pair, and `kept` is the share of its ones
    that a device sends (see `simulate_contacts`).

    Notes
    -----
    A device sends ones at the rates w = f + (1 - 2 f) W, f = 1/(1 + e^epsilon). Let l be the largest eigenvalue of
    sqrt(s_a s_b) (w_ab - mean w), for the shares s, and v the mean of w (1 - w) for the group where it is largest. Then
    snr = n l^2/v; for two equal groups, n (p - q)^2/(2 (p (1 - p) + q (1 - q))). Below 1, no method beats a guess there
    in large networks (Deshpande, Abbe and Montanari); for other groups, 1 is where the method of `communities` begins
    to work. Where ones are rare this is McMillan's Table 5.1. In each direction, a person is Gaussian around
    sqrt(snr - 1) times their group, and is put into the nearest one.

    >>> office = Blocks([[0.05, 0.001], [0.001, 0.05]])
    >>> plan = plan_communities(n=500, blocks=office, epsilon=3.0)
    >>> plan.findable, round(plan.snr, 2), round(plan.right, 2), round(plan.least_epsilon, 2)
    (True, 3.78, 0.95, 1.69)
    """
    instance_of("blocks", blocks, Blocks, "the groups as Blocks, such as Blocks([[0.05, 0.001], [0.001, 0.05]])")
    people, flip = count("n", n, least=2), Flip(epsilon=epsilon, readings_per_window=1)
    lie, truth = report_rates(flip, kept)
    seen = blocks.reported(lie, truth)
    signal, places = _directions(seen, people)
    snr = float(signal.max())
    least = _least_epsilon(blocks, people, lie + truth), math.floor(people / snr) + 1.0 if snr > 0 else math.inf
    reports = seen.density * people * (people - 1) / 2
    return CommunityPlan(people, blocks, flip.epsilon, snr, _right(signal, places, blocks.shares), *least, reports)


def _directions(blocks: Blocks, n: int) -> tuple[FloatArray, FloatArray]:
    """The signal to noise of each direction in which groups differ (k,), and the coordinates of the groups (k, k)."""
    root = np.sqrt(blocks.shares)
    values, vectors = np.linalg.eigh(root[:, None] * (blocks.matrix - blocks.density) * root)
    values[np.abs(values) < 1e-13 * blocks.matrix.max()] = 0.0
    variance = max(float((blocks.matrix * (1 - blocks.matrix) @ blocks.shares).max()), 1e-300)
    return n * values**2 / variance, vectors / root[:, None]


def _right(snr: FloatArray, places: FloatArray, shares: FloatArray) -> float:
    """The share of people who are nearest to their own group, in coordinates whose noise is 1."""
    shown = snr > 1
    if not shown.any():
        return float(shares.max())
    centres = places[:, shown] * np.sqrt(np.minimum(snr[shown], 1e12) - 1)
    noise = np.random.default_rng(0).standard_normal((DRAWS, centres.shape[1]))
    squares = [((noise[:, None] + (centre - centres)) ** 2).sum(axis=2) for centre in centres]
    return float(shares @ [(square.argmin(axis=1) == group).mean() for group, square in enumerate(squares)])


def _least_epsilon(blocks: Blocks, n: int, kept: float) -> float:
    """The epsilon at which the signal to noise passes 1, rounded up."""

    def findable(epsilon: float) -> bool:
        lie = kept / (1 + math.exp(epsilon))
        return bool(_directions(blocks.reported(lie, kept - lie), n)[0].max() > 1)

    low, high = 0.0, LARGEST_EPSILON
    if not findable(high):
        return math.inf
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if findable(middle) else (middle, high)
    return high
