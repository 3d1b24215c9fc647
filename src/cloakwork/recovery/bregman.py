"""Bregman iteration."""

from dataclasses import dataclass
from typing import final

from cloakwork._checks import FloatArray, count
from cloakwork.errors import InputError
from cloakwork.recovery import active_set
from cloakwork.recovery.estimator import Estimator, Progress, Radius, Solution, Status, check_radius, fit_within_radius
from cloakwork.recovery.problem import Problem

_NAMES = {
    active_set.SOLVED: Status.REACHED,
    active_set.BEST_FIT: Status.BEST_FIT,
    active_set.STOPPED: Status.STOPPED,
    active_set.EMPTY: Status.EMPTY,
}


@final
@dataclass(frozen=True)
class Bregman(Estimator):
    """Penalised fits whose misfit is added back, until the radius is reached.

    Parameters
    ----------
    radius, quantile
        As in `BasisPursuit`.
    penalty
        Weight of the total in each fit, as a share of the weight at which the map would be empty.
    iterations
        Give up after so many.

    Notes
    -----
    f_{t+1} = argmin penalty ||f||_1 + ||M f - p_t||^2 / 2 over the box, p_{t+1} = p_t + (y - M f_{t+1})
    (McMillan, section 8.1.2). The misfit never grows (Theorem 8.4). The end point is not the minimiser of
    basis pursuit: its total is a few percent higher, and `gap` says by how much at the most.
    """

    radius: float | Radius = Radius.CHI_SQUARE
    quantile: float = 0.9
    penalty: float = 0.5
    iterations: int = 1000

    def __post_init__(self) -> None:
        check_radius(self.radius, self.quantile)
        count("iterations", self.iterations)
        if not 0 < self.penalty < 1:
            raise InputError(f"penalty={self.penalty}: give a share between 0 and 1.", penalty=self.penalty)

    def solve(
        self, problem: Problem, readings: FloatArray, progress: Progress | None, after: object = None
    ) -> Solution:
        del after  # every frame is solved on its own
        rule = (self.radius, self.quantile)
        return fit_within_radius(
            active_set.iterate, (self.penalty, self.iterations), _NAMES, problem, readings, rule, progress
        )
