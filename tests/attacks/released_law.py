"""The law of a released reading, in whole numbers from the bytes of its noise table, and its exact delta."""

from functools import lru_cache

import mpmath as mp
import numpy as np

from cloakwork.privacy import NoiseTable

WORD = 1 << 128
LEVEL_BITS = 128  # each level of a table divides by 2^128
EXTRA_BITS = 200  # digits after the point of e^epsilon


@lru_cache(maxsize=16)
def law(table: NoiseTable) -> np.ndarray:
    """Probability of each noise from -n to n, times 2^128 for each level, as whole numbers."""
    total = np.array([1], dtype=object)
    for level in table.levels:
        cuts = [int.from_bytes(level.cuts[k : k + 16], "big") for k in range(0, len(level.cuts), 16)]
        sides = np.diff(np.array([*cuts, WORD // 2], dtype=object))
        own = np.concatenate([sides[::-1], [2 * cuts[0]], sides])  # the top bit of the word is the sign
        reach, n = level.factor * (len(own) // 2), len(total)
        summed = np.zeros(2 * reach + n, dtype=object)
        for k, probability in enumerate(own):
            summed[level.factor * k : level.factor * k + n] += probability * total
        total = summed
    assert sum(total) == 1 << LEVEL_BITS * len(table.levels)
    return total


def exact_delta(table: NoiseTable, shift: int, epsilon: float) -> mp.mpf:
    """The hockey-stick divergence of the noise from the same noise shifted by whole steps; equal both ways.

    The noise is symmetric, so both directions of the divergence have the same value.
    """
    noise = law(table)
    with mp.workdps(80):
        factor = int(mp.floor(mp.exp(mp.mpf(epsilon)) * 2**EXTRA_BITS))
        gap = np.zeros(shift, dtype=object)
        difference = (np.concatenate([noise, gap]) << EXTRA_BITS) - factor * np.concatenate([gap, noise])
        positive = sum(int(value) for value in difference if value > 0)
        return mp.mpf(positive) / mp.mpf(2) ** (EXTRA_BITS + LEVEL_BITS * len(table.levels))


def allowed_delta(mu: float, epsilon: float) -> mp.mpf:
    """The delta of Gaussian noise with this mu, with 80 digits (Balle and Wang, Theorem 8)."""
    with mp.workdps(80):
        m, e = mp.mpf(mu), mp.mpf(epsilon)
        return mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)
