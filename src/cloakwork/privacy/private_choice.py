"""A private choice: name one of several candidates with nearly the best score."""

import secrets
from collections.abc import Callable, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import Any, TypeAlias

from cloakwork._checks import member_of, positive
from cloakwork.errors import CalibrationError, InputError

RandomBelow: TypeAlias = Callable[[int], int]
"""A function that returns a uniform whole number below its argument."""


class Chooser(StrEnum):
    """How a private choice is made."""

    PERMUTE_AND_FLIP = "permute-and-flip"
    """Ask candidates in random order, and take each with a probability that falls with its distance from the best."""
    EXPONENTIAL = "exponential"
    """The exponential mechanism: probabilities in proportion to e^(epsilon score / 2 sensitivity)."""


def choose(
    scores: Sequence[float | Fraction],
    *,
    epsilon: float,
    sensitivity: float = 1.0,
    mechanism: Chooser | str = Chooser.PERMUTE_AND_FLIP,
) -> int:
    """Choose the index of a candidate with a high score, with epsilon-differential privacy.

    Parameters
    ----------
    scores
        One number per candidate, larger is better. The candidates themselves must not depend on private data.
    epsilon
        The claim for this one choice; several choices add up.
    sensitivity
        The most by which one person can change any score.
    mechanism
        `permute-and-flip`, or `exponential` for the exponential mechanism.

    Notes
    -----
    Both accept candidate i with probability exp(-epsilon (best - score_i) / (2 sensitivity)): permute-and-flip asks
    each candidate once, in random order (McKenna and Sheldon, 2020), and the exponential mechanism asks candidates at
    random until it accepts one. Permute-and-flip never has a larger expected shortfall. All arithmetic is in whole
    numbers (Canonne, Kamath and Steinke, 2020), so the probabilities are exact. The time it takes depends on the
    scores.

    >>> choose([12, 9, 9, 3, 1, 0], epsilon=20.0)
    0
    """
    claim = positive("epsilon", epsilon, error=CalibrationError)
    factor = Fraction(claim) / (2 * Fraction(positive("sensitivity", sensitivity, error=CalibrationError)))
    way = member_of("mechanism", mechanism, Chooser)
    return chosen(_exact_scores(scores), factor, way, secrets.randbelow)


def chosen(scores: Sequence[Fraction], factor: Fraction, mechanism: Chooser, below: RandomBelow) -> int:
    """Choose with random numbers from `below`; `factor` is epsilon / (2 sensitivity)."""
    best = max(scores)
    waiting = list(range(len(scores)))
    while True:
        place = below(len(waiting))
        if accepted(factor * (best - scores[waiting[place]]), below):
            return waiting[place]
        if mechanism is Chooser.PERMUTE_AND_FLIP:
            del waiting[place]


def accepted(x: Fraction, below: RandomBelow) -> bool:
    """Return True with probability e^-x, exactly.

    Notes
    -----
    For x up to 1, count how often a coin of probability x/1, x/2, x/3, ... comes up before it fails: the count is even
    with probability e^-x. A larger x is a sum of ones and a rest, each of which must be accepted.
    """
    while x > 1:
        if not _at_most_one(Fraction(1), below):
            return False
        x -= 1
    return _at_most_one(x, below)


def _at_most_one(x: Fraction, below: RandomBelow) -> bool:
    count = 1
    while below(x.denominator * count) < x.numerator:
        count += 1
    return count % 2 == 1


def _exact_scores(scores: Sequence[Any]) -> list[Fraction]:
    """Scores as fractions; an error names a position, never a score."""
    try:
        exact = [Fraction(score.item() if hasattr(score, "item") else score) for score in scores]
    except (TypeError, ValueError, OverflowError):
        exact = []
    if not exact or any(isinstance(score, str) for score in scores):
        raise InputError("scores: give a list of finite numbers, one per candidate.")
    return exact
