"""Whether communities can be found from flipped contacts, from which epsilon on, and how well."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy import special
from scipy.optimize import linear_sum_assignment

from cloakwork._checks import FloatArray, count, instance_of, rounded_up, short_repr
from cloakwork.contacts.blocks import Blocks
from cloakwork.contacts.communities import FALSE_ALARMS, communities, noise_edge
from cloakwork.contacts.contact_pairs import simulate_contacts
from cloakwork.errors import InputError
from cloakwork.privacy import Flip

MAX_EPSILON = 60.0  # no bit of any network flips
PERSON_DELTA = 1e-6  # at which `explain` gives the privacy of all contacts of a person
MAX_SIMULATED, PEOPLE_SIMULATED = 1_000, 40_000  # people in one simulated network, and in all together
MIN_NETWORKS, CLOSE_ENOUGH = 10, 0.01  # and the standard error of `right` that ends simulations
DRAWS, FIXED_POINT_STEPS, FIXED_POINT = 20_000, 200, 1e-5
MAX_SIGNAL = 1e3  # everyone is in the right group


@final
@dataclass(frozen=True, eq=False)
class CommunityPlan:
    """How much can be found out about the groups of n people.

    `snr` is the signal to noise of the difference between groups that shows best. `min_epsilon` and `min_n` are where
    it passes 1, or infinite. `reported` is the model of the ones that devices send.

    >>> office = Blocks([[0.05, 0.001], [0.001, 0.05]])
    >>> [plan_communities(n=n, blocks=office, epsilon=3.0).findable for n in (100, 500)]
    [False, True]
    """

    n: int
    blocks: Blocks
    epsilon: float
    reported: Blocks
    snr: float
    min_epsilon: float
    min_n: float

    __repr__ = short_repr

    @property
    def findable(self) -> bool:
        """Whether any groups can be found."""
        return self.snr > 1

    @property
    def right(self) -> float:
        """The share of people whom `communities` puts into their group, if it is to name groups in any case.

        Up to 1,000 people this simulates networks, which takes seconds; beyond, it is the limit of large networks.
        """
        return self._right_and_error[0]

    @property
    def right_error(self) -> float:
        """The standard error of `right`, from the simulated networks; 0 beyond 1,000 people."""
        return self._right_and_error[1]

    @cached_property
    def _right_and_error(self) -> tuple[float, float]:
        return _right_in_simulations(self) if self.n <= MAX_SIMULATED else (right_in_large_networks(self), 0.0)

    @property
    def named(self) -> float:
        """About how often `communities` names groups: the chance that one stands out from the noise."""
        if self.snr <= 1:
            return FALSE_ALARMS
        excess = math.sqrt(self.snr) + 1 / math.sqrt(self.snr) - noise_edge(self.n, self.reported.density)
        return max(FALSE_ALARMS, float(special.ndtr(excess / math.sqrt(2 * (1 - 1 / self.snr) / self.n))))

    def explain(self) -> str:
        """Explain in plain sentences what can be found out, and what is hidden."""
        typical = max(1, round((self.n - 1) * self.blocks.density))
        person = rounded_up(Flip(epsilon=self.epsilon, readings_per_window=1).compose(typical, PERSON_DELTA), 3)
        people = f"from {self.min_n:,.0f} people on" if math.isfinite(self.min_n) else "with no number of people"
        least = f"from epsilon {rounded_up(self.min_epsilon, 3)} on" if math.isfinite(self.min_epsilon) else "never"
        groups = "No method can name the groups"
        if self.findable:
            error = f" ± {rounded_up(100 * self.right_error, 1)}" if self.right_error else ""
            groups = (
                f"Groups stand out in about {100 * self.named:.0f} % of networks like this, and about "
                f"{100 * self.right:.0f}{error} % of people are then put into the right one"
            )
        return (
            f"{groups} (signal to noise {self.snr:.3g}; it must be above 1). Groups begin to show {people} at epsilon "
            f"{self.epsilon:g}, and {least} with {self.n:,} people.\n"
            f"Hidden: whether any two people met. Any reports are at most e^{self.epsilon:g} = "
            f"{rounded_up(math.exp(self.epsilon), 3)} times as likely if they did as if they did not.\n"
            f"Less hidden: everything about one person. All {typical} contacts of a typical person together have "
            f"epsilon {person} at delta {PERSON_DELTA:g}. Every further release adds to both."
        )


def plan_communities(*, n: int, blocks: Blocks, epsilon: float) -> CommunityPlan:
    """Plan whether groups can be found among n people whose devices flip the bit of each pair.

    `blocks` are the groups that you expect, and `epsilon` is the privacy of one pair.

    Notes
    -----
    A device sends ones at the rates w = f + (1 - 2 f) W, f = 1/(1 + e^epsilon). Let l be the largest eigenvalue of
    sqrt(s_a s_b) (w_ab - mean w), for the shares s, and v the mean of w (1 - w) for the group where it is largest. Then
    snr = n l^2/v; for two equal groups, n (p - q)^2/(2 (p (1 - p) + q (1 - q))). Below 1, no method beats a guess there
    in large networks (Deshpande, Abbe and Montanari); for other groups, 1 is where the method of `communities` begins
    to work. Where ones are rare this is McMillan's Table 5.1.

    >>> office = Blocks([[0.05, 0.001], [0.001, 0.05]])
    >>> plan = plan_communities(n=500, blocks=office, epsilon=3.0)
    >>> plan.findable, round(plan.snr, 2), round(plan.min_epsilon, 2)
    (True, 3.78, 1.69)
    """
    instance_of("blocks", blocks, Blocks, "the groups as Blocks, such as Blocks([[0.05, 0.001], [0.001, 0.05]])")
    people, flip = count("n", n, minimum=2), Flip(epsilon=epsilon, readings_per_window=1)
    if blocks.k > people:
        raise InputError(f"blocks has {blocks.k} groups for {people} people: give at most {people}.", k=blocks.k, n=n)
    reported = blocks.reported(flip.other)
    snr = _snr(reported, people)
    min_epsilon = _min_epsilon(blocks, people)
    min_n = math.floor(people / snr) + 1.0 if snr > 0 else math.inf
    return CommunityPlan(people, blocks, flip.epsilon, reported, snr, min_epsilon, min_n)


def _directions(reported: Blocks, n: int) -> tuple[FloatArray, FloatArray]:
    """Return how far groups differ in each direction (k,), in units of noise, and the groups' places (k, k)."""
    root = np.sqrt(reported.shares)
    values, vectors = np.linalg.eigh(root[:, None] * (reported.matrix - reported.density) * root)
    values[np.abs(values) < 1e-13 * reported.matrix.max()] = 0.0
    variance = max(float((reported.matrix * (1 - reported.matrix) @ reported.shares).max()), 1e-300)
    return math.sqrt(n / variance) * values, vectors / root[:, None]


