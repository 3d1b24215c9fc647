"""SHA-256's compression (FIPS 180-4, section 6.2), compiled: for one message, and for many side by side.

Many messages lie in lanes: row i of an array holds word i of each. All loops over lanes are innermost and free of
branches, so that the compiler makes vector instructions of them. Words are 32 bits; a narrower or wider result of
an operation is cut back to them at once, since NumPy's and Numba's rules of promotion differ.
"""

import numpy as np
from numpy.typing import NDArray

from cloakwork._compile import compiled_part

Word = np.uint32
Words = NDArray[np.uint32]

BLOCK_WORDS = 16
BLOCK_BYTES = 64
ROUNDS = 64
START = np.array(
    [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19], dtype=np.uint32
)
_K = np.frombuffer(
    bytes.fromhex(
        "428a2f98 71374491 b5c0fbcf e9b5dba5 3956c25b 59f111f1 923f82a4 ab1c5ed5"
        "d807aa98 12835b01 243185be 550c7dc3 72be5d74 80deb1fe 9bdc06a7 c19bf174"
        "e49b69c1 efbe4786 0fc19dc6 240ca1cc 2de92c6f 4a7484aa 5cb0a9dc 76f988da"
        "983e5152 a831c66d b00327c8 bf597fc7 c6e00bf3 d5a79147 06ca6351 14292967"
        "27b70a85 2e1b2138 4d2c6dfc 53380d13 650a7354 766a0abb 81c2c92e 92722c85"
        "a2bfe8a1 a81a664b c24b8b70 c76c51a3 d192e819 d6990624 f40e3585 106aa070"
        "19a4c116 1e376c08 2748774c 34b0bcb5 391c0cb3 4ed8aa4a 5b9cca4f 682e6ff3"
        "748f82ee 78a5636f 84c87814 8cc70208 90befffa a4506ceb bef9a3f7 c67178f2"
    ),
    dtype=">u4",
).astype(np.uint32)


def padded(message: bytes, *, before: int = 0) -> Words:
    """The words of a message with SHA-256's padding; `before` bytes, a whole number of blocks, were hashed already.

    >>> [hex(word) for word in padded(b"abc")[[0, 15]].tolist()]
    ['0x61626380', '0x18']
    """
    zeros = bytes(-(len(message) + 9) % BLOCK_BYTES)
    length = (8 * (before + len(message))).to_bytes(8, "big")
    return np.frombuffer(message + b"\x80" + zeros + length, dtype=">u4").astype(np.uint32)


@compiled_part
def expand(schedule: Words) -> None:
    """Fill a schedule of 64 words whose first 16 are the block."""
    for i in range(BLOCK_WORDS, ROUNDS):
        schedule[i] = _scheduled(schedule[i - 16], schedule[i - 15], schedule[i - 7], schedule[i - 2])


@compiled_part
def mix(state: Words, schedule: Words) -> None:
    """Take an expanded block into a state of 8 words."""
    a, b, c, d, e, f, g, h = state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7]
    for i in range(ROUNDS):
        fresh, first = _round(a, b, c, d, e, f, g, h, Word(schedule[i] + _K[i]))
        a, b, c, d, e, f, g, h = first, a, b, c, fresh, e, f, g
    for i, letter in enumerate((a, b, c, d, e, f, g, h)):
        state[i] = Word(state[i] + letter)


@compiled_part
def compress_lanes(state: Words, work: Words, schedule: Words, lanes: int) -> None:
    """Take one block into each of the first `lanes` states.

    `state` and `work` have shape (8, most lanes), `schedule` (64, most lanes) with the blocks in its first 16 rows.
    """
    for i in range(BLOCK_WORDS, ROUNDS):
        for k in range(lanes):
            schedule[i, k] = _scheduled(
                schedule[i - 16, k], schedule[i - 15, k], schedule[i - 7, k], schedule[i - 2, k]
            )
    for i in range(8):
        for k in range(lanes):
            work[i, k] = state[i, k]
    for i in range(0, ROUNDS, 8):  # by eight: then each letter has its own place again
        for k in range(lanes):
            a, b, c, d = work[0, k], work[1, k], work[2, k], work[3, k]
            e, f, g, h = work[4, k], work[5, k], work[6, k], work[7, k]
            d, h = _round(a, b, c, d, e, f, g, h, Word(schedule[i, k] + _K[i]))
            c, g = _round(h, a, b, c, d, e, f, g, Word(schedule[i + 1, k] + _K[i + 1]))
            b, f = _round(g, h, a, b, c, d, e, f, Word(schedule[i + 2, k] + _K[i + 2]))
            a, e = _round(f, g, h, a, b, c, d, e, Word(schedule[i + 3, k] + _K[i + 3]))
            h, d = _round(e, f, g, h, a, b, c, d, Word(schedule[i + 4, k] + _K[i + 4]))
            g, c = _round(d, e, f, g, h, a, b, c, Word(schedule[i + 5, k] + _K[i + 5]))
            f, b = _round(c, d, e, f, g, h, a, b, Word(schedule[i + 6, k] + _K[i + 6]))
            e, a = _round(b, c, d, e, f, g, h, a, Word(schedule[i + 7, k] + _K[i + 7]))
            work[0, k], work[1, k], work[2, k], work[3, k] = a, b, c, d
            work[4, k], work[5, k], work[6, k], work[7, k] = e, f, g, h
    for i in range(8):
        for k in range(lanes):
            state[i, k] = Word(state[i, k] + work[i, k])


@compiled_part
def _round(a: Word, b: Word, c: Word, d: Word, e: Word, f: Word, g: Word, h: Word, x: Word) -> tuple[Word, Word]:
    """The new d and the new h."""
    choice = g ^ (e & (f ^ g))
    majority = (a & b) | (c & (a | b))
    first = Word(Word(h + x) + Word((_turned(e, 6) ^ _turned(e, 11) ^ _turned(e, 25)) + choice))
    second = Word((_turned(a, 2) ^ _turned(a, 13) ^ _turned(a, 22)) + majority)
    return Word(d + first), Word(first + second)


@compiled_part
def _scheduled(w16: Word, w15: Word, w7: Word, w2: Word) -> Word:
    """The next word of a schedule, from those 16, 15, 7 and 2 before it."""
    small0 = _turned(w15, 7) ^ _turned(w15, 18) ^ Word(w15 >> Word(3))
    small1 = _turned(w2, 17) ^ _turned(w2, 19) ^ Word(w2 >> Word(10))
    return Word(Word(w16 + small0) + Word(w7 + small1))


@compiled_part
def _turned(word: Word, right: int) -> Word:
    return Word(Word(word >> Word(right)) | Word(word << Word(32 - right)))
