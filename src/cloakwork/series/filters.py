"""Filters of a series: tap vectors with a name. They are public."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, count, describe_argument, instance_of, numbers, positive, read_only
from cloakwork.errors import InputError

FILTER_FORMS = "running-sum, window:24, average:24, decay:0.9, power:1, trend:24, seasonal:24x4 or taps:0.5,0.25@-1"
_NEGLIGIBLE = 2.0**-60
_SMALLEST, _LARGEST = 1e-100, 1e100  # squares of everything computed from taps stay finite
_LONGEST = 1 << 24  # taps of a filter that ends: more than a series may have values


@dataclass(frozen=True, eq=False)
class Filter:
    """A named vector of public taps: y_t = sum over k of taps[k] x_{t - first - k}.

    Parameters
    ----------
    name
        Its name in columns and legends.
    taps
        The coefficients. A filter without an end has a function instead that returns the first n of them.
    first
        The lag of the first tap. A negative lag looks ahead.
    averaging
        Whether each output is divided by the sum of the taps that fall inside the series.
    """

    name: str
    taps: ArrayLike | Callable[[int], FloatArray] = field(repr=False)
    first: int = 0
    averaging: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InputError(f"name={describe_argument(self.name)}: give a text.")
        count("first", self.first, minimum=-math.inf)
        if callable(self.taps):
            return
        taps = np.array(numbers("taps", self.taps))
        if taps.ndim != 1 or not taps.size or not np.isfinite(taps).all() or not taps.any():
            raise InputError("taps: give a list of finite numbers, at least one of which is not 0.")
        if not _SMALLEST <= float(np.abs(taps).max()) <= _LARGEST:
            raise InputError(f"the largest tap is {np.abs(taps).max():g}: give {_SMALLEST:g} to {_LARGEST:g}.")
        object.__setattr__(self, "taps", read_only(taps))

    @property
    def values(self) -> FloatArray:
        """The taps of a filter that ends."""
        return np.asarray(self.taps, dtype=np.float64)

    @property
    def reach(self) -> int | None:
        """The number of values from an output to the furthest one that it uses, inclusive; None without an end."""
        return None if callable(self.taps) else max(abs(self.first), abs(self.first + len(self.values) - 1)) + 1

    def cut(self, n: int) -> "Filter":
        """Return the filter with only the taps that meet a value in a series of `n` values."""
        taps = self.taps(n) if callable(self.taps) else self.values
        low, high = max(1 - n - self.first, 0), max(n - self.first, 0)
        if not taps[low:high].any():
            raise InputError(f"no tap of {self.name} reaches into a series of {n} values.", n=n)
        return replace(self, taps=taps[low:high], first=self.first + low)

    def scale(self, n: int) -> FloatArray:
        """Return the factor of each of the `n` outputs: 1, unless the filter averages."""
        if not self.averaging:
            return np.ones(n)
        sums = np.concatenate([[0.0], np.cumsum(self.values)])
        newest = np.arange(n) - self.first
        last = len(sums) - 1
        inside = sums[np.clip(newest + 1, 0, last)] - sums[np.clip(newest - n + 1, 0, last)]
        if not (inside > 0).all():
            raise InputError(f"{self.name} has nothing to average near an end of {n} values: give a longer series.")
        return np.asarray(1.0 / inside)


def RunningSum() -> Filter:  # noqa: N802 - reads as a noun where it is used
    """Return the sum of all values so far: y_t = x_0 + ... + x_t.

    >>> RunningSum().cut(4).taps.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return Filter("running-sum", np.ones)


def WindowSum(width: int) -> Filter:  # noqa: N802
    """Return the sum of the last `width` values.

    >>> WindowSum(3).values.tolist()
    [1.0, 1.0, 1.0]
    """
    return Filter(f"window-{width}", np.ones(_length("width", width)))


