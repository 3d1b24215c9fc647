"""Noise in bulk: the law and the look-up of the sensor, vectorised."""

import os
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork._checks import FloatArray, IntArray, frames
from cloakwork._compile import compiled
from cloakwork.errors import CalibrationError, ReadingError
from cloakwork.privacy.noise_table import NoiseTable
from cloakwork.sensor import WORD_BYTES

WordSource: TypeAlias = Callable[[int], NDArray[np.uint64]]
"""A function that returns `count` random words of 128 bits, shape (count, 2)."""
MAX_STEPS = 2.0**31
_BLOCK = 1 << 16  # words at a time, few enough to stay in the cache
_WIDTH = 16


def private_words(count: int) -> NDArray[np.uint64]:
    """Return `count` random words of 128 bits, shape (count, 2), from the operating system.

    The process keeps no state of the generator, so neither a fork nor a restored process can draw the same noise
    again.
    """
    return np.frombuffer(os.urandom(count * WORD_BYTES), dtype=np.uint64).reshape(-1, 2).copy()


def simulated_words(rng: np.random.Generator) -> WordSource:
    """Return a source of words that is reproducible and therefore not private."""
    if not isinstance(rng, np.random.Generator):
        raise CalibrationError(f"rng={rng!r}: give a generator, such as np.random.default_rng(1).")
    return lambda count: rng.integers(0, 2**64, size=(count, 2), dtype=np.uint64, endpoint=False)


def frames_in_steps(readings: ArrayLike, step: FloatArray) -> FloatArray:
    """Readings of one frame (m,) or of several (k, m), in whole steps; refused if one does not fit in 2^31 of them."""
    values = frames("readings", readings, len(step), error=ReadingError)
    if values.ndim > 2:
        raise ReadingError(f"readings has {values.ndim} axes: give one frame (m,) or frames (k, m).", axes=values.ndim)
    with np.errstate(over="ignore"):  # a value that is too large is refused below
        steps: FloatArray = np.asarray(np.rint(values / step))
    far = np.argwhere(np.abs(steps) >= MAX_STEPS)
    if len(far):
        sensor = int(far[0][-1])
        raise ReadingError(
            f"the reading of sensor {sensor} does not fit in {MAX_STEPS:.0f} steps of {step[sensor]:.3g}: "
            "subtract its baseline first, or give a coarser step.",
            sensor=sensor,
        )
    return steps


def noise_from_words(table: NoiseTable, words: NDArray[np.uint64]) -> IntArray:
    """Turn words of shape (count, levels, 2) into noise in steps, shape (count,)."""
    if words.shape[1:] != (len(table.levels), 2):
        raise ValueError(f"words of shape {words.shape}: this table takes (count, {len(table.levels)}, 2).")
    out = np.zeros(len(words), dtype=np.int64)
    for k, level in enumerate(table.levels):
        _add(*level.words, level.factor, np.ascontiguousarray(words[:, k]), out)
    return out


def noise_of_frames(
    tables: Sequence[NoiseTable], count: int, words: WordSource, *, kinds: IntArray | None = None
) -> IntArray:
    """Draw noise for `count` frames of sensors with these tables, in steps, shape (count, sensors).

    Without `kinds` each sensor has its own table; `kinds` (sensors,) has the number of each sensor's table. A frame
    takes one word per level, sensor by sensor, so drawing frames together or one by one consumes the same words and
    gives the same noise.
    """
    if kinds is None:
        number = {table: k for k, table in enumerate(dict.fromkeys(tables))}
        kinds, tables = np.array([number[table] for table in tables]), list(number)
    ends = np.cumsum(np.array([len(table.levels) for table in tables])[kinds])
    frame = int(ends[-1])
    out = np.empty((count, len(kinds)), dtype=np.int64)
    sensors = [(table, np.flatnonzero(kinds == k)) for k, table in enumerate(tables)]
    block = max(1, _BLOCK // frame)
    for first in range(0, count, block):
        part = out[first : first + block]
        drawn = words(len(part) * frame).reshape(len(part), frame, 2)
        for table, which in sensors:
            levels = len(table.levels)
            columns = (ends[which, None] - levels + np.arange(levels)).ravel()
            chosen = drawn if len(sensors) == 1 else drawn[:, columns]
            part[:, which] = noise_from_words(table, chosen.reshape(-1, levels, 2)).reshape(len(part), -1)
    return out


@compiled
def _add(
    upper: NDArray[np.uint64], lower: NDArray[np.uint64], factor: int, words: NDArray[np.uint64], out: IntArray
) -> None:
    """Look up all words in one table, several at a time so that their memory accesses overlap."""
    size, count = len(upper), len(words)
    top = 1
    while top <= size:
        top <<= 1
    top >>= 1
    mask = np.uint64((1 << 63) - 1)
    count_below, high, low = np.zeros(_WIDTH, np.int64), np.zeros(_WIDTH, np.uint64), np.zeros(_WIDTH, np.uint64)
    for first in range(0, count, _WIDTH):
        width = min(_WIDTH, count - first)
        for k in range(width):
            high[k] = words[first + k, 0] & mask
            low[k] = words[first + k, 1]
            count_below[k] = 0
        step = top
        while step:
            for k in range(_WIDTH):
                probe = min(count_below[k] + step, size)
                cut = upper[probe - 1]
                above = (cut > high[k]) | ((cut == high[k]) & (lower[probe - 1] > low[k]))
                count_below[k] = count_below[k] if above else probe
            step >>= 1
        for k in range(width):
            steps = factor * count_below[k]
            out[first + k] += -steps if words[first + k, 0] > mask else steps
