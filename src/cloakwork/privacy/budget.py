"""The sum of several claims: what releases of different kinds reveal together."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import starmap
from typing import final

from cloakwork._checks import count, instance_of, not_negative, positive, rounded_up
from cloakwork.errors import CalibrationError
from cloakwork.privacy.cloak import Cloak
from cloakwork.privacy.flip import Flip
from cloakwork.privacy.gaussian import checked_delta, turning_point
from cloakwork.privacy.laplace import LaplaceProfile
from cloakwork.privacy.losses import Losses, laplace_losses, report_losses, sum_of_losses

MAX_REPORTS = 10**11  # of one kind: a thousand sensors that send three times a second for a year


@final
@dataclass(frozen=True)
class Budget:
    """Releases that one observer keeps, and the (epsilon, delta) of all of them together.

    A budget is immutable: each method returns a larger one. It adds claims about the same people: someone may change
    what every one of the releases hides.

    Notes
    -----
    Losses of independent releases add up. Those of Gaussian releases are Gaussian, and their mu^2 add up exactly.
    The loss of a reading with Laplace noise is rounded to a grid (`laplace_losses`).
    Everything else is a post-processing of randomised response (Kairouz, Oh and Viswanath): a release with (epsilon, 0)
    reveals no more than one bit that is true with probability e^epsilon / (1 + e^epsilon), and one with
    (epsilon, delta) no more than that bit, or everything with probability delta. Equal bits have a binomial law. The
    laws of unequal ones are rounded up to a common grid and convolved, so

        delta(epsilon) = E delta_mu(epsilon - L),   L the sum of the other losses,

    is never too small. It is too large by at most a step of the grid for each kind of bit, in epsilon.

    >>> budget = Budget().choice(0.5, times=2).flip(Flip(epsilon=1.0, readings_per_window=10))
    >>> round(budget.epsilon(0.0), 6)
    2.0
    """

    mu2: float = 0.0
    bits: tuple[tuple[float, int], ...] = ()  # loss of one report, and how many
    lost: float = 0.0  # probability that a release with a delta reveals everything
    laplace: tuple[tuple[float, int], ...] = ()  # shift of one reading in scales of its Laplace noise, and how many

    def cloak(self, cloak: Cloak, *, windows: int = 1, readings: int | None = None) -> "Budget":
        """Add full windows of a cloak, or so many frames."""
        instance_of("cloak", cloak, Cloak, "a Cloak")
        profile = cloak.profile.compose(count("windows", windows))
        if readings is not None:
            profile = cloak.compose(count("readings", readings))
        if isinstance(profile, LaplaceProfile):
            return replace(self, laplace=_grouped((*self.laplace, (profile.shift, profile.readings))))
        mu2 = self.mu2 + profile.mu**2
        return replace(self, mu2=mu2, lost=_either(self.lost, profile.doubt))

    def flip(self, flip: Flip, *, windows: int = 1) -> "Budget":
        """Add full windows of a flip."""
        instance_of("flip", flip, Flip, "a Flip")
        return self._with(flip.epsilon_per_reading, count("windows", windows) * flip.readings_per_window * flip.sensors)

    def gaussian(self, mu: float, *, times: int = 1) -> "Budget":
        """Add releases with Gaussian noise that shift by at most `mu` standard deviations, such as a series."""
        mu2 = positive("mu", mu, error=CalibrationError) ** 2
        return replace(self, mu2=self.mu2 + count("times", times) * mu2)

    def choice(self, epsilon: float, *, times: int = 1) -> "Budget":
        """Add choices by `choose`, or anything else with this epsilon and no delta."""
        return self._with(positive("epsilon", epsilon, error=CalibrationError), count("times", times))

    def claim(self, epsilon: float, delta: float, *, times: int = 1) -> "Budget":
        """Add releases of which no more is known than their claim."""
        more = self.choice(epsilon, times=times)
        return replace(more, lost=_either(self.lost, _repeated(checked_delta(delta), times)))

    def compose(self, k: int) -> "Budget":
        """All of this, k times: so many days, say."""
        k = count("k", k)
        bits, laplace = (_grouped((each, k * n) for each, n in parts) for parts in (self.bits, self.laplace))
        return Budget(k * self.mu2, bits, _repeated(self.lost, k), laplace)

    def delta(self, epsilon: float) -> float:
        """The delta of everything together at `epsilon`, rounded up."""
        return self._delta(not_negative("epsilon", epsilon, error=CalibrationError), self._losses())

    def epsilon(self, delta: float) -> float:
        """The epsilon of everything together at `delta`, rounded up."""
        if checked_delta(delta) == 0:
            if self.mu2 or self.lost:
                raise CalibrationError("delta=0: Gaussian noise, or a claim with a delta, has none. Give a delta.")
            return sum(each * number for each, number in (*self.bits, *self.laplace))
        losses = self._losses()
        least = _either(self.lost, losses.beyond)
        if least >= delta:
            raise CalibrationError(
                f"delta={delta:g}: the deltas of the parts alone add up to {least:.3g}.", delta=delta
            )
        return turning_point(lambda epsilon: self._delta(epsilon, losses) > delta, 0.0, 1.0, within=1e-9)[1]

    def explain(self, delta: float) -> str:
        """Explain in sentences what is added up, and the outcome now, seven-fold and a year of days."""
        parts = [f"Gaussian releases with mu {math.sqrt(self.mu2):.4g}"] if self.mu2 else []
        parts += [f"{number:,} x epsilon {rounded_up(each, 3)}" for each, number in self.bits]
        parts += [f"{number:,} x Laplace noise of epsilon {rounded_up(each, 3)}" for each, number in self.laplace]
        parts += [f"claims whose deltas add up to {rounded_up(self.lost, 2)}"] if self.lost else []
        most = max((number for _, number in (*self.bits, *self.laplace)), default=0)
        spans = [k for k in (7, 365) if _repeated(self.lost, k) < delta and k * most <= MAX_REPORTS]
        longer = "".join(f"; {k} times that, {rounded_up(self.compose(k).epsilon(delta), 3)}" for k in spans)
        return (
            f"Together: {'; '.join(parts) or 'nothing'}. At delta {delta:g}, epsilon is "
            f"{rounded_up(self.epsilon(delta), 3)}{longer}."
        )

    def _with(self, each: float, number: int) -> "Budget":
        return replace(self, bits=_grouped((*self.bits, (each, number))))

    def _losses(self) -> Losses:
        """The sum of all but the Gaussian losses."""
        return sum_of_losses([*starmap(report_losses, self.bits), *starmap(laplace_losses, self.laplace)])

    def _delta(self, epsilon: float, losses: Losses) -> float:
        return _either(self.lost, losses.delta(epsilon, math.sqrt(self.mu2)))


def _either(a: float, b: float) -> float:
    """The probability of at least one of two independent events, to full precision however small; rounded up."""
    return min(1.0, (a + b * (1 - a)) * (1 + 1e-15))


def _repeated(each: float, times: int) -> float:
    """The probability that an event happens at least once; rounded up."""
    return min(1.0, -math.expm1(times * math.log1p(-each)) * (1 + 1e-15)) if each < 1 else 1.0


def _grouped(parts: Iterable[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    """Parts of equal loss together."""
    numbers: dict[float, int] = {}
    for each, number in parts:
        numbers[each] = numbers.get(each, 0) + number
    for number in numbers.values():
        if number > MAX_REPORTS:
            raise CalibrationError(
                f"{number:,} reports of one kind: at most {MAX_REPORTS:,} are added up.", reports=number
            )
    return tuple(sorted(numbers.items()))
