"""The Gaussian mechanism, exactly: the noise that an (epsilon, delta) claim needs, and the claims that noise meets.

mu is the ratio of sensitivity to sigma: the release of a neighbour is that of a unit normal shifted by mu. k releases
with the same mu compose to mu sqrt(k), exactly.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import special

from cloakwork._checks import as_number, not_negative
from cloakwork.errors import CalibrationError

_ULP = float(np.finfo(float).eps)
_TINY = 1e-290


class Calibration(StrEnum):
    """How sigma follows from (epsilon, delta)."""

    EXACT = "exact"
    """The least noise that meets the claim (Balle and Wang)."""
    PAPER = "paper"
    """The formula of Gilbert and McMillan, refused where it does not meet the claim."""


def log_delta(epsilon: float, mu: float) -> float:
    """An upper bound on log delta of a release with ratio `mu` at `epsilon`, tight to a few roundings.

    Notes
    -----
    delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), Balle and Wang, Theorem 8.
    """
    if mu <= 0:
        return -math.inf
    upper = mu / 2 - epsilon / mu
    lower = -mu / 2 - epsilon / mu
    first = float(special.log_ndtr(upper))
    second = epsilon + float(special.log_ndtr(lower))
    if first == -math.inf:
        return -math.inf
    remainder = -math.expm1(min(second - first, 0.0))
    # the two terms may nearly cancel, so the rounding error of each is added to the difference
    slip = 8 * _ULP * (2 + abs(first) + abs(second) + epsilon + upper**2 + lower**2)
    return first + math.log(remainder + slip)


def turning_point(holds: Callable[[float], bool], low: float, high: float, *, within: float) -> tuple[float, float]:
    """The ends of an interval in which a condition turns from true to false, `within` a fraction of each other.

    It is true at the first end and false at the second, or both are `low` where it is false already. `high` is doubled
    until it is false.
    """
    if not holds(low):
        return low, low
    while holds(high):
        low, high = high, 2 * high
    while high - low > within * high and high > _TINY:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def checked_delta(delta: float) -> float:
    """Return `delta` as a float; refuse it unless it is from 0 to below 1."""
    number = as_number("delta", delta, error=CalibrationError)
    if not 0 <= number < 1:
        raise CalibrationError(f"delta={delta!r}: give a number from 0 to below 1; 1e-6 is usual.", delta=delta)
    return number


def check_claim(epsilon: float, delta: float, *, pure: bool = False) -> None:
    """Refuse an (epsilon, delta) that is meaningless or, unless `pure`, that no Gaussian noise can meet."""
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        as_number(name, value, error=CalibrationError)
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise CalibrationError(f"epsilon={epsilon}: give a finite number above 0; 0.1 to 5 is usual.", epsilon=epsilon)
    if delta == 0 and not pure:
        raise CalibrationError(
            "delta=0: Gaussian noise never gives pure differential privacy. Give a small delta such as 1e-6, or hide a "
            "source from a single sensor with Laplace noise.",
            delta=delta,
        )
    if not 0 <= delta < 1:
        raise CalibrationError(f"delta={delta}: give a number between 0 and 1; 1e-6 is usual.", delta=delta)


def largest_mu(epsilon: float, delta: float) -> float:
    """The largest mu that meets (epsilon, delta), rounded down.

    >>> round(1 / largest_mu(1.0, 1e-6), 6)
    4.224679
    """
    check_claim(epsilon, delta)
    goal = math.log(delta)
    low, high = turning_point(lambda mu: log_delta(epsilon, mu) <= goal, 0.0, 1.0, within=4 * _ULP)
    if high <= _TINY:
        raise CalibrationError(f"delta={delta} with epsilon={epsilon} is too small to compute.", delta=delta)
    return low


def paper_mu(epsilon: float, delta: float) -> float:
    """The mu of the papers' formula, refused where the formula does not meet (epsilon, delta).

    Notes
    -----
    sigma = 2 ln(1.25/delta) Delta / epsilon, Gilbert and McMillan, Lemma 4: not private for large epsilon.
    """
    check_claim(epsilon, delta)
    mu = epsilon / (2 * math.log(1.25 / delta))
    if log_delta(epsilon, mu) > math.log(delta):
        limit = _largest_paper_epsilon(delta)
        raise CalibrationError(
            f"epsilon={epsilon:g} with delta={delta:g}: the paper's formula is not private above {limit:.1f}. "
            'Use calibration="exact".',
            epsilon=epsilon,
            delta=delta,
            limit=limit,
        )
    return mu


def _largest_paper_epsilon(delta: float) -> float:
    goal = math.log(delta)
    scale = 2 * math.log(1.25 / delta)
    return turning_point(lambda epsilon: log_delta(epsilon, epsilon / scale) <= goal, 0.0, 1.0, within=4 * _ULP)[0]


@dataclass(frozen=True)
class Profile:
    """All (epsilon, delta) that one release, or several together, meet.

    Examples
    --------
    >>> window = Profile(mu=0.5)
    >>> f"{window.delta(1.0):.2e}"
    '6.83e-03'
    >>> round(window.times(4).mu, 6)
    1.0
    """

    mu: float
    doubt: float = 0.0  # the probability that mu is understated, of all releases together

    def __post_init__(self) -> None:
        not_negative("mu", self.mu, error=CalibrationError)

    def delta(self, epsilon: float) -> float:
        """The least delta at `epsilon` (0 or above), rounded up."""
        not_negative("epsilon", epsilon, error=CalibrationError)
        delta = math.exp(log_delta(epsilon, self.mu) * (1 - 2 * _ULP)) * (1 + 8 * _ULP)
        return min(1.0, math.nextafter(delta + self.doubt, math.inf))

    def epsilon(self, delta: float) -> float:
        """The least epsilon at `delta`, rounded up; 0 if delta alone covers the release."""
        check_claim(1.0, delta)
        if delta <= self.doubt:
            raise CalibrationError(
                f"delta={delta:g}: the sensitivity may fail with {self.doubt:g}. Give more.", delta=delta
            )
        goal = math.log(math.nextafter(delta - self.doubt, 0.0) if self.doubt else delta)
        return turning_point(lambda epsilon: log_delta(epsilon, self.mu) > goal, 0.0, 1.0, within=4 * _ULP)[1]

    @property
    def right(self) -> float:
        """How often the best test between two neighbours is right, at most."""
        return float(special.ndtr(self.mu / 2))

    def times(self, k: int) -> "Profile":
        """The profile of `k` such releases together."""
        return Profile(self.mu * math.sqrt(k), self.doubt)
