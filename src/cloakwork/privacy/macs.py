"""HMAC-SHA256 (RFC 2104) with keys of 32 bytes, compiled: a chain of keys, and many messages side by side.

A key or a digest is a row of four words of 64 bits. HMAC's two hashes begin with a block that depends on the key
alone; the states after it, inner and outer, are kept as a row of 16 words of 32 bits and used for all its messages.
"""

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import IntArray
from cloakwork._compile import compiled, compiled_part
from cloakwork.privacy.sha256 import (
    BLOCK_BYTES,
    BLOCK_WORDS,
    ROUNDS,
    START,
    Words,
    compress_lanes,
    expand,
    mix,
    padded,
)

LongWords = NDArray[np.uint64]

KEY_WORDS = 4
_LANES = 64  # messages side by side: their schedules fit into the first cache
_INNER = np.uint32(0x36363636)
_OUTER = np.uint32(0x5C5C5C5C)
_END = np.uint32(0x80000000)
_DIGEST_BITS = np.uint32(768)  # that the outer hash has taken in the end: a block and the inner digest
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def key_row(key: bytes) -> LongWords:
    """A key of 32 bytes as four words of 64 bits."""
    return np.frombuffer(key, dtype=">u8").astype(np.uint64)


def keyed_states(keys: LongWords) -> Words:
    """HMAC's inner and outer state, shape (len(keys), 16), after each key."""
    states = np.empty((len(keys), 16), dtype=np.uint32)
    _take_keys(keys, states)
    return states


def keyed_message(message: bytes) -> Words:
    """A message as the functions here want it: padded to follow a key's block."""
    return padded(message, before=BLOCK_BYTES)


@compiled
def follow_chain(message: Words, links: IntArray, keys: LongWords, stride: int, marks: LongWords, known: int) -> int:
    """Fill `keys` with the keys number `links` (rising) of the chain in which each is HMAC(the one before, message).

    Row j of `marks` has key number j * stride for all j below `known`. More rows are filled on the way; the new number
    of known ones comes back. `message` has one block.
    """
    now, inner, outer = np.empty(8, np.uint32), np.empty(8, np.uint32), np.empty(8, np.uint32)
    schedule, fixed = np.empty(ROUNDS, np.uint32), np.empty(ROUNDS, np.uint32)
    for i in range(BLOCK_WORDS):
        fixed[i] = message[i]
    expand(fixed)
    place = -1
    for found in range(len(links)):
        mark = min(links[found] // stride, known - 1)
        if place < mark * stride:
            place = mark * stride
            _split(marks[mark], now)
        while place < links[found]:
            _next_key(now, inner, outer, schedule, fixed)
            place += 1
            if place == known * stride and known < len(marks):
                _join(now, marks[known])
                known += 1
        _join(now, keys[found])
    return known


@compiled_part
def _next_key(now: Words, inner: Words, outer: Words, schedule: Words, fixed: Words) -> None:
    _take_key(inner, now, _INNER, schedule)
    _take_key(outer, now, _OUTER, schedule)
    mix(inner, fixed)
    for i in range(8):
        schedule[i] = inner[i]
        schedule[i + 8] = 0
    schedule[8] = _END
    schedule[15] = _DIGEST_BITS
    expand(schedule)
    mix(outer, schedule)
    for i in range(8):
        now[i] = outer[i]


@compiled_part
def _take_key(state: Words, key: Words, pad: np.uint32, schedule: Words) -> None:
    for i in range(8):
        schedule[i] = key[i] ^ pad
        schedule[i + 8] = pad
        state[i] = START[i]
    expand(schedule)
    mix(state, schedule)


@compiled_part
def _split(row: LongWords, words: Words) -> None:
    for i in range(KEY_WORDS):
        words[2 * i] = np.uint32(row[i] >> _HALF)
        words[2 * i + 1] = np.uint32(row[i] & _LOW)


@compiled_part
def _join(words: Words, row: LongWords) -> None:
    for i in range(KEY_WORDS):
        row[i] = np.uint64(words[2 * i]) << _HALF | np.uint64(words[2 * i + 1])


@compiled
def _take_keys(keys: LongWords, states: Words) -> None:
    state, work = np.empty((8, _LANES), np.uint32), np.empty((8, _LANES), np.uint32)
    schedule = np.empty((ROUNDS, _LANES), np.uint32)
    for start in range(0, len(keys), _LANES):
        lanes = min(_LANES, len(keys) - start)
        for half in range(2):
            pad = _OUTER if half else _INNER
            for k in range(lanes):
                for i in range(KEY_WORDS):
                    schedule[2 * i, k] = np.uint32(keys[start + k, i] >> _HALF) ^ pad
                    schedule[2 * i + 1, k] = np.uint32(keys[start + k, i] & _LOW) ^ pad
                for i in range(8):
                    schedule[i + 8, k] = pad
                    state[i, k] = START[i]
            compress_lanes(state, work, schedule, lanes)
            for k in range(lanes):
                for i in range(8):
                    states[start + k, 8 * half + i] = state[i, k]


@compiled
def macs(
    states: Words, which: IntArray, message: Words, numbers: LongWords, place: int, out: LongWords, first: int
) -> None:
    """HMAC of a message with a number of 8 bytes put in at byte `place`, where it has zeros, for many numbers.

    Number k goes with the key of row `which[k]` of `states`. The digest goes to the columns of `out` from `first` on,
    or to as many of them as there are.
    """
    state, work = np.empty((8, _LANES), np.uint32), np.empty((8, _LANES), np.uint32)
    schedule = np.empty((ROUNDS, _LANES), np.uint32)
    columns = min(KEY_WORDS, out.shape[1] - first)
    for start in range(0, len(numbers), _LANES):
        lanes = min(_LANES, len(numbers) - start)
        _load_states(state, states, which, start, 0, lanes)
        for block in range(len(message) // BLOCK_WORDS):
            for i in range(BLOCK_WORDS):
                for k in range(lanes):
                    schedule[i, k] = message[BLOCK_WORDS * block + i]
            _put_numbers(schedule, numbers, start, place - BLOCK_BYTES * block, lanes)
            compress_lanes(state, work, schedule, lanes)
        for i in range(8):
            for k in range(lanes):
                schedule[i, k] = state[i, k]
                schedule[i + 8, k] = _END if i == 0 else _DIGEST_BITS if i == 7 else np.uint32(0)
        _load_states(state, states, which, start, 8, lanes)
        compress_lanes(state, work, schedule, lanes)
        for k in range(lanes):
            for i in range(columns):
                out[start + k, first + i] = np.uint64(state[2 * i, k]) << _HALF | np.uint64(state[2 * i + 1, k])


@compiled_part
def _load_states(state: Words, states: Words, which: IntArray, start: int, first: int, lanes: int) -> None:
    for k in range(lanes):
        row = which[start + k]
        for i in range(8):
            state[i, k] = states[row, first + i]


@compiled_part
def _put_numbers(schedule: Words, numbers: LongWords, start: int, place: int, lanes: int) -> None:
    """Put numbers of 8 bytes in at byte `place` of the blocks; parts of them may lie in the block before or after."""
    shift = np.uint64(8 * (place % 4))
    for part in range(3):
        row = place // 4 + part
        if 0 <= row < BLOCK_WORDS:
            for k in range(lanes):
                number = numbers[start + k]
                digits = number << (_HALF - shift) if part == 2 else number >> (shift + np.uint64(32 - 32 * part))
                schedule[row, k] |= np.uint32(digits & _LOW)
