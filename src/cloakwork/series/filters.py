"""Filters of a series. They are public."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from cloakwork._checks import FloatArray, count, describe_argument, frozen, instance_of, numbers, positive
from cloakwork.errors import InputError

_NEGLIGIBLE = 2.0**-60
_SMALLEST, _LARGEST = 1e-100, 1e100


def check_scale(what: str, values: FloatArray) -> None:
    """Refuse numbers so small or large that squares of results overflow or vanish."""
    largest = float(np.abs(values).max())
    if not _SMALLEST <= largest <= _LARGEST:
        raise InputError(
            f"the largest {what} is {largest:g}: scale them so that it is between {_SMALLEST:g} and {_LARGEST:g}."
        )


@dataclass(frozen=True, eq=False)
class Taps:
    """y_t = sum over k of values[k] x_{t - first - k}; a negative `first` looks ahead.

    If `averaging`, the taps that remain near the ends of the series are scaled up to the same total.
    """

    values: FloatArray
    first: int = 0
    averaging: bool = False

    def __post_init__(self) -> None:
        values = np.array(numbers("a filter's coefficients", self.values))
        count("first", self.first, least=-math.inf)
        if values.ndim != 1 or not values.size or not np.isfinite(values).all():
            raise InputError("a filter needs a list of at least one finite coefficient.")
        if not values.any():
            raise InputError("all coefficients of the filter are 0: there is nothing to publish.")
        check_scale("coefficient of the filter", values)
        object.__setattr__(self, "values", frozen(values))

    def scale(self, n: int) -> FloatArray:
        """The factor of each of the `n` outputs, shape (n,): 1, except near the ends of an average."""
        if not self.averaging:
            return np.ones(n)
        sums = np.concatenate([[0.0], np.cumsum(self.values)])
        times = np.arange(n) - self.first
        inside = sums[np.clip(times + 1, 0, len(self.values))] - sums[np.clip(times - n + 1, 0, len(self.values))]
        if not (inside > 0).all():
            raise InputError(
                f"a filter of {len(self.values)} coefficients has nothing to average at an end of {n} values: give a "
                "longer series or a shorter filter."
            )
        return np.asarray(sums[-1] / inside)


class Filter(Protocol):
    """A filter: an object with a name, and taps for a series of length n."""

    @property
    def name(self) -> str:
        """Its name in legends and columns."""

    def taps(self, n: int) -> Taps:
        """The coefficients for a series of `n` values, without any that no output uses."""


@dataclass(frozen=True)
class RunningSum:
    """The sum of all values so far: y_t = x_0 + ... + x_t.

    >>> RunningSum().taps(4).values.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    @property
    def name(self) -> str:
        return "running-sum"

    def taps(self, n: int) -> Taps:
        return Taps(np.ones(n))


@dataclass(frozen=True)
class WindowSum:
    """The sum of the last `width` values.

    >>> WindowSum(3).taps(100).values.tolist()
    [1.0, 1.0, 1.0]
    """

    width: int

    def __post_init__(self) -> None:
        count("width", self.width)

    @property
    def name(self) -> str:
        return f"window-{self.width}"

    @property
    def reach(self) -> int:
        return self.width

    def taps(self, n: int) -> Taps:
        return Taps(np.ones(min(self.width, n)))


