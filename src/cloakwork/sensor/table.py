"""Rounded Gaussian noise from a table of cut points.

A table is the cut points C_0 <= C_1 <= ... as big-endian integers of 16 bytes each. A random word of
128 bits has its sign in the top bit; the magnitude of the noise is the number of cut points that are not
above the other 127 bits. The search takes the same number of steps for every word.
"""

from cloakwork.sensor.errors import TableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Cuts(Protocol):
        """Bytes, in memory or in a file."""

        def __len__(self) -> int: ...

        def __getitem__(self, part: slice) -> bytes | bytearray: ...


WORD_BYTES = 16
_MASK = (1 << 127) - 1


def look_up(table: "Cuts", word: int) -> int:
    """The noise, in steps, that a random word of 128 bits stands for.

    >>> look_up(bytes([0x40] + 15 * [0]), 1 << 126)
    1
    """
    if not table or len(table) % WORD_BYTES:
        raise TableError(f"a table holds one or more cut points of 16 bytes each; this one has {len(table)} bytes")
    if not 0 <= word < 1 << 128:
        raise TableError("a random word has 128 bits")
    size = len(table) // WORD_BYTES
    goal = (word & _MASK).to_bytes(WORD_BYTES, "big")
    below = 0
    step = 1
    while step <= size:
        step <<= 1
    step >>= 1
    while step:
        probe = min(below + step, size)
        start = (probe - 1) * WORD_BYTES
        # big-endian bytes compare like numbers, and take less memory
        below += (probe - below) * (table[start : start + WORD_BYTES] <= goal)
        step >>= 1
    return below * (1 - 2 * (word >> 127))
