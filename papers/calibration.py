"""The papers' noise and radius: the formulas of Gilbert and McMillan, next to the exact ones."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cloakwork._checks import FloatArray
from cloakwork.errors import CalibrationError
from cloakwork.physics import Physics
from cloakwork.privacy import Cloak, Hardware, Profile, check_claim, largest_mu
from cloakwork.recovery import BasisPursuit, Estimator, Problem, Progress, Solution


class Calibration(StrEnum):
    """How sigma follows from (epsilon, delta)."""

    EXACT = "exact"
    """The least noise that meets the claim (Balle and Wang)."""
    PAPER = "paper"
    """The formula of Gilbert and McMillan, refused where it does not meet the claim."""


def paper_mu(epsilon: float, delta: float) -> float:
    """Return the mu of the papers' formula; refuse it where it does not meet (epsilon, delta).

    Notes
    -----
    sigma = 2 ln(1.25/delta) Delta / epsilon, Gilbert and McMillan, Lemma 4: not private for large epsilon.
    """
    check_claim(epsilon, delta)
    mu = epsilon / (2 * math.log(1.25 / delta))
    if Profile(mu).delta(epsilon) > delta:
        raise CalibrationError(
            f"epsilon={epsilon:g} with delta={delta:g}: the papers' formula is not private there.",
            epsilon=epsilon,
            delta=delta,
        )
    return mu


def calibrated(physics: Physics, calibration: Calibration, *, epsilon: float, delta: float, **options: Any) -> Cloak:
    """Return a cloak with the noise of a calibration; the papers' noise is the exact one, enlarged."""
    exact = Cloak(physics, epsilon=epsilon, delta=delta, **options)
    if calibration is Calibration.EXACT:
        return exact
    options.pop("design", None)
    larger = largest_mu(epsilon, delta) / paper_mu(epsilon, delta)
    return Cloak(
        physics,
        epsilon=epsilon,
        delta=delta,
        sigma=larger * exact.sigmas,
        hardware=Hardware(step=exact.steps),
        **options,
    )


@dataclass(frozen=True)
class PapersPursuit(Estimator):
    """Basis pursuit within the papers' radius, sigma sqrt(m): about the average length of the noise.

    So the noise of many frames is longer, and then no map fits.
    """

    def solve(self, problem: Problem, readings: FloatArray, progress: Progress | None) -> Solution:
        radius = problem.noise * math.sqrt(problem.physics.sensors)
        return BasisPursuit(radius=radius).solve(problem, readings, progress)