def _snr(reported: Blocks, n: int) -> float:
    return float((_directions(reported, n)[0] ** 2).max())


def _min_epsilon(blocks: Blocks, n: int) -> float:
    """Return the epsilon at which the signal to noise passes 1, rounded up."""

    def findable(epsilon: float) -> bool:
        return _snr(blocks.reported(1 / (1 + math.exp(epsilon))), n) > 1

    low, high = 0.0, MAX_EPSILON
    if not findable(high):
        return math.inf
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if findable(middle) else (middle, high)
    return high


def right_in_large_networks(plan: CommunityPlan) -> float:
    """Return the share of people in their group by the best fit, as the network grows at the same signal to noise.

    A person's reports say as much about their group as one Gaussian vector, with a precision that depends on how well
    others are known: a fixed point (state evolution, as in Deshpande, Abbe and Montanari).
    """
    signal, places = _directions(plan.reported, plan.n)
    spots, shares = places * np.clip(signal, -MAX_SIGNAL, MAX_SIGNAL), plan.blocks.shares
    known = np.diag(np.maximum(0.0, 1 - 1 / np.maximum(signal**2, 1.0)))
    noise = np.random.default_rng(0).standard_normal((max(200, DRAWS // len(shares)), len(shares)))
    right = 0.0
    for _ in range(FIXED_POINT_STEPS):
        sizes, vectors = np.linalg.eigh(known)
        heard = spots @ vectors * np.sqrt(np.maximum(sizes, 0.0))  # precision of a person's place, by that of others
        base, spread = heard @ heard.T, noise @ heard.T
        before, right, known = right, 0.0, np.zeros_like(known)
        for group, share in enumerate(shares):
            logs = np.log(shares) + base[group] - base.diagonal() / 2 + spread
            means = special.softmax(logs, axis=1) @ places
            known += share * means.T @ means / len(noise)
            right += float(share * (logs.argmax(axis=1) == group).mean())
        if abs(right - before) < FIXED_POINT:
            break
    return right


def _right_in_simulations(plan: CommunityPlan) -> tuple[float, float]:
    """Return the mean share of people in their group, and its standard error."""
    flip, k, right = Flip(epsilon=plan.epsilon, readings_per_window=1), plan.blocks.k, list[float]()
    for trial in range(PEOPLE_SIMULATED // plan.n):
        rng, same = np.random.default_rng(trial), np.zeros((k, k))
        drawn = plan.blocks.sample(plan.n, rng=rng)
        sent = simulate_contacts(drawn.met, flip, rng=rng)
        wanted = min(max(k, 2), plan.n)
        found = communities(sent, k=wanted, flip=flip, false_alarms=1.0)
        np.add.at(same, (np.minimum(found.labels, k - 1), drawn.labels), 1)
        right.append(float(same[linear_sum_assignment(-same)].sum()) / plan.n)
        error = float(np.std(right)) / math.sqrt(max(1, trial))
        if trial + 1 >= MIN_NETWORKS and error <= CLOSE_ENOUGH:
            break
    return float(np.mean(right)), error
