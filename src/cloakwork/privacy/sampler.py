"""Noise in bulk: the same law and the same look-up as the sensor's, vectorised."""

import os

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray

from cloakwork._checks import IntArray
from cloakwork._compile import compiled
from cloakwork.privacy.table import NoiseTable
from cloakwork.sensor import WORD_BYTES


def private_words(count: int) -> NDArray[np.uint64]:
    """`count` random words of 128 bits, shape (count, 2), from a fresh key of the operating system.

    The key lives for one call and no state survives it, so that neither a fork nor a restored process
    can draw the same noise again.
    """
    stream = Cipher(algorithms.ChaCha20(os.urandom(32), bytes(16)), mode=None).encryptor()
    return np.frombuffer(stream.update(bytes(count * WORD_BYTES)), dtype=">u8").astype(np.uint64).reshape(-1, 2)


def simulated_words(count: int, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Like `private_words` but reproducible, and therefore not private."""
    return rng.integers(0, 2**64, size=(count, 2), dtype=np.uint64, endpoint=False)


def noise(table: NoiseTable, words: NDArray[np.uint64]) -> IntArray:
    """The noise, in steps, that each word stands for, shape (len(words),)."""
    out = np.empty(len(words), dtype=np.int64)
    _look_up(*table.words, words, out)
    return out


@compiled
def _look_up(upper: NDArray[np.uint64], lower: NDArray[np.uint64], words: NDArray[np.uint64], out: IntArray) -> None:
    size = len(upper)
    top = 1
    while top <= size:
        top <<= 1
    top >>= 1
    mask = np.uint64((1 << 63) - 1)
    for k in range(len(words)):
        high = words[k, 0] & mask
        low = words[k, 1]
        found = 0
        step = top
        while step:
            probe = min(found + step, size)
            above = upper[probe - 1] > high or (upper[probe - 1] == high and lower[probe - 1] > low)
            found = found if above else probe
            step >>= 1
        out[k] = -found if words[k, 0] > mask else found
