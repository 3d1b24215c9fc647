"""Argument checks shared by all layers: each returns the clean value or raises an error with advice.

No message shows an entry of an array, since it may be true data.
"""

import math
from collections.abc import Sequence
from dataclasses import fields
from enum import Enum
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork.errors import InputError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

_NOT_NUMBERS = str | bytes | np.datetime64 | np.timedelta64
_LONGEST_SHOWN = 64

T = TypeVar("T")
E = TypeVar("E", bound=Enum)


def positive(name: str, value: float, *, error: type[InputError] = InputError, unit: str = "") -> float:
    """Return `value` as a float; refuse it unless it is finite and above zero."""
    number = as_number(name, value, error=error)
    if not (math.isfinite(number) and number > 0):
        raise error(f"{name}={value!r}: give a finite number above 0{unit}.", **{name: value})
    return number


def not_negative(name: str, value: float, *, error: type[InputError] = InputError) -> float:
    """Return `value` as a float; refuse it unless it is finite and at least zero."""
    number = as_number(name, value, error=error)
    if not (math.isfinite(number) and number >= 0):
        raise error(f"{name}={value!r}: give a finite number, 0 or above.", **{name: value})
    return number


def as_number(name: str, value: Any, *, error: type[InputError] = InputError) -> float:
    """Return `value` as a float; refuse it unless it is a number."""
    if isinstance(value, bool | str | bytes):
        raise error(f"{name}={value!r}: give a number.", **{name: value})
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise error(f"{name}={value!r}: give a number.", **{name: value}) from None


def count(name: str, value: int, *, minimum: float = 1, error: type[InputError] = InputError) -> int:
    """Return `value` as an int; refuse it unless it is a whole number of at least `minimum`, which may be -infinity."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        allowed = f", {minimum:g} or above" if math.isfinite(minimum) else ""
        raise error(f"{name}={value!r}: give a whole number{allowed}.", **{name: value})
    return int(value)


def frames(name: str, values: ArrayLike, width: int, *, error: type[InputError] = InputError) -> FloatArray:
    """Return `values` as float64 of shape (..., width); refuse a wrong shape and entries that are not finite.

    The message names positions only, since the values may be true readings.
    """
    array = _floats(values)
    if array is None:
        raise error(f"{name}: give an array of numbers with {width} in each row.", width=width)
    if array.ndim == 0 or array.shape[-1] != width:
        raise error(
            f"{name} has shape {array.shape}: the last axis must have length {width}.",
            shape=array.shape,
            width=width,
        )
    bad = np.argwhere(~np.isfinite(array))
    if bad.size:
        where = tuple(int(i) for i in bad[0])
        raise error(
            f"{name}{list(where)} is not a finite number ({len(bad)} such entries): leave out or repair these first.",
            where=where,
            entries=len(bad),
        )
    return array


def points(name: str, values: ArrayLike | Sequence[object], *, error: type[InputError] = InputError) -> FloatArray:
    """Return `values` as points in the plane, shape (k, 2)."""
    array = _floats(values)
    if array is None or array.ndim != 2 or array.shape[1] != 2 or not len(array) or not np.isfinite(array).all():
        raise error(f"{name}: give a list of (x, y) pairs of finite numbers.", **{name: values})
    return array


def per_sensor(
    name: str, values: ArrayLike, sensors: int, *, zero: bool = False, error: type[InputError] = InputError
) -> FloatArray:
    """Return one number for all sensors, or one for each, as an array of shape (sensors,); 0 only if `zero`."""
    array = None if isinstance(values, bool | str | bytes) else _floats(values)
    if array is None or array.shape not in {(), (1,), (sensors,)}:
        raise error(
            f"{name}: give one number, or one for each of the {sensors} sensors.", sensors=sensors, **{name: values}
        )
    if not (np.isfinite(array).all() and (array > 0).all() | (zero and (array >= 0).all())):
        least = "of 0 or more" if zero else "above 0"
        raise error(f"{name} holds a value that is not a finite number {least}.", **{name: values})
    return np.array(np.broadcast_to(array, (sensors,)))


def _floats(values: Any) -> FloatArray | None:
    """Return `values` as float64, or None: the context of an error raised here would hold the values."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def numbers(name: str, values: object, *, error: type[InputError] = InputError) -> FloatArray:
    """Convert to floats of any shape; refuse anything but real numbers, such as texts and dates.

    >>> numbers("x", [1, 2]).tolist()
    [1.0, 2.0]
    >>> numbers("x", ["1", "2"])
    Traceback (most recent call last):
    cloakwork.errors.InputError: x: give a list or an array of numbers; several rows must have the same length.
    """
    array = array_or_none(values)
    if array is not None and array.dtype == object and array.ndim:  # as whole numbers beyond 64 bits
        array = None if any(isinstance(entry, _NOT_NUMBERS) for entry in array.flat) else _floats(array)
    if array is None or array.dtype.kind not in "biuf":
        raise error(f"{name}: give a list or an array of numbers; several rows must have the same length.")
    return np.asarray(array, dtype=np.float64)