@dataclass(frozen=True)
class MovingAverage:
    """The mean of the last `width` values, or of fewer at the start.

    >>> MovingAverage(4).taps(100).values.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    width: int

    def __post_init__(self) -> None:
        count("width", self.width)

    @property
    def name(self) -> str:
        return f"average-{self.width}"

    @property
    def reach(self) -> int:
        return self.width

    def taps(self, n: int) -> Taps:
        width = min(self.width, n)
        return Taps(np.full(width, 1 / width), averaging=True)


@dataclass(frozen=True)
class Decay:
    """y_t = x_t + rate x_{t-1} + rate^2 x_{t-2} + ..., for a rate between 0 and 1.

    >>> Decay(0.5).taps(4).values.tolist()
    [1.0, 0.5, 0.25, 0.125]
    """

    rate: float

    def __post_init__(self) -> None:
        if positive("rate", self.rate) >= 1:
            raise InputError(f"rate={self.rate!r}: give a number between 0 and 1.", rate=self.rate)

    @property
    def name(self) -> str:
        return f"decay-{self.rate:g}"

    def taps(self, n: int) -> Taps:
        needed = int(np.log(_NEGLIGIBLE) / np.log(self.rate)) + 1
        return Taps(np.power(self.rate, np.arange(min(n, max(needed, 1)), dtype=np.float64)))


@dataclass(frozen=True)
class PowerDecay:
    """y_t = x_t + x_{t-1} / 2^power + x_{t-2} / 3^power + ...

    >>> PowerDecay(1).taps(4).values.round(2).tolist()
    [1.0, 0.5, 0.33, 0.25]
    """

    power: float

    def __post_init__(self) -> None:
        positive("power", self.power)

    @property
    def name(self) -> str:
        return f"power-{self.power:g}"

    def taps(self, n: int) -> Taps:
        weights = np.arange(1.0, n + 1) ** -self.power
        return Taps(weights[weights >= _NEGLIGIBLE])


@dataclass(frozen=True)
class Trend:
    """A centred mean of `width` values, which looks ahead as far as back.

    An even width includes half of each end, so a cycle of this length disappears.

    >>> Trend(4).taps(100).values.tolist()
    [0.125, 0.25, 0.25, 0.25, 0.125]
    """

    width: int

    def __post_init__(self) -> None:
        count("width", self.width)

    @property
    def name(self) -> str:
        return f"trend-{self.width}"

    @property
    def reach(self) -> int:
        return self.width // 2 + 1

    def taps(self, n: int) -> Taps:
        half = min(self.width // 2, n - 1)
        kept = np.ones(2 * half + 1)
        if 2 * half == self.width:
            kept[[0, -1]] /= 2
        return Taps(kept / kept.sum(), first=-half, averaging=True)


@dataclass(frozen=True)
class Seasonal:
    """The mean of the same time in the last `cycles` cycles of `period` values, such as Mondays at nine.

    >>> Seasonal(period=3, cycles=2).taps(100).values.tolist()
    [0.5, 0.0, 0.0, 0.5]
    """

    period: int
    cycles: int = 4

    def __post_init__(self) -> None:
        count("period", self.period)
        count("cycles", self.cycles)

    @property
    def name(self) -> str:
        return f"seasonal-{self.period}x{self.cycles}"

    @property
    def reach(self) -> int:
        return (self.cycles - 1) * self.period + 1

    def taps(self, n: int) -> Taps:
        kept = np.zeros(min(self.reach, n))
        kept[:: self.period] = 1.0
        return Taps(kept / kept.sum(), averaging=True)


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Any filter: y_t = values[0] x_{t-first} + values[1] x_{t-first-1} + ...

    >>> Coefficients([0.5, 0.5]).taps(100).values.tolist()
    [0.5, 0.5]
    """

    values: Sequence[float] | FloatArray
    first: int = 0
    label: str = "filter"
    _taps: Taps = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.label, str):
            raise InputError(f"label={describe_argument(self.label)}: give a name, as a text.")
        object.__setattr__(self, "_taps", Taps(numbers("values", self.values), self.first))

    @property
    def name(self) -> str:
        return self.label

    @property
    def reach(self) -> int:
        first, last = self._taps.first, self._taps.first + len(self._taps.values) - 1
        return max(abs(first), abs(last)) + 1

    def taps(self, n: int) -> Taps:
        """The coefficients at lags from -(n-1) to n-1; others meet no value."""
        values, first = self._taps.values, self._taps.first
        low, high = max(-(n - 1) - first, 0), n - first
        if low >= min(high, len(values)):
            raise InputError(f"no coefficient of {self.label} reaches into a series of {n} values.", n=n)
        return Taps(values[low:high], first + low)


def check_circle(filters: Sequence[Filter], n: int) -> None:
    """Refuse filters that reach more than once around a circle of `n` values.

    The `reach` of a filter that has one counts the values from the output to the furthest that it uses, inclusive.
    """
    for checked in filters:
        reach = getattr(checked, "reach", 0)
        if reach > n:
            raise InputError(
                f"{checked.name} reaches {reach} values far, more than once around a circle of {n}: give a longer "
                "series or a shorter filter.",
                n=n,
            )


def check_filters(filters: object) -> tuple[Filter, ...]:
    """Return one or more filters as a tuple; refuse anything else."""
    checked = tuple(map(check_filter, filters if isinstance(filters, list | tuple) else [filters]))
    if not checked:
        raise InputError("filters: give at least one, such as RunningSum().")
    return checked


def check_filter(filter: Any) -> Filter:  # noqa: A002 - it is one
    """Return a filter; refuse anything else."""
    if isinstance(filter, type) or not callable(getattr(filter, "taps", None)):
        is_number = isinstance(filter, int | float | np.number)
        numeric = is_number or isinstance(filter, np.ndarray)
        own = ", or coefficients of your own as Coefficients([0.5, 0.5])" if numeric else ""
        raise InputError(
            f"{'a number' if is_number else describe_argument(filter)} is not a filter: give an object such as "
            f"RunningSum() or WindowSum(24), of cloakwork{own}."
        )
    if not isinstance(getattr(filter, "name", None), str):
        raise InputError(f"{describe_argument(filter)} is not a filter: it has no name. Give it one, as a text.")
    checked: Filter = filter
    return checked


def check_taps(filter: Filter, n: int) -> Taps:  # noqa: A002 - it is one
    """The taps of a filter for `n` values; refuses anything that is not `Taps`."""
    taps: object = filter.taps(n)
    return instance_of(f"{filter.name}.taps({n})", taps, Taps, "Taps, such as Taps([0.5, 0.5])")
