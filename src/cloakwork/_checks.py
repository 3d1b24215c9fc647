"""Argument checks shared by all layers: each returns the clean value or raises with a full sentence."""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork.errors import InputError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


def positive(name: str, value: float, *, error: type[InputError] = InputError, unit: str = "") -> float:
    """`value` as a float, refused unless it is finite and above zero."""
    number = as_number(name, value, error=error)
    if not (math.isfinite(number) and number > 0):
        raise error(f"{name}={value!r}: give a finite number above 0{unit}.", **{name: value})
    return number


def not_negative(name: str, value: float, *, error: type[InputError] = InputError) -> float:
    """`value` as a float, refused unless it is finite and at least zero."""
    number = as_number(name, value, error=error)
    if not (math.isfinite(number) and number >= 0):
        raise error(f"{name}={value!r}: give a finite number, 0 or above.", **{name: value})
    return number


def as_number(name: str, value: Any, *, error: type[InputError] = InputError) -> float:
    """`value` as a float, refused when it is not a number at all."""
    if isinstance(value, bool | str | bytes):
        raise error(f"{name}={value!r}: give a number.", **{name: value})
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise error(f"{name}={value!r}: give a number.", **{name: value}) from None


def count(name: str, value: int, *, error: type[InputError] = InputError) -> int:
    """`value` as an int, refused unless it is a whole number of at least one."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise error(f"{name}={value!r}: give a whole number, 1 or above.", **{name: value})
    return int(value)


def frames(name: str, values: ArrayLike, width: int, *, error: type[InputError] = InputError) -> FloatArray:
    """`values` as float64 of shape (..., width), refused when the shape is wrong or an entry is not finite.

    The message names positions only: what is checked here may be a true reading.
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
            f"{name}{list(where)} is not a finite number ({len(bad)} such entries): "
            "leave out or repair these before calling.",
            where=where,
            entries=len(bad),
        )
    return array


def points(name: str, values: ArrayLike | Sequence[object], *, error: type[InputError] = InputError) -> FloatArray:
    """`values` as points in the plane, shape (k, 2)."""
    array = _floats(values)
    if array is None or array.ndim != 2 or array.shape[1] != 2 or not len(array) or not np.isfinite(array).all():
        raise error(f"{name}: give a list of (x, y) pairs of finite numbers.", given=values)
    return array


def _floats(values: Any) -> FloatArray | None:
    """`values` as float64, or None: an error raised from here would carry what could not be read in its context."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def rounded_up(value: float, digits: int = 4) -> str:
    """`value` in a few significant digits, never smaller than it is: for upper bounds.

    >>> rounded_up(13.589715, 6), rounded_up(13.581), rounded_up(0.1)
    ('13.5898', '13.59', '0.1')
    """
    return _outward(value, digits, 1.0)


def rounded_down(value: float, digits: int = 4) -> str:
    """`value` in a few significant digits, never larger than it is: for lower bounds."""
    return _outward(value, digits, -1.0)


def _outward(value: float, digits: int, direction: float) -> str:
    text = f"{value:.{digits}g}"
    if value == 0 or not math.isfinite(value) or direction * (float(text) - value) >= 0:
        return text
    step = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return f"{float(text) + direction * step:.{digits}g}"


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """The same array, made read-only, so that cached results cannot be changed by a caller."""
    array.setflags(write=False)
    return array
