"""Basis pursuit denoising, exact."""

from dataclasses import dataclass
from typing import final

from cloakwork._checks import FloatArray
from cloakwork.recovery import active_set
from cloakwork.recovery.estimator import Estimator, Progress, Radius, Solution, Status, check_radius, fit_within_radius
from cloakwork.recovery.problem import Problem

_NAMES = {
    active_set.SOLVED: Status.SOLVED,
    active_set.BEST_FIT: Status.BEST_FIT,
    active_set.STOPPED: Status.STOPPED,
    active_set.EMPTY: Status.EMPTY,
}


@final
@dataclass(frozen=True)
class BasisPursuit(Estimator):
    """The map of least total weight that fits the readings within a radius, with a certificate.

    Parameters
    ----------
    radius
        `Radius.CHI_SQUARE` (default), `Radius.PAPER`, or a number that bounds ||M f - y|| in units of the readings
        (in standard deviations when sensors have different noise).
    quantile
        How often a chi-square radius holds the true map.

    Notes
    -----
    min ||f||_1 over f in [0, 1]^n with ||M f - y||_2 <= radius (Gilbert and McMillan, Algorithm 1), solved on the
    numerical range of M by the active-set method of `active_set`.
    """

    radius: float | Radius = Radius.CHI_SQUARE
    quantile: float = 0.9

    def __post_init__(self) -> None:
        check_radius(self.radius, self.quantile)

    def solve(
        self, problem: Problem, readings: FloatArray, progress: Progress | None, after: object = None
    ) -> Solution:
        del after  # every frame is solved on its own
        rule = (self.radius, self.quantile)
        return fit_within_radius(active_set.pursue, (), _NAMES, problem, readings, rule, progress)