def MovingAverage(width: int) -> Filter:  # noqa: N802
    """Return the mean of the last `width` values, or of fewer at the start.

    >>> MovingAverage(4).values.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    taps = np.full(_length("width", width), 1 / width)
    return Filter(f"average-{width}", taps, averaging=True)


def Decay(rate: float) -> Filter:  # noqa: N802
    """Return y_t = x_t + rate x_{t-1} + rate^2 x_{t-2} + ..., for a rate between 0 and 1.

    >>> Decay(0.5).cut(4).taps.tolist()
    [1.0, 0.5, 0.25, 0.125]
    """
    if positive("rate", rate) >= 1:
        raise InputError(f"rate={rate!r}: give a number between 0 and 1.", rate=rate)
    return Filter(f"decay-{rate:g}", partial(_powers, rate))


def PowerDecay(power: float) -> Filter:  # noqa: N802
    """Return y_t = x_t + x_{t-1} / 2^power + x_{t-2} / 3^power + ...

    >>> PowerDecay(1.0).cut(4).values.round(2).tolist()
    [1.0, 0.5, 0.33, 0.25]
    """
    return Filter(f"power-{power:g}", partial(_inverse_powers, positive("power", power)))


def Trend(width: int) -> Filter:  # noqa: N802
    """Return a centred mean of `width` values, which looks ahead as far as back.

    An even width takes half of each end, so a cycle of this length disappears.

    >>> Trend(4).taps.tolist()
    [0.125, 0.25, 0.25, 0.25, 0.125]
    """
    half = _length("width", width) // 2
    taps = np.ones(2 * half + 1)
    if 2 * half == width:
        taps[[0, -1]] /= 2
    return Filter(f"trend-{width}", taps / taps.sum(), -half, averaging=True)


def Seasonal(period: int, cycles: int = 4) -> Filter:  # noqa: N802
    """Return the mean of the same time in the last `cycles` cycles of `period` values, such as Mondays at nine.

    >>> Seasonal(period=3, cycles=2).values.tolist()
    [0.5, 0.0, 0.0, 0.5]
    """
    taps = np.zeros(_length("period", (count("cycles", cycles) - 1) * count("period", period) + 1))
    taps[::period] = 1 / cycles
    return Filter(f"seasonal-{period}x{cycles}", taps, averaging=True)


def Coefficients(values: ArrayLike, first: int = 0, label: str = "filter") -> Filter:  # noqa: N802
    """Return any other filter: y_t = values[0] x_{t-first} + values[1] x_{t-first-1} + ...

    >>> Coefficients([0.25, 0.5, 0.25], first=-1).reach
    2
    """
    return Filter(label, values, first)


def check_filters(filters: object) -> tuple[Filter, ...]:
    """Return one or more filters as a tuple; refuse anything else."""
    several = filters if isinstance(filters, list | tuple) else [filters]
    example = "a filter such as RunningSum() or WindowSum(24), or Coefficients([0.5, 0.5])"
    if not several:
        raise InputError(f"filters: give {example}.")
    return tuple(instance_of("filter", each, Filter, example) for each in several)


_FORMS: dict[str, tuple[Callable[..., Filter], type[int] | type[float]]] = {
    "running-sum": (RunningSum, int),
    "window": (WindowSum, int),
    "average": (MovingAverage, int),
    "decay": (Decay, float),
    "power": (PowerDecay, float),
    "trend": (Trend, int),
    "seasonal": (Seasonal, int),
}


def parse_filters(texts: Sequence[str]) -> list[Filter]:
    """Convert texts such as trend:24 to filters; taps:0.5,0.25@-1 has any taps, from lag -1 on.

    >>> [made.name for made in parse_filters(["running-sum", "seasonal:24x4", "taps:0.5,0.25"])]
    ['running-sum', 'seasonal-24x4', 'taps:0.5,0.25']
    """
    if not texts:
        raise InputError(f"give at least one of {FILTER_FORMS}.", parameter="filters")
    return [_parse_filter(text) for text in texts]


def _parse_filter(text: str) -> Filter:
    kind, _, rest = text.partition(":")
    try:
        if kind == "taps":
            taps, _, first = rest.partition("@")
            return Coefficients([float(part) for part in taps.split(",")], int(first or 0), label=text)
        make, number = _FORMS[kind]
        return make(*(number(part) for part in rest.split("x") if part))
    except InputError as problem:
        fault = str(problem)
    except (KeyError, ValueError, TypeError):
        fault = f"give {FILTER_FORMS}."
    raise InputError(f"filters={text[:64]}: {fault}", parameter="filters", filter=text[:64])


def _length(name: str, taps: int) -> int:
    if count(name, taps) > _LONGEST:
        raise InputError(f"{name}: this filter would have {taps:,} taps. Give one of at most {_LONGEST:,}.", taps=taps)
    return taps


def _powers(rate: float, n: int) -> FloatArray:
    needed = int(math.log(_NEGLIGIBLE) / math.log(rate)) + 1
    return np.asarray(rate ** np.arange(min(n, max(needed, 1)), dtype=np.float64))


def _inverse_powers(power: float, n: int) -> FloatArray:
    taps = np.arange(1.0, n + 1) ** -power
    return np.asarray(taps[taps >= _NEGLIGIBLE])
