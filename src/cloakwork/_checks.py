"""Argument checks shared by all layers: each returns the clean value or raises an error with advice."""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork.errors import InputError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


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


def count(name: str, value: int, *, error: type[InputError] = InputError) -> int:
    """Return `value` as an int; refuse it unless it is a whole number of at least one."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise error(f"{name}={value!r}: give a whole number, 1 or above.", **{name: value})
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


def _floats(values: Any) -> FloatArray | None:
    """Return `values` as float64, or None: the context of an error raised here would hold the values."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def rounded_up(value: float, digits: int = 4) -> str:
    """Format `value` with a few significant digits, rounded up: for upper bounds.

    >>> rounded_up(13.589715, 6), rounded_up(13.581), rounded_up(0.1)
    ('13.5898', '13.59', '0.1')
    """
    return _outward(value, digits, 1.0)


def rounded_down(value: float, digits: int = 4) -> str:
    """Format `value` with a few significant digits, rounded down: for lower bounds."""
    return _outward(value, digits, -1.0)


def _outward(value: float, digits: int, direction: float) -> str:
    text = f"{value:.{digits}g}"
    if value == 0 or not math.isfinite(value) or direction * (float(text) - value) >= 0:
        return text
    step = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return f"{float(text) + direction * step:.{digits}g}"


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only, so that callers cannot change cached results, and return it."""
    array.setflags(write=False)
    return array
