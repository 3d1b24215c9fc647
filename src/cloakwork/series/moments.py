"""What a stream publishes: outputs, each at its time."""

from dataclasses import dataclass

from scipy.special import ndtri

from cloakwork._checks import FloatArray, frozen
from cloakwork.series.given import check_confidence


@dataclass(frozen=True, slots=True)
class Moment:
    """What is published at one time, counted from 0: the output and how far off it is."""

    time: int
    value: float
    standard_deviation: float

    def band(self, confidence: float = 0.95) -> float:
        """How far the value may be off with this confidence."""
        return float(self.standard_deviation * ndtri((1 + check_confidence(confidence)) / 2))


@dataclass(frozen=True, eq=False)
class Outputs:
    """Outputs of a stream one after the other: values of shape (n,) or (runs, n), and the deviation of each, (n,)."""

    values: FloatArray
    standard_deviation: FloatArray

    def __post_init__(self) -> None:
        frozen(self.values)
        frozen(self.standard_deviation)
