"""Causal filtering: which filters a stream can serve, and its step from one value to one output."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray, count
from cloakwork._compile import compiled
from cloakwork.errors import InputError
from cloakwork.series.filters import Filter, Taps, check_taps
from cloakwork.series.mechanisms import SquareRoot, forgets
from cloakwork.series.strategies import Task

_LONGEST_REACH = 1 << 16  # of a filter without a horizon
_SHORTEST, _LONGEST = 1 << 12, 1 << 17  # values after which an endless stream counts as settled
_DAMPINGS = (1.0, *(1 - 2.0**-k for k in range(12, 3, -1)))
_SAME = 1e-12
_NEGLIGIBLE = 2.0**-59


def causal_taps(filter: Filter, horizon: int | None) -> Taps:  # noqa: A002 - it is one
    """The taps of a causal filter, starting at lag 0; without a horizon, the filter must forget."""
    taps = check_taps(filter, _LONGEST_REACH if horizon is None else horizon)
    if taps.first < 0:
        raise InputError(
            f"{filter.name} looks {-taps.first} values ahead, which a stream cannot. Publish the whole series at its "
            "end, with publish().",
            ahead=-taps.first,
        )
    if horizon is None and taps.first + len(taps.values) >= _LONGEST_REACH:
        raise InputError(
            f"{filter.name} looks back without end, or nearly so: without a horizon its error or its memory would "
            "grow. Give a horizon, or a filter that forgets, such as Decay(0.99) or WindowSum(168).",
            filter=filter.name,
        )
    return Taps(np.concatenate([np.zeros(taps.first), taps.values]), averaging=taps.averaging)


def settled_length(taps: Taps, band: int | None) -> int:
    """A length after which the error of an endless stream no longer changes."""
    reach = max(len(taps.values), 1 if band is None else count("band", band))
    if reach > _LONGEST_REACH:
        raise InputError(f"band={band}: without a horizon, give up to {_LONGEST_REACH}.", band=band)
    return min(max(1 << (4 * reach - 1).bit_length(), _SHORTEST), _LONGEST)


def causal_mechanism(
    filter: Filter,  # noqa: A002 - it is one
    task: Task,
    band: int | None,
    horizon: int | None,
) -> SquareRoot:
    """The mechanism of a stream; without a horizon, its strategy forgets, so that errors stay bounded."""
    if horizon is not None:
        return SquareRoot(band)
    for damping in _DAMPINGS:
        mechanism = SquareRoot(band or task.n // 4, damping)
        strategy = mechanism.strategy(task)
        if np.isfinite(strategy.variances).all() and forgets(strategy.weights):
            return mechanism
    raise InputError(
        f"{filter.name}: in a stream without a horizon, errors of this filter would grow or fade too slowly. Give a "
        "horizon, or a smaller band.",
        filter=filter.name,
    )


class History:
    """The last `reach` numbers, newest first, in contiguous memory."""

    def __init__(self, reach: int, kind: type[np.int64] | type[np.float64]) -> None:
        self._reach, self._filled = reach, 0
        self._room: NDArray[Any] = np.zeros(2 * reach, dtype=kind)
        self._first = 2 * reach

    @property
    def size(self) -> int:
        """Capacity of the buffer."""
        return len(self._room)

    @property
    def recent(self) -> NDArray[Any]:
        """The numbers so far, at most `reach`."""
        return self._room[self._first : self._first + self._filled]

    def add(self, number: float) -> None:
        """Add a number and forget the oldest."""
        if self._first == 0:
            self._room[self._reach + 1 :] = self._room[: self._reach - 1]
            self._first = self._reach + 1
        self._first -= 1
        self._room[self._first] = number
        self._filled = min(self._filled + 1, self._reach)


class Recursion:
    """Releases r = w * x + noise as x arrives, and computes (h / w) * r.

    Notes
    -----
    z = r / w is z_t = (r_t - sum_{k>0} w_k z_{t-k}) / w_0: an estimate of x_t, with noise that later estimates share.
    The output is h * z; if h_k = h_0 rho^k, this is y_t = rho y_{t-1} + h_0 z_t.
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
        """The number of past values that are kept."""
        return self._inputs.size + self._noisy.size

    def next(self, step: int, noise: int) -> float:
        """Take the next value of x and its noise, and return the next output."""
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
    """The rho in (0, 1] with values[k] = values[0] rho^k for all k that matter, or None."""
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
