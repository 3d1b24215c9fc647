"""Checks of arguments. No message shows a value that may be true data."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork._checks import FloatArray, IntArray, as_number
from cloakwork.errors import InputError

_TEXTS, _DATES = "texts: give numbers", "dates or times: give numbers"
_OTHER_KINDS = {"S": _TEXTS, "U": _TEXTS, "M": _DATES, "m": _DATES, "c": "complex numbers: give real ones"}
_NOT_NUMBERS = str | bytes | np.datetime64 | np.timedelta64
_LONGEST_SHOWN = 64

T = TypeVar("T")


def numbers(name: str, values: object, *, error: type[InputError] = InputError) -> FloatArray:
    """Convert to floats of any shape; refuse anything but numbers, such as texts and dates.

    >>> numbers("x", [1, 2]).tolist()
    [1.0, 2.0]
    >>> numbers("x", ["1", "2"])
    Traceback (most recent call last):
    cloakwork.errors.InputError: x holds texts: give numbers.
    """
    array = array_or_none(values)
    if array is None:
        raise error(f"{name}: give a list or an array of numbers; several rows must have the same length.")
    other = _OTHER_KINDS.get(array.dtype.kind)
    if other is not None and array.ndim:
        raise error(f"{name} holds {other}.")
    converted = _floats_or_none(array)
    if converted is None:
        raise error(f"{name}: give a list or an array of numbers.")
    return converted


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


def _floats_or_none(array: NDArray[Any]) -> FloatArray | None:
    """Convert to floats, or None: an exception raised here would carry the values in its context."""
    if array.dtype.kind in "biuf":
        return np.asarray(array, dtype=np.float64)
    if array.dtype != object or not array.ndim or any(isinstance(entry, _NOT_NUMBERS) for entry in array.flat):
        return None
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def whole_number(name: str, value: object, meaning: str) -> int:
    """Convert to an int of any sign; `meaning` says what the number stands for."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{name}={describe_argument(value)}: give {meaning}, a whole number.")
    return int(value)


def check_confidence(confidence: float) -> float:
    """Check that a confidence lies between 0 and 1."""
    if not 0 < as_number("confidence", confidence) < 1:
        raise InputError(f"confidence={confidence!r}: give a number between 0 and 1.", confidence=confidence)
    return float(confidence)


def instance_of(name: str, value: object, kind: type[T], example: str) -> T:
    """Return `value` if it is an instance of `kind`; refuse it otherwise."""
    if not isinstance(value, kind):
        raise InputError(f"{name}={describe_argument(value)}: give {example}.")
    return value


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
