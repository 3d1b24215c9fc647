"""One mistake in a paper, or one thing that it assumes and that is not so, as two numbers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module

from papers.result import Agreement, Claim, Measure

ROUNDING = 1e-6
GENEROUS = 1.05  # a bound that is farther from the truth than this is looser than it need be


class Part(StrEnum):
    """What a mistake is about; one module of this folder each."""

    PHYSICS = "physics"
    PRIVACY = "privacy"
    RECOVERY = "recovery"
    MEASURES = "measures"
    CONVOLUTION = "convolution"
    AUDITING = "auditing"
    GRAPHONS = "graphons"
    LEARNING = "learning"


class Promise(StrEnum):
    """How the printed number is meant."""

    EQUAL = "="
    AT_MOST = "<="
    AT_LEAST = ">="


@dataclass(frozen=True)
class Erratum:
    """What is printed, where, and the same quantity as printed and as it is.

    Parameters
    ----------
    says
        The print, in a few words, or what it assumes.
    quantity
        What the two numbers are.
    matters
        What follows from it, in a few words.
    error
        Standard error of the true number where it was measured.
    assumed
        Whether the number follows from a model that the paper assumes, and the true one is that of the real thing.
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
        """Whether the print is not what is true, beyond two standard errors and rounding."""
        room = 2 * self.error + ROUNDING * max(abs(self.printed), abs(self.true))
        over, under = self.true > self.printed + room, self.true < self.printed - room
        return {Promise.EQUAL: over or under, Promise.AT_MOST: over, Promise.AT_LEAST: under}[self.promise]

    @property
    def verdict(self) -> Agreement:
        """Wrong if the promise is broken, where it was made; looser if it holds by a wide margin."""
        if self.broken:
            return Agreement.NARROW if self.assumed else Agreement.WRONG
        factor = self.factor
        wide = factor is None or factor > GENEROUS
        return Agreement.LOOSER if wide and self.promise is not Promise.EQUAL else Agreement.AGREES

    @property
    def factor(self) -> float | None:
        """How far the two are apart as a factor, 1 or above; None if one of them is 0 or their signs differ."""
        if self.printed * self.true <= 0:
            return None
        ratio = abs(self.true / self.printed)
        return max(ratio, 1 / ratio)

    @property
    def off(self) -> str:
        """The factor in words."""
        if self.factor is None:
            return "no factor"
        return f"{self.factor:.3g} x" if self.factor >= 1.02 else f"{100 * (self.factor - 1):.2g} %"

    def claim(self) -> Claim:
        """As a claim of its paper."""
        measured = f" ± {self.error:.2g}" if self.error else ""
        source = "assumed" if self.assumed else "printed"
        found = f"{self.quantity}: {source} {self.promise} {self.printed:.5g}, true {self.true:.5g}{measured}"
        return Claim(self.says, self.where, found, self.verdict)

    def measure(self) -> Measure:
        """The true number, for another run."""
        return Measure(f"{self.where}: {self.quantity}", self.true, self.error, share=self.share)


def all_errata(*, quick: bool, seed: int, progress: Callable[[int, int], None]) -> tuple[Erratum, ...]:
    """Every mistake that can be shown by a number; each part has random numbers of its own."""
    found: list[Erratum] = []
    for number, part in enumerate(Part):
        module = import_module(f"papers.errata.{part.value}")
        found += module.errata(quick=quick, key=(seed, number))
        progress(number + 1, len(Part))
    return tuple(found)


def share_of(hits: int, count: int) -> tuple[float, float]:
    """A share and its standard error; one of 0 or 1 has an error too, as if one in count + 2 had gone the other way."""
    share = hits / count
    smooth = (hits + 1) / (count + 2)
    return share, math.sqrt(smooth * (1 - smooth) / count)
