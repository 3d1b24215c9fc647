"""Filters and spans of time, as people write them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cloakwork.cli.series_coefficients import read_coefficients
from cloakwork.errors import InputError
from cloakwork.series import (
    Decay,
    Filter,
    MovingAverage,
    PowerDecay,
    RunningSum,
    Seasonal,
    Trend,
    WindowSum,
)

FORMS = "running-sum, window:24, average:24, decay:0.9, power:1, trend:24, seasonal:24x4 or a CSV file of coefficients"
_UNITS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_LONGEST = 36_525 * 86_400_000  # a hundred years


def parse_filters(texts: Sequence[str]) -> list[Filter]:
    """The filters, each with a name of its own.

    >>> [one.name for one in parse_filters(["running-sum", "seasonal:24x4"])]
    ['running-sum', 'seasonal-24x4']
    """
    if not texts:
        raise InputError(f"give --filter, once or several times: {FORMS}.")
    found = [_filter(text) for text in texts]
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"--filter: {name} is there twice. Give each filter once.")
    return found


def _filter(text: str) -> Filter:
    if text.lower().endswith(".csv"):
        return read_coefficients(Path(text))
    kind, _, rest = text.partition(":")
    if kind == "running-sum" and not rest:
        return RunningSum()
    made = _MAKERS.get(kind)
    if made is None:
        raise InputError(f"--filter {text[:64]}: there is no such filter. Give {FORMS}.")
    form = _NEEDS[kind]
    if not rest.strip():
        raise InputError(f"--filter {text[:64]}: {kind} needs {form.needs}, such as {form.example}.")
    try:
        return made(rest)
    except InputError as problem:
        raise InputError(f"--filter {text[:64]}: {problem} Give {FORMS}.") from None
    except ValueError:
        raise InputError(f"--filter {text[:64]}: give {form.number}, such as {form.example}.") from None


def _seasonal(text: str) -> Filter:
    period, times, cycles = text.partition("x")
    return Seasonal(int(period), int(cycles)) if times else Seasonal(int(period))


_MAKERS: dict[str, Callable[[str], Filter]] = {
    "window": lambda text: WindowSum(int(text)),
    "average": lambda text: MovingAverage(int(text)),
    "decay": lambda text: Decay(float(text)),
    "power": lambda text: PowerDecay(float(text)),
    "trend": lambda text: Trend(int(text)),
    "seasonal": _seasonal,
}


@dataclass(frozen=True)
class _Form:
    """What a kind of filter needs after the colon."""

    needs: str
    number: str
    example: str


_NEEDS = {
    "window": _Form("a width", "a whole number", "window:24"),
    "average": _Form("a width", "a whole number", "average:24"),
    "decay": _Form("a rate", "a number", "decay:0.9"),
    "power": _Form("a power", "a number", "power:1"),
    "trend": _Form("a width", "a whole number", "trend:24"),
    "seasonal": _Form("a period", "whole numbers", "seasonal:24x4"),
}


def readable(one: Filter, every: str | None) -> str:
    """What a filter makes of bins that are called `every`, or of rows, in words for a title.

    >>> readable(Trend(24), "1h"), readable(MovingAverage(7), None)
    ('mean of 24 x 1h, centred', 'mean of the last 7 rows')
    """

    def bins(number: int) -> str:
        return f"{number} rows" if every is None else f"{number} x {every}"

    match one:
        case RunningSum():
            said = "sum of all so far"
        case WindowSum(width=1):
            said = f"each {every or 'row'}"
        case WindowSum(width=width):
            said = f"sum of the last {bins(width)}"
        case MovingAverage(width=width):
            said = f"mean of the last {bins(width)}"
        case Decay(rate=rate):
            said = f"fading sum, {rate:g} times as much each {every or 'row'} back"
        case PowerDecay(power=power):
            said = f"slowly fading sum, power {power:g}"
        case Trend(width=width):
            said = f"mean of {bins(width)}, centred"
        case Seasonal(period=period, cycles=cycles):
            said = f"mean of the same {every or 'row'} in {cycles} cycles of {bins(period)}"
        case _:
            said = one.name
    return said


def per_bin(one: Filter) -> bool:
    """Whether what a filter makes is an amount a bin, as the series itself is, rather than one of several bins."""
    return isinstance(one, MovingAverage | Trend | Seasonal) or one == WindowSum(1)


def parse_span(option: str, text: str) -> int:
    """Milliseconds of a span such as 15m, 1h, 1d or 1w.

    >>> parse_span("--every", "15m")
    900000
    """
    match = re.fullmatch(r"([0-9]{1,6})(s|m|h|d|w)", text.strip())
    span = 0 if match is None else int(match[1]) * _UNITS[match[2]]
    if not 0 < span <= _LONGEST:
        raise InputError(f"{option} {text[:64]}: give a whole number with m, h, d or w, such as 15m, 1h, 1d or 1w.")
    return span


def shown_span(milliseconds: int) -> str:
    """A span in the largest unit that fits.

    >>> shown_span(86_400_000), shown_span(5_400_000), shown_span(250)
    ('1d', '90m', '250ms')
    """
    for unit, size in reversed(_UNITS.items()):
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"
