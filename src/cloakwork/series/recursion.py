"""One step of a stream: a whole number comes in, a whole number with noise is released, an output follows from it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled

_SAME = 1e-12
_NEGLIGIBLE = 2.0**-59


class History:
    """The last `reach` numbers, newest first, always in one piece of memory."""

    def __init__(self, reach: int, kind: type[np.int64] | type[np.float64]) -> None:
        self._reach, self._filled = reach, 0
        self._room: NDArray[Any] = np.zeros(2 * reach, dtype=kind)
        self._first = 2 * reach

    @property
    def size(self) -> int:
        """Numbers that there is room for."""
        return len(self._room)

    @property
    def recent(self) -> NDArray[Any]:
        """Those there are, up to `reach` of them."""
        return self._room[self._first : self._first + self._filled]

    def add(self, number: float) -> None:
        """Take in one more; the oldest is forgotten."""
        if self._first == 0:
            self._room[self._reach + 1 :] = self._room[: self._reach - 1]
            self._first = self._reach + 1
        self._first -= 1
        self._room[self._first] = number
        self._filled = min(self._filled + 1, self._reach)


class Recursion:
    """Releases r = w * x + noise as x arrives, and works out (h / w) * r.

    Notes
    -----
    z = r / w follows by z_t = (r_t - sum_{k>0} w_k z_{t-k}) / w_0: what is known of x_t, with the noise that later
    values still share. The output is h * z; where h_k = h_0 rho^k, that is y_t = rho y_{t-1} + h_0 z_t.
    """

    def __init__(self, weights: IntArray, values: FloatArray, horizon: int | None) -> None:
        self._weights, self._divisor = weights, weights.astype(np.float64)
        self._values, self._ratio = values, constant_ratio(values, horizon)
        self._inputs = History(len(weights), np.int64)
        memory = len(weights) if self._ratio is not None else max(len(weights), len(values))
        self._noisy = History(memory, np.float64)
        self._output = 0.0

    @property
    def memory(self) -> int:
        """Numbers of the past that are kept."""
        return self._inputs.size + self._noisy.size

    def next(self, step: int, noise: int) -> float:
        """Take the next value of x and its noise, and give the next output."""
        self._inputs.add(step)
        released = int(_weighted(self._weights, self._inputs.recent, 0)) + noise
        known = float(_weighted(self._divisor[1:], self._noisy.recent, 0.0))
        newest = (released - known) / self._divisor[0]
        self._noisy.add(newest)
        if self._ratio is None:
            self._output = float(_weighted(self._values, self._noisy.recent, 0.0))
        else:
            self._output = self._ratio * self._output + self._values[0] * newest
        return self._output


def constant_ratio(values: FloatArray, horizon: int | None) -> float | None:
    """The rho with which values[k] = values[0] rho^k for all k that count, with 0 < rho <= 1; or None."""
    if len(values) == 1:
        return 1.0 if horizon == 1 else None
    ratio = float(values[1] / values[0]) if values[0] else 0.0
    if not 0 < ratio <= 1:
        return None
    ends = len(values) != horizon and abs(values[-1]) > _NEGLIGIBLE * abs(values[0])
    exact = values[0] * ratio ** np.arange(len(values))
    return None if ends or (np.abs(values - exact) > _SAME * np.abs(values)).any() else ratio


@compiled
def _weighted(weights: NDArray[Any], numbers: NDArray[Any], total: float) -> float:
    for k in range(min(len(weights), len(numbers))):
        total += weights[k] * numbers[k]
    return total
