"""The claim that an audit of a binary sensor on the bench tests: the privacy of one of its reports."""

import math
from dataclasses import dataclass

import numpy as np

from cloakwork._checks import IntArray, not_negative
from cloakwork.errors import InputError
from cloakwork.privacy import CUT_BITS
from cloakwork.site import Plan

_LEARNING = 3.0  # the auditor needs so many times what it would if it knew the best event


@dataclass(frozen=True, kw_only=True)
class BitClaim:
    """The claim for a single report of a binary sensor, whatever it sees in the two set-ups.

    `truth` is the planned probability of a true report. The claim is (epsilon, delta); at the default epsilon,
    ln(truth / (1 - truth)), delta is 0.
    """

    sensor: str
    truth: float
    epsilon: float
    delta: float

    def reports_needed(self, times: float, *, confidence: float = 0.95) -> float:
        """About how many reports per set-up show a device whose reports have so many times the planned epsilon."""
        p = 1 / (1 + math.exp(-times * math.log(self.truth / (1 - self.truth))))
        factor = math.exp(self.epsilon)
        excess = p - factor * (1 - p) - self.delta
        if excess <= 0:
            return math.inf
        return _LEARNING * -2 * math.log1p(-confidence) * (1 + factor**2) * p * (1 - p) / excess**2

    def notes(self, recordings: tuple[IntArray, IntArray]) -> tuple[str, ...]:
        """Shares of ones in both recordings, as sentences."""
        shares = [float(np.mean(values)) for values in recordings]
        error = math.sqrt(sum(share * (1 - share) / len(r) for share, r in zip(shares, recordings, strict=True)))
        honest = 2 * self.truth - 1
        return (
            f"{100 * shares[0]:.4g} % and {100 * shares[1]:.4g} % of the reports are 1, with a standard error of "
            f"{100 * error:.2g} % for the difference. If the sensor sees 0 in one set-up and 1 in the other, an honest "
            f"device has a difference of {100 * honest:.3g} %.",
            *(("These reports cannot show whether the set-ups differed.",) if 3 * error > honest else ()),
        )


def bit_claim(plan: Plan, sensor: str, *, shift: float | None = None, epsilon: float | None = None) -> BitClaim:
    """The claim for one report of a binary sensor of a plan; `shift` is refused, since bits have none."""
    if plan.bits is None or sensor not in plan.bits.ids:
        raise InputError(f"{sensor} is not a binary sensor of this plan.", sensor=sensor)
    if shift is not None:
        raise InputError(
            f"shift={shift:g}: {sensor} is a binary sensor. Have it see 0 in one set-up and 1 in the other.",
            shift=shift,
            argument="shift",
        )
    other = int(plan.bits.words, 16) / 2.0**CUT_BITS
    each = math.log((1 - other) / other) * (1 + 1e-12)
    at = each if epsilon is None else not_negative("epsilon", epsilon)
    delta = 0.0 if at >= each else 1 - other - math.exp(at) * other + 1e-12
    return BitClaim(sensor=sensor, truth=1 - other, epsilon=at, delta=delta)
