"""Keyed noise in bulk: the device's keystream for many sequence numbers at once, bit for bit.

`cloakwork.sensor.keystream` defines the keystream and runs on the device. A key holder uses this module to remove the
noise: a million readings take about three seconds.
"""

import hashlib
from array import array
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork._checks import IntArray
from cloakwork._checks import count as whole_number
from cloakwork.errors import InputError
from cloakwork.privacy.long_stay import SlowNoise
from cloakwork.privacy.noise_table import NoiseTable
from cloakwork.privacy.sampler import noise_from_words, private_words
from cloakwork.sensor import WireError, keystream, renewed, whole_steps
from cloakwork.sensor.wire import LARGEST, topic

MAX_WORDS = 512  # a block number is one byte, and a block has two words
_STRIDE = 256  # epochs between remembered keys
_BATCH = 1 << 14  # sequence numbers whose words are held in memory at once
_INNER_PAD, _OUTER_PAD = (bytes(byte ^ pad for byte in range(256)) for pad in (0x36, 0x5C))


class Keystream:
    """The random words and the noise of one generation of a device, for a holder of its key.

    It remembers the key of every 256th epoch that it passes, so returning to an epoch is quick. Threads may share it.

    Parameters
    ----------
    key
        The device key: the key of epoch 0 of the generation, 32 bytes.
    site, sensor
        The names that the device uses on the wire.
    generation
        The generation of all sequence numbers in later calls.

    >>> words = Keystream(bytes(32), "flat", "s07", 0).words([0, 1, 64], 2)
    >>> words.shape, hex(words[0, 0, 0])
    ((3, 2, 2), '0xf3222e8355fb7f96')
    """

    def __init__(self, key: bytes, site: str, sensor: str, generation: int) -> None:
        if not isinstance(key, bytes) or len(key) != keystream.KEY_BYTES:
            raise InputError(
                f"a device key has {keystream.KEY_BYTES} bytes: give the key of epoch 0 of its generation."
            )
        try:
            topic(site, sensor, "reading")
        except WireError as error:
            raise InputError(f"site={site!r}, sensor={sensor!r}: {error}.", site=site, sensor=sensor) from None
        if not 0 <= generation <= keystream.LARGEST_GENERATION:
            raise InputError(
                f"generation={generation}: give a whole number from 0 to {keystream.LARGEST_GENERATION}.",
                generation=generation,
            )
        self._names = site, sensor, generation
        self._epoch_keys = {0: key}
        self._offsets = array("q")  # of a sensor at its start and after each renewal, in parts of a step

    def words(self, seqs: ArrayLike, count: int) -> NDArray[np.uint64]:
        """Return the first `count` words of each sequence number, shape (len(seqs), count, 2), upper half first."""
        if whole_number("count", count) > MAX_WORDS:
            raise InputError(f"count={count}: a sequence number has at most {MAX_WORDS} words.", count=count)
        numbers = self._checked(seqs)
        words = np.empty((len(numbers), count, 2), dtype=np.uint64)
        for batch in _batches(numbers):
            words[batch] = self._words(numbers[batch], count)
        return words

    def noise(self, table: NoiseTable, seqs: ArrayLike) -> IntArray:
        """Return the noise, in steps, that the device added under each sequence number, shape (len(seqs),)."""
        numbers = self._checked(seqs)
        noise = np.empty(len(numbers), dtype=np.int64)
        for batch in _batches(numbers):
            noise[batch] = noise_from_words(table, self._words(numbers[batch], len(table.levels)))
        return noise

    def offsets(self, slow: SlowNoise, seqs: ArrayLike, *, after: int) -> IntArray:
        """Return the slow offset of a sensor, in steps, under each sequence number, shape (len(seqs),).

        `after` is the number of words that a reading takes before those that renew the offset. All renewals from the
        first reading on are computed, once.
        """
        numbers = self._checked(seqs)
        counters = numbers & keystream.LARGEST_COUNTER
        table, renewals = slow.tables()[0], self._offsets
        last = int(counters.max(initial=0)) // slow.renew
        if not renewals:
            renewals.append(first_offset(slow, self._epoch_keys[0]))
        while len(renewals) <= last + 1:
            first = len(renewals) - 1
            ahead = np.arange(first, min(last + 1, first + _BATCH)) * slow.renew
            drawn = self._words(ahead + (self._names[2] << keystream.COUNTER_BITS), after + len(table.levels))
            for draw in noise_from_words(table, np.ascontiguousarray(drawn[:, after:])).tolist():
                renewals.append(renewed(renewals[-1], draw, slow.carry))
        return np.array([whole_steps(renewals[k + 1]) for k in (counters // slow.renew).tolist()], dtype=np.int64)

    def _checked(self, seqs: ArrayLike) -> IntArray:
        numbers = _sequence_numbers(seqs)
        ends = (int(numbers.min()), int(numbers.max())) if len(numbers) else ()
        for generation in (seq >> keystream.COUNTER_BITS for seq in ends):
            if generation != self._names[2]:
                raise InputError(
                    f"seqs has a number of generation {generation}, but this key belongs to generation "
                    f"{self._names[2]}. Each generation has its own key: ask for one generation at a time.",
                    generation=generation,
                    key_generation=self._names[2],
                )
        return numbers

    def _words(self, numbers: IntArray, count: int) -> NDArray[np.uint64]:
        """The words of numbers that rise, so that one pass along the chain of keys reaches all epochs."""
        blocks = [bytes([block]) for block in range((count + 1) // 2)]
        epochs = (numbers & keystream.LARGEST_COUNTER) // keystream.EPOCH
        starts = np.flatnonzero(np.diff(epochs, prepend=-1))
        encoded = numbers.astype(">u8").tobytes()
        digests: list[bytes] = []
        keys = self._keys(epochs[starts].tolist())
        for key, start, end in zip(keys, starts.tolist(), [*starts[1:].tolist(), len(numbers)], strict=True):
            inner, outer = (hashlib.sha256((key + bytes(32)).translate(pad)) for pad in (_INNER_PAD, _OUTER_PAD))
            for place in range(8 * start, 8 * end, 8):
                for block in blocks:
                    first, second = inner.copy(), outer.copy()
                    first.update(encoded[place : place + 8] + block)
                    second.update(first.digest())
                    digests.append(second.digest())
        words = np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64)
        return words.reshape(len(numbers), 2 * len(blocks), 2)[:, :count]

    def _keys(self, epochs: list[int]) -> Iterator[bytes]:
        """The stream keys of rising epochs."""
        at, key = 0, self._epoch_keys[0]
        for epoch in epochs:
            known = max(epoch - epoch % _STRIDE, at)
            while known > at and known not in self._epoch_keys:
                known = max(known - _STRIDE, at)
            if known > at:
                at, key = known, self._epoch_keys[known]
            while at < epoch:
                at, key = at + 1, keystream.ratchet(key)
                if at % _STRIDE == 0:
                    self._epoch_keys[at] = key
            yield keystream.stream_key(key, *self._names, epoch)


def first_offset(slow: SlowNoise, key: bytes | None) -> int:
    """Return the first offset of a sensor, in parts of a step: from its device key, or a random one without a key."""
    table = slow.start_table(0)
    if key is None:
        return int(noise_from_words(table, private_words(len(table.levels))[None])[0])
    drawn = keystream.words(keystream.offset_key(key), 0, len(table.levels))
    halves = [[word >> 64, word & ((1 << 64) - 1)] for word in drawn]
    return int(noise_from_words(table, np.array([halves], dtype=np.uint64))[0])


def _sequence_numbers(seqs: ArrayLike) -> IntArray:
    numbers: NDArray[np.integer] = np.asarray(seqs)
    if not numbers.size and numbers.ndim == 1:
        return np.empty(0, dtype=np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise InputError("seqs: give one row of whole numbers.", shape=numbers.shape, dtype=numbers.dtype)
    for number in (int(numbers.min()), int(numbers.max())):
        if not 0 <= number <= LARGEST:
            raise InputError(f"seqs has {number}: give numbers from 0 to {LARGEST}.", seq=number)
    return numbers.astype(np.int64)


def _batches(numbers: IntArray) -> Iterator[IntArray]:
    """Positions of the numbers in rising order, a batch at a time."""
    order = np.argsort(numbers, kind="stable")
    for start in range(0, len(order), _BATCH):
        yield order[start : start + _BATCH]
