"""Whether someone is there, over time, from randomised bits."""

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cloakwork._checks import FloatArray, IntArray, instance_of
from cloakwork.errors import InputError


@runtime_checkable
class FlipLike(Protocol):
    """The part of a flip that recovery reads."""

    @property
    def likelihood(self) -> FloatArray: ...


def presence(
    reports: ArrayLike, flip: FlipLike, *, stay: float, share: float = 0.5, seen: Sequence[float] = (0.0, 1.0)
) -> FloatArray:
    """Compute the probability at each time that someone is there, given all reports.

    Parameters
    ----------
    reports
        Randomised bits in the order of time, shape (times,), or (times, sensors) for sensors that watch the same room.
        -1 where a report is missing.
    flip
        The flip that released them.
    stay
        Probability that someone who is there is still there at the next time.
    share
        Share of the time that someone is there.
    seen
        Probability that a sensor reads 1 while nobody is there, and while someone is.

    Notes
    -----
    This is the forward-backward algorithm on two states. It uses only reports, so it costs no privacy.

    >>> from cloakwork.privacy import Flip
    >>> flip = Flip(epsilon=1.0, readings_per_window=1)
    >>> bits = np.repeat([0, 1, 0], 100)
    >>> there = presence(flip.simulate(bits, rng=np.random.default_rng(0)), flip, stay=0.99)
    >>> [round(float(there[k].mean()), 1) for k in (slice(100), slice(100, 200), slice(200, 300))]
    [0.0, 1.0, 0.0]
    """
    rows = _checked(reports, flip)
    for name, value in (("stay", stay), ("share", share)):
        if not (isinstance(value, int | float) and 0 < value < 1):
            raise InputError(f"{name}={value!r}: give a probability between 0 and 1.", **{name: value})
    come = (1 - stay) * share / (1 - share)
    if come >= 1:
        raise InputError(
            f"stay={stay:g} with share={share:g}: nobody who stays so briefly is there so often. Give a larger stay.",
            stay=stay,
            share=share,
        )
    if len(seen) != 2 or not all(0 <= value <= 1 for value in seen):
        raise InputError(f"seen={seen!r}: give two probabilities, while nobody is there and while someone is.")
    bits = np.array([[1 - value, value] for value in seen]) @ flip.likelihood  # (state, report)
    logs = np.log(np.concatenate([bits, np.ones((2, 1))], axis=1))  # the last column is a missing report
    ratios = (logs[1] - logs[0])[rows].sum(axis=1)
    odds = np.empty(len(ratios))  # log odds given the reports so far
    ahead = np.zeros(len(ratios))  # log likelihood ratio of all later reports
    before = math.log(share) - math.log1p(-share)
    for k, ratio in enumerate(ratios):
        odds[k] = before + ratio
        before = _mixed(odds[k], stay, come) - _mixed(odds[k], 1 - stay, 1 - come)
    for k in range(len(ratios) - 1, 0, -1):
        later = ratios[k] + ahead[k]
        ahead[k - 1] = _mixed(later, stay, 1 - stay) - _mixed(later, come, 1 - come)
    return np.asarray(special.expit(odds + ahead))


def _mixed(odds: float, first: float, second: float) -> float:
    """log(first e^odds + second)."""
    return float(np.logaddexp(math.log(first) + odds, math.log(second)))


def _checked(reports: ArrayLike, flip: FlipLike) -> IntArray:
    array = np.asarray(reports)
    instance_of("flip", flip, FlipLike, "the Flip that released the reports")  # type: ignore[type-abstract]
    if len(flip.likelihood) != 2:
        raise InputError("presence takes a flip with two values.", values=len(flip.likelihood))
    if array.ndim not in (1, 2) or array.dtype.kind not in "biu" or not np.isin(array, (-1, 0, 1)).all():
        raise InputError("reports: give 0, 1 or -1 (missing), shape (times,) or (times, sensors).")
    return array.astype(np.int64).reshape(len(array), -1)
