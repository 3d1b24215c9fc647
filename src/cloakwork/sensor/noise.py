"""Drawing noise: a sum of look-ups in small tables, with words from a key or from the board's generator."""

import hashlib
import os
import sys

from cloakwork.sensor.errors import RandomError, TableError
from cloakwork.sensor.table import WORD_BYTES, look_up

OFFSET_PARTS = 256  # an offset counts in so many parts of a step
CARRY_BITS = 16
LARGEST_RENEWAL = 64  # readings from one renewal of an offset to the next, at most
_LOWER = (1 << 64) - 1

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import BufferedReader
    from typing import Any, TypeVar

    Number = TypeVar("Number", int, Any)  # or an array of them, where a computer simulates many sensors


class FileTable:
    """Cut points that stay in a file: a look-up reads sixteen bytes at a time."""

    def __init__(self, file: "BufferedReader", start: int, count: int) -> None:
        self._file = file
        self._start = start
        self._size = count * WORD_BYTES
        self._word = bytearray(WORD_BYTES)  # shared by all look-ups, to spare the memory of a board

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytearray:
        self._file.seek(self._start + part.start)
        if self._file.readinto(self._word) != WORD_BYTES:
            raise TableError("the noise table has changed while in use. Provision this device again.")
        return self._word


class Noise:
    """Noise from the planned tables; `levels` lists [factor, number of cut points] in the order of the file."""

    def __init__(self, file: "BufferedReader", levels: list[list[int]], digest: str) -> None:
        check_table(file, levels, digest)
        self._tables = []
        start = 0
        for factor, count in levels:
            self._tables.append((factor, FileTable(file, start, count)))
            start += count * WORD_BYTES

    @property
    def words(self) -> int:
        """Number of random words per draw."""
        return len(self._tables)

    def draw(self, words: list[int]) -> int:
        """The noise, in steps, that these words stand for."""
        total = 0
        for k in range(len(self._tables)):
            factor, table = self._tables[k]
            total += factor * look_up(table, words[k])
        return total


def renewed(offset: "Number", drawn: "Number", carry: int) -> "Number":
    """The next offset: `carry` 65536ths of this one, rounded, plus a draw. Offsets and draws are in parts of a step."""
    return (carry * offset + (1 << (CARRY_BITS - 1)) >> CARRY_BITS) + drawn


def whole_steps(offset: "Number") -> "Number":
    """An offset in whole steps."""
    return (offset + OFFSET_PARTS // 2) // OFFSET_PARTS


def check_table(file: "BufferedReader", levels: list[list[int]], digest: str) -> None:
    """Refuse a table file that is not the planned one."""
    sha = hashlib.sha256()
    size = 0
    for factor, count in levels:
        sha.update(factor.to_bytes(8, "big") + count.to_bytes(8, "big"))
        size += count * WORD_BYTES
    file.seek(0)
    while part := file.read(512):
        sha.update(part)
        size -= len(part)
    if size != 0 or sha.digest().hex() != digest:
        raise TableError("the noise table is damaged, or not the one of this plan. Provision this device again.")


def board_words(count: int) -> list[int]:
    """Words from the generator of the operating system or the board, refused if it is weak or stuck."""
    if sys.implementation.name == "micropython" and not _good_board():
        raise RandomError(
            f"the random generator of {sys.platform} is not known to be good enough for noise, or is so only while its "
            "radio is on. Provision this device with a key."
        )
    words = [int.from_bytes(os.urandom(WORD_BYTES), "big") for _ in range(count)]
    if 0 in words or len({word & _LOWER for word in words} | {word >> 64 for word in words}) < 2 * count:
        raise RandomError("the random generator repeats itself. Provision this device with a key.")
    return words


def _good_board() -> bool:
    """Among boards, only the ESP32 has a generator that its maker vouches for, and only while a radio is on.

    Others use a ring oscillator (rp2) or a counter (samd), or return zeros if the generator is late (stm32).
    """
    board = str(sys.platform)
    if board != "esp32":
        return False
    network = __import__("network")  # a module that only boards have
    return any(network.WLAN(kind).active() for kind in (network.STA_IF, network.AP_IF))
