"""One mistake in a paper, or one assumption that does not hold in practice, as two numbers."""

from dataclasses import dataclass
from enum import StrEnum

from papers.result import Agreement, Claim, Measure

ROUNDING = 1e-6
GENEROUS = 1.05  # a bound that is further from the truth is loose


class Part(StrEnum):
    """The subject of a mistake."""

    PHYSICS = "physics"
    PRIVACY = "privacy"
    RECOVERY = "recovery"
    MEASURES = "measures"
    CONVOLUTION = "convolution"
    AUDITING = "auditing"
    GRAPHONS = "graphons"
    LEARNING = "learning"


class Promise(StrEnum):
    """The relation of the printed number to the true one."""

    EQUAL = "="
    AT_MOST = "<="
    AT_LEAST = ">="


EQUAL, AT_MOST, AT_LEAST = Promise


@dataclass(frozen=True)
class Erratum:
    """A printed statement, where it is, and a quantity as it follows from the print and as it is.

    Parameters
    ----------
    says
        The statement or the assumption, in a few words.
    quantity
        What the two numbers measure.
    matters
        The consequence, in a few words.
    error
        Standard error of the true number if it was measured.
    assumed
        Whether the number follows from a model that the paper assumes, and the true one from reality.
    share
        Whether the number is a share or a probability.
    """

    part: Part
    where: str
    says: str
    quantity: str
    promise: Promise
    printed: float
    true: float
    matters: str
    error: float = 0.0
    assumed: bool = False
    share: bool = False

    @property
    def broken(self) -> bool:
        """Whether the printed number is not true, beyond two standard errors and rounding."""
        room = 2 * self.error + ROUNDING * max(abs(self.printed), abs(self.true))
        over, under = self.true > self.printed + room, self.true < self.printed - room
        return {EQUAL: over or under, AT_MOST: over, AT_LEAST: under}[self.promise]

    @property
    def verdict(self) -> Agreement:
        """Wrong if the promise is broken (narrow if it was an assumption), loose if it holds by a wide margin."""
        if self.broken:
            return Agreement.NARROW if self.assumed else Agreement.WRONG
        factor = self.factor
        wide = factor is None or factor > GENEROUS
        return Agreement.LOOSER if wide and self.promise is not EQUAL else Agreement.AGREES

    @property
    def factor(self) -> float | None:
        """The factor between the two, 1 or above; None if one of them is 0 or their signs differ."""
        if self.printed * self.true <= 0:
            return None
        ratio = abs(self.true / self.printed)
        return max(ratio, 1 / ratio)

    def claim(self) -> Claim:
        """The erratum as a claim of its paper."""
        measured = f" ± {self.error:.2g}" if self.error else ""
        source = "assumed" if self.assumed else "printed"
        found = f"{self.quantity}: {source} {self.promise} {self.printed:.5g}, true {self.true:.5g}{measured}"
        return Claim(self.says, self.where, found, self.verdict)

    def measure(self) -> Measure:
        """The true number, to compare runs by."""
        return Measure(f"{self.where}: {self.quantity}", self.true, self.error, share=self.share)


def erratum(
    part: Part,
    where: str,
    says: str,
    quantity: str,
    numbers: tuple[Promise, float, float],
    matters: str,
    *,
    error: float = 0.0,
    assumed: bool = False,
    share: bool = False,
) -> Erratum:
    """Make an erratum; `numbers` are the promise, the printed number and the true one."""
    return Erratum(part, where, says, quantity, *numbers, matters, error, assumed, share)