def whole_numbers(name: str, values: ArrayLike, length: int | None = None) -> IntArray:
    """Convert to a list of 64-bit whole numbers; refuse other kinds, so that nothing is ever truncated."""
    array = array_or_none(values)
    if array is None:
        raise InputError(f"{name}: give a list of whole numbers.")
    if array.ndim != 1 or (length is not None and len(array) != length):
        number = "" if length is None else f"{length} "
        raise InputError(f"{name} has shape {array.shape}: give a list of {number}whole numbers.", shape=array.shape)
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"{name}: give whole numbers of at most 64 bits.")
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise InputError(f"{name}: give whole numbers below 2^63.")
    return array.astype(np.int64)


def array_or_none(values: object) -> NDArray[Any] | None:
    """Convert to an array; None if rows differ in length. NumPy's own error would show the values."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        return None


def instance_of(name: str, value: object, kind: type[T], example: str) -> T:
    """Return `value` if it is an instance of `kind`; refuse it otherwise."""
    if not isinstance(value, kind):
        given = describe_argument(value)
        raise InputError(f"{name}={given}: give {example}.", **{name: given})
    return value


def member_of(name: str, value: object, kind: type[E], *, error: type[InputError] = InputError) -> E:
    """Return the member of an enumeration that `value` names; refuse other names."""
    try:
        return kind(value)
    except ValueError:
        allowed = " or ".join(f'"{member.value}"' for member in kind)
        raise error(f"{name}={value!r}: give {allowed}.", **{name: value}) from None


def describe_argument(value: object) -> str:
    """Describe an argument in a few words: texts and single numbers in full, anything else by its type.

    >>> describe_argument("paper"), describe_argument(int), describe_argument([3, 1, 4])
    ("'paper'", 'int (a class)', 'something of type list')
    """
    if isinstance(value, type):
        return f"{value.__name__} (a class)"
    if value is None or isinstance(value, str | bool | int | float):
        return repr(value)[:_LONGEST_SHOWN]
    return f"something of type {type(value).__name__}"


def rounded_up(value: float, digits: int = 4) -> str:
    """Format `value` with a few significant digits, rounded up: for upper bounds.

    >>> rounded_up(13.589715, 6), rounded_up(13.581), rounded_up(0.1)
    ('13.5898', '13.59', '0.1')
    """
    return _outward(value, digits, 1.0)


def rounded_down(value: float, digits: int = 4) -> str:
    """Format `value` with a few significant digits, rounded down: for lower bounds."""
    return _outward(value, digits, -1.0)


def percent(fraction: float) -> str:
    """Format a fraction in percent with a few significant digits, and never with an exponent for large ones.

    >>> percent(0.0123456), percent(1.4), percent(25)
    ('1.23 %', '140 %', '2,500 %')
    """
    text = f"{100 * fraction:.3g}"
    return f"{float(text):,.0f} %" if abs(float(text)) >= 100 else f"{text} %"


def more_noise(fraction: float) -> str:
    """Format a cost in noise.

    >>> more_noise(0.0123456), more_noise(-0.2)
    ('1.23 % more noise', '20 % less noise')
    """
    return f"{percent(abs(fraction))} {'less' if fraction < 0 else 'more'} noise"


_DURATIONS = (("year", 31_557_600), ("week", 604_800), ("day", 86_400), ("hour", 3_600), ("minute", 60))


def duration(seconds: float) -> str:
    """Format seconds in the largest unit of which they are about one or more.

    >>> duration(600), duration(60.015), duration(5400), duration(0.02)
    ('10 minutes', '1 minute', '1.5 hours', '20 ms')
    """
    for unit, size in _DURATIONS:
        if seconds > 0.995 * size:
            number = f"{seconds / size:.3g}"
            return f"{number} {unit}{'' if number == '1' else 's'}"
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _outward(value: float, digits: int, direction: float) -> str:
    text = f"{value:.{digits}g}"
    if value == 0 or not math.isfinite(value) or direction * (float(text) - value) >= 0:
        return text
    step = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return f"{float(text) + direction * step:.{digits}g}"


def short_repr(thing: Any) -> str:
    """One line for the fields of a dataclass that has large ones: of an array the shape, of other long values the kind.

    No entry of an array is shown, since it may be true data.
    """

    def shown(value: Any) -> str:
        if getattr(value, "shape", ()):
            return f"<{' x '.join(map(str, value.shape))}>"
        text = repr(value)
        short = len(text) <= _LONGEST_SHOWN and " at 0x" not in text and "array(" not in text
        return text if short else f"<{type(value).__name__}>"

    parts = (f"{each.name}={shown(getattr(thing, each.name))}" for each in fields(thing) if each.repr)
    return f"{type(thing).__name__}({', '.join(parts)})"


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only, so that callers cannot change cached results, and return it."""
    array.setflags(write=False)
    return array


def spread_of(values: FloatArray) -> str:
    """Positive values as one number, or as their range, rounded up."""
    low, high = float(values.min()), float(values.max())
    return rounded_up(high) if low == high else f"{rounded_up(low)} to {rounded_up(high)}"


def scalar_or_array(values: FloatArray) -> float | FloatArray:
    """The value that all sensors share, or a copy of those of each."""
    return float(values[0]) if (values == values[0]).all() else values.copy()
