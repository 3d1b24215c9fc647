"""Keyed noise in bulk: the device's keystream for many sequence numbers at once, bit for bit.

`cloakwork.sensor.keystream` says what is computed, and runs on the device; this is the same for the holder of the key,
who takes the noise off again. The keys of the epochs come one from the other and are made in sequence, about a second
for a million epochs of 64 readings. Everything else is done for many messages side by side, and in threads.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork._checks import IntArray
from cloakwork._checks import count as whole
from cloakwork.errors import InputError
from cloakwork.privacy.macs import (
    KEY_WORDS,
    LongWords,
    follow_chain,
    key_row,
    keyed_message,
    keyed_states,
    macs,
)
from cloakwork.privacy.noise_table import NoiseTable
from cloakwork.privacy.sampler import noise_from_words
from cloakwork.privacy.sha256 import Words
from cloakwork.sensor.errors import WireError
from cloakwork.sensor.keystream import COUNTER_BITS, EPOCH, KEY_BYTES, LARGEST_COUNTER, LARGEST_GENERATION
from cloakwork.sensor.wire import LARGEST, topic

MOST_WORDS = 512  # the number of a block is one byte, and a block has two words
_STRIDE = 256  # epochs from one remembered key to the next
_SHARE = 1 << 14  # sequence numbers that a thread takes at a time: their words stay in its cache


def keyed_words(key: bytes, site: str, sensor: str, seqs: ArrayLike, count: int) -> LongWords:
    """The first `count` words of 128 bits of each sequence number, shape (len(seqs), count, 2), upper half first.

    `key` is the device key, the one of epoch 0. The sequence numbers come in any order, and may repeat, but all are of
    one generation.

    >>> words = keyed_words(bytes(32), "flat", "s07", [0, 1, 64], 2)
    >>> words.shape, hex(words[0, 0, 0])
    ((3, 2, 2), '0xf3222e8355fb7f96')
    """
    return _keystream(key, site, sensor, seqs).words(seqs, count)


def keyed_noise(table: NoiseTable, key: bytes, site: str, sensor: str, seqs: ArrayLike) -> IntArray:
    """The noise, in steps, that the device has added under each sequence number, shape (len(seqs),).

    For the arguments see `keyed_words`. Who asks more than once makes a `Keystream`.
    """
    return _keystream(key, site, sensor, seqs).noise(table, seqs)


class Keystream:
    """The random words and the noise of one generation of a device, for who has its key.

    It remembers every 256th epoch's key that it came by, and so reaches any epoch again within a millisecond.

    Parameters
    ----------
    key
        The device key: the one of epoch 0 of the generation, 32 bytes.
    site, sensor
        The names that the device uses on the wire.
    generation
        The generation of all sequence numbers that will be asked for.
    """

    def __init__(self, key: bytes, site: str, sensor: str, generation: int) -> None:
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise InputError(f"a device key is {KEY_BYTES} bytes: give the one of epoch 0 of its generation.")
        try:
            topic(site, sensor, "reading")
        except WireError as error:
            raise InputError(f"site={site!r}, sensor={sensor!r}: {error}.", site=site, sensor=sensor) from None
        if not 0 <= generation <= LARGEST_GENERATION:
            raise InputError(
                f"generation={generation}: give a whole number from 0 to {LARGEST_GENERATION}.", generation=generation
            )
        self._generation = generation
        names = b"".join(bytes([len(name)]) + name.encode() for name in (site, sensor))
        self._label = b"cloakwork/v1/noise\0" + names + generation.to_bytes(8, "big")
        # keys of epochs 0, 256, ..., and how many are known: one pair, so that threads see both or neither change
        self._remembered = key_row(key)[None], 1

    def words(self, seqs: ArrayLike, count: int) -> LongWords:
        """The first `count` words of each sequence number, shape (len(seqs), count, 2), upper half first."""
        if whole("count", count) > MOST_WORDS:
            raise InputError(f"count={count}: a sequence number has at most {MOST_WORDS} words.", count=count)
        numbers = self._checked(seqs)
        states, which = self._streams(numbers)
        found = np.empty((len(numbers), 2 * count), dtype=np.uint64)
        _in_threads(lambda share: _fill(states, which[share], numbers[share], found[share]), len(numbers))
        return found.reshape(-1, count, 2)

    def noise(self, table: NoiseTable, seqs: ArrayLike) -> IntArray:
        """The noise, in steps, that the device has added under each sequence number, shape (len(seqs),)."""
        numbers = self._checked(seqs)
        states, which = self._streams(numbers)
        levels = len(table.levels)
        found = np.empty(len(numbers), dtype=np.int64)

        def work(share: slice) -> None:
            words = np.empty((len(numbers[share]), 2 * levels), dtype=np.uint64)
            _fill(states, which[share], numbers[share], words)
            found[share] = noise_from_words(table, words.reshape(-1, levels, 2))

        _in_threads(work, len(numbers))
        return found

    def _checked(self, seqs: ArrayLike) -> LongWords:
        numbers = _sequence_numbers(seqs)
        ends = (int(numbers.min()), int(numbers.max())) if len(numbers) else ()
        for generation in (seq >> COUNTER_BITS for seq in ends):
            if generation != self._generation:
                raise InputError(
                    f"seqs has a number of generation {generation}, and this is the key of generation "
                    f"{self._generation}. Each generation has a key of its own: ask for one at a time.",
                    generation=generation,
                )
        return numbers

    def _streams(self, numbers: LongWords) -> tuple[Words, IntArray]:
        """HMAC's states for the stream keys that these numbers need, and the row in them of each number's."""
        epochs, which = _unique((numbers & np.uint64(LARGEST_COUNTER)).astype(np.int64) // EPOCH)
        keys = self._epoch_keys(epochs)
        message = keyed_message(self._label + bytes(8))
        each = np.arange(len(epochs))
        macs(keyed_states(keys), each, message, epochs.astype(np.uint64), len(self._label), keys, 0)
        return keyed_states(keys), which

    def _epoch_keys(self, epochs: IntArray) -> LongWords:
        keys = np.empty((len(epochs), KEY_WORDS), dtype=np.uint64)
        if not len(epochs):
            return keys
        marks, known = self._remembered
        more = int(epochs[-1]) // _STRIDE + 1 - len(marks)
        if more > 0:
            marks = np.concatenate([marks, np.zeros((more, KEY_WORDS), dtype=np.uint64)])
        known = follow_chain(keyed_message(b"cloakwork/v1/ratchet\0"), epochs, keys, _STRIDE, marks, known)
        self._remembered = marks, known
        return keys


def _keystream(key: bytes, site: str, sensor: str, seqs: ArrayLike) -> Keystream:
    numbers = _sequence_numbers(seqs)
    return Keystream(key, site, sensor, int(numbers[0]) >> COUNTER_BITS if len(numbers) else 0)


def _sequence_numbers(seqs: ArrayLike) -> LongWords:
    numbers: NDArray[np.integer] = np.asarray(seqs)
    if not numbers.size and numbers.ndim == 1:
        return np.empty(0, dtype=np.uint64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise InputError("seqs: give one row of whole numbers.", shape=numbers.shape, dtype=numbers.dtype)
    for number in (int(numbers.min()), int(numbers.max())):
        if not 0 <= number <= LARGEST:
            raise InputError(f"seqs has {number}: give numbers from 0 to {LARGEST}.", seq=number)
    return numbers.astype(np.uint64)


def _unique(epochs: IntArray) -> tuple[IntArray, IntArray]:
    """The different epochs, rising, and which of them each is; quick where equal ones stand together."""
    firsts = np.flatnonzero(np.diff(epochs, prepend=-1))
    different, which = np.unique(epochs[firsts], return_inverse=True)
    return different, np.repeat(which, np.diff(firsts, append=len(epochs)))


def _fill(states: Words, which: IntArray, numbers: LongWords, words: LongWords) -> None:
    """Write the words of sequence numbers, two columns a word."""
    for block in range((words.shape[1] + KEY_WORDS - 1) // KEY_WORDS):
        macs(states, which, keyed_message(bytes(8) + bytes([block])), numbers, 0, words, KEY_WORDS * block)


def _in_threads(work: Callable[[slice], None], size: int) -> None:
    if size <= _SHARE:
        work(slice(0, size))
        return
    shares = [slice(start, start + _SHARE) for start in range(0, size, _SHARE)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(work, shares):  # raises what a thread raised
            pass
