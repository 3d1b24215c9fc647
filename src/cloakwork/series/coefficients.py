"""What all cloaks of Walsh coefficients share: one release of them, and what it costs."""

from cloakwork._checks import FloatArray, count
from cloakwork.errors import CalibrationError
from cloakwork.privacy import Immutable, Ledger, check_claim
from cloakwork.series.hadamard import CoefficientRelease
from cloakwork.series.noise import Claim


class CoefficientsCloak(Immutable):
    """Releases Walsh coefficients once, with the least noise for what each is worth to what is published."""

    def __init__(self, worth: FloatArray, *, epsilon: float, delta: float, contribution: int, owner: str) -> None:
        check_claim(epsilon, delta)
        self.epsilon, self.delta = float(epsilon), float(delta)
        self.contribution = count("contribution", contribution, error=CalibrationError)
        self.plan = CoefficientRelease.meeting(worth, Claim(self.epsilon, self.delta, self.contribution))
        self._ledger = Ledger(
            1,
            unit="release",
            owner=owner,
            remedy="Publishing once more costs as much again; to experiment, use simulate(..., rng=...).",
        )

    @property
    def coefficients(self) -> int:
        """How many Walsh coefficients are released."""
        return self.plan.strategy.length

    @property
    def expected_mse(self) -> float:
        """Mean squared error over all that is published, with the cost of rounding."""
        return self.plan.expected_mse

    @property
    def ideal_mse(self) -> float:
        """What weights and noise of any precision would reach."""
        return self.plan.ideal_mse

    @property
    def rounding_cost(self) -> float:
        """How much more mean squared error whole weights and noise cost, as a fraction."""
        return self.expected_mse / self.ideal_mse - 1
