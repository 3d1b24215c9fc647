"""Two recordings of a sensor beside what was said of them: how far they are apart, and how much they scatter."""

import math
from dataclasses import dataclass

import numpy as np

from cloakwork._checks import IntArray
from cloakwork.auditing.result import Verdict
from cloakwork.auditing.sources.bench import BenchClaim

CLEAR = 3.0  # standard errors beyond which a difference is taken for one
SUSPECT = 2.0  # standard errors beyond which set-ups may be what looks like a violation
HALF = 0.5  # of the planned noise: what even a weak audit should find


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What the readings themselves show of shift and noise, for whoever looks for the cause of a verdict.

    Parameters
    ----------
    claim
        What was stated of the set-ups, and planned for the noise.
    apart, error
        How far the means of the two recordings are apart, and its standard error, in the site's unit.
    scatter, scatter_error
        Standard deviation of a recording, and its standard error.
    """

    claim: BenchClaim
    apart: float
    error: float
    scatter: float
    scatter_error: float

    @property
    def allowed(self) -> float:
        """How far apart set-ups may be that are as was stated; rounding is within it."""
        return self.claim.shift + self.claim.step

    @property
    def noise_missing(self) -> bool:
        """Whether they scatter by less than the planned noise alone, which no set-up can bring about."""
        return self.scatter + CLEAR * self.scatter_error < self.claim.sigma

    @property
    def unseen(self) -> bool:
        """Whether the readings do not show that the set-ups differed."""
        return self.apart <= CLEAR * self.error

    @property
    def nearer(self) -> bool:
        """Whether the set-ups were nearer to each other than was stated."""
        return self.apart + CLEAR * self.error < self.claim.shift - self.claim.step

    def farther(self, errors: float) -> bool:
        """Whether they are further apart than was stated, by so many standard errors."""
        return self.apart - errors * self.error > self.allowed

    def notes(self) -> tuple[str, ...]:
        """What is seen, as sentences."""
        said = [
            f"The readings of the two set-ups are {self._in_unit(self.apart)} ± {self._in_unit(self.error, 2)} apart "
            f"on average, and scatter by {self._in_unit(self.scatter)}. Stated was at most "
            f"{self._in_unit(self.allowed)}, rounding included, and planned is noise of "
            f"{self._in_unit(self.claim.sigma)}."
        ]
        if self.noise_missing:
            said.append("They scatter by less than the planned noise alone would: noise is missing.")
        if self.unseen:
            said.append("The readings cannot show whether the set-ups differed.")
        if self.nearer:
            said.append(
                "That is less than was stated: the set-ups were nearer to each other, or readings that failed or came "
                "too late were replaced by the baseline."
            )
        return tuple(said)

    def doubt(self) -> str:
        """Why a violation may not be the device's; empty where nothing speaks for that."""
        if self.noise_missing or not self.farther(SUSPECT):
            return ""
        return (
            "Either the device breaks its claim or the set-ups differ by more than they should: the readings are "
            f"{self._in_unit(self.apart)} apart on average, where at most {self._in_unit(self.allowed)} was stated. "
            "Check the set-ups, and audit again."
        )

    def cautions(self, verdict: Verdict, *, reports: int, confidence: float) -> tuple[str, ...]:
        """Why it means little that no violation was found, as sentences."""
        if verdict is not Verdict.NONE_FOUND:
            return ()
        said = []
        if self.nearer:
            at_all = ", if at all" if self.unseen else ""
            said.append(f"The set-ups differed by less than was stated{at_all}: this audit tested less than it says.")
        elif self.unseen:
            said.append("The readings cannot show whether the set-ups differed: we rely on those who changed them.")
        if self.farther(CLEAR):
            said.append("The set-ups differed by more than was stated: check them.")
        if self.claim.reports_needed(HALF, confidence=confidence) > reports:
            said.append("So few readings would hardly show noise that is only half as large as planned.")
        return tuple(said)

    def _in_unit(self, value: float, digits: int = 3) -> str:
        return f"{value:.{digits}g}{f' {self.claim.unit}' if self.claim.unit else ''}"


def compare(claim: BenchClaim, recordings: tuple[IntArray, IntArray]) -> Comparison:
    """Compare two recordings, in steps, with what was stated and planned.

    Notes
    -----
    Standard errors are those of independent readings; that of the scatter is s / sqrt(2 n), as for normal noise.
    """
    first, second = (values.astype(np.float64) * claim.step for values in recordings)
    scatter = math.sqrt((first.var() + second.var()) / 2)
    return Comparison(
        claim=claim,
        apart=abs(float(first.mean() - second.mean())),
        error=math.sqrt(first.var() / len(first) + second.var() / len(second)),
        scatter=scatter,
        scatter_error=scatter / math.sqrt(2 * (len(first) + len(second))),
    )
