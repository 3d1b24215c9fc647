"""What callers give, checked before anything is made of it. No message shows what may be true data."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, as_number
from cloakwork.errors import InputError

_TEXTS, _DATES = "texts: give numbers", "dates or times: give numbers"
_OTHER_KINDS = {"S": _TEXTS, "U": _TEXTS, "M": _DATES, "m": _DATES, "c": "complex numbers: give real ones"}
_NO_NUMBERS = str | bytes | np.datetime64 | np.timedelta64
_NAMED = 64

T = TypeVar("T")


def numbers(name: str, values: object, *, error: type[InputError] = InputError) -> FloatArray:
    """`values` as floats of any shape, refused where they are something else: texts and dates are no numbers.

    >>> numbers("x", [1, 2]).tolist()
    [1.0, 2.0]
    >>> numbers("x", ["1", "2"])
    Traceback (most recent call last):
    cloakwork.errors.InputError: x holds texts: give numbers.
    """
    array = array_of(values)
    if array is None:
        raise error(f"{name}: give a list or an array of numbers; rows, where there are several, of the same length.")
    other = _OTHER_KINDS.get(array.dtype.kind)
    if other is not None and array.ndim:
        raise error(f"{name} holds {other}.")
    found = _floats(array)
    if found is None:
        raise error(f"{name}: give a list or an array of numbers.")
    return found


def array_of(values: object) -> NDArray[Any] | None:
    """`values` as an array; None where rows differ in length, since NumPy's own error is not to be passed on."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        return None


def _floats(array: NDArray[Any]) -> FloatArray | None:
    """Floats, or None: an error raised from here would carry what could not be read in its context."""
    if array.dtype.kind in "biuf":
        return np.asarray(array, dtype=np.float64)
    if array.dtype != object or not array.ndim or any(isinstance(one, _NO_NUMBERS) for one in array.flat):
        return None
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def whole_number(name: str, value: object, what: str) -> int:
    """A whole number of any sign, as an int; `what` says which one is wanted."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{name}={said(value)}: give {what}, a whole number.")
    return int(value)


def check_confidence(confidence: float) -> float:
    """A confidence between 0 and 1."""
    if not 0 < as_number("confidence", confidence) < 1:
        raise InputError(f"confidence={confidence!r}: give a number between 0 and 1.", confidence=confidence)
    return float(confidence)


def one_of(name: str, given: object, kind: type[T], example: str) -> T:
    """`given`, refused unless it is an object of this class."""
    if not isinstance(given, kind):
        raise InputError(f"{name}={said(given)}: give {example}.")
    return given


def said(given: object) -> str:
    """What was given, in a few words: what a text or a single number is, and of all else the kind only.

    >>> said("paper"), said(int), said([3, 1, 4])
    ("'paper'", 'int (a class)', 'something of type list')
    """
    if isinstance(given, type):
        return f"{given.__name__} (a class)"
    if given is None or isinstance(given, str | bool | int | float):
        return repr(given)[:_NAMED]
    return f"something of type {type(given).__name__}"
