"""How a quantity grows: the slope of its logarithm, with its error."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ALLOWED = 0.1  # how far a finite range may bend a slope, and how large its error may be


@dataclass(frozen=True)
class Slope:
    """The exponent p of y proportional to x^p, and its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:+.2f} ± {self.error:.2f}"

    def near(self, other: float, *, allowed: float = ALLOWED) -> bool:
        """Whether it is the same as another, up to what a finite range can bend; one with a larger error is not.

        >>> Slope(0.9, 0.02).near(1.0), Slope(0.9, 0.2).near(1.0)
        (True, False)
        """
        return abs(self.value - other) <= allowed and self.error <= allowed


def fitted(x: Sequence[float], y: Sequence[float], errors: Sequence[float] | None = None) -> Slope:
    """Fit the slope of log y in log x by least squares; `errors` are the standard errors of y, equal if left out.

    The error of the slope is the larger of what the errors of y explain and what the scatter around the line shows.

    >>> str(fitted([1, 2, 4, 8], [3, 12, 48, 192]))
    '+2.00 ± 0.00'
    """
    across, up = np.log(np.asarray(x, float)), np.log(np.asarray(y, float))
    spread = np.ones_like(up) if errors is None else np.maximum(np.asarray(errors, float) / np.asarray(y, float), 1e-9)
    weight = spread**-2
    centre = float((weight * across).sum() / weight.sum())
    square = float((weight * (across - centre) ** 2).sum())
    value = float((weight * (across - centre) * up).sum() / square)
    left = up - up @ weight / weight.sum() - value * (across - centre)
    scatter = float((weight * left**2).sum() / max(len(up) - 2, 1))
    explained = 0.0 if errors is None else 1.0
    return Slope(value, float(np.sqrt(max(scatter, explained) / square)))
