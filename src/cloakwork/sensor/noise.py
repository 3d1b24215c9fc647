"""One draw of noise: a sum of look-ups in small tables, with words from a key or from the board's generator."""

import hashlib
import os
import sys

from cloakwork.sensor.errors import RandomError, TableError
from cloakwork.sensor.table import WORD_BYTES, look_up

_LOWER = (1 << 64) - 1

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import BufferedReader


class FileTable:
    """Cut points that stay in a file: a look-up reads sixteen bytes at a time."""

    def __init__(self, file: "BufferedReader", start: int, count: int) -> None:
        self._file = file
        self._start = start
        self._size = count * WORD_BYTES
        self._word = bytearray(WORD_BYTES)  # one for all look-ups: a board has little memory to turn over

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytearray:
        self._file.seek(self._start + part.start)
        if self._file.readinto(self._word) != WORD_BYTES:
            raise TableError("the noise table has changed under way. Provision this device again.")
        return self._word


class Noise:
    """Noise by the plan's tables: `levels` as [factor, number of cut points], in the order of the file."""

    def __init__(self, file: "BufferedReader", levels: list[list[int]], digest: str) -> None:
        check_table(file, levels, digest)
        self._tables = []
        start = 0
        for factor, count in levels:
            self._tables.append((factor, FileTable(file, start, count)))
            start += count * WORD_BYTES

    @property
    def words(self) -> int:
        """Random words that one draw takes."""
        return len(self._tables)

    def draw(self, words: list[int]) -> int:
        """The noise, in steps, that these words stand for."""
        total = 0
        for k in range(len(self._tables)):
            factor, table = self._tables[k]
            total += factor * look_up(table, words[k])
        return total


def check_table(file: "BufferedReader", levels: list[list[int]], digest: str) -> None:
    """Refuse a file of tables that is not the planned one."""
    found = hashlib.sha256()
    size = 0
    for factor, count in levels:
        found.update(factor.to_bytes(8, "big") + count.to_bytes(8, "big"))
        size += count * WORD_BYTES
    file.seek(0)
    while part := file.read(512):
        found.update(part)
        size -= len(part)
    if size != 0 or found.digest().hex() != digest:
        raise TableError("the noise table is damaged, or not the one of this plan. Provision this device again.")


def board_words(count: int) -> list[int]:
    """Words from the generator of the operating system or the board; refused where that one is weak or stuck."""
    if sys.implementation.name == "micropython" and not _good_board():
        raise RandomError(
            f"the random generator of {sys.platform} is not known to be good enough for noise, or only while its radio "
            "is on. Provision this device with a key."
        )
    found = [int.from_bytes(os.urandom(WORD_BYTES), "big") for _ in range(count)]
    if 0 in found or len({word & _LOWER for word in found} | {word >> 64 for word in found}) < 2 * count:
        raise RandomError("the random generator repeats itself. Provision this device with a key.")
    return found


def _good_board() -> bool:
    """Of the boards, the ESP32 has a generator that its maker stands by, and only while a radio is on.

    Others answer from a ring oscillator (rp2), from a counter (samd), or with zeros when the generator is late (stm32).
    """
    board = str(sys.platform)
    if board != "esp32":
        return False
    network = __import__("network")  # which only boards have
    return any(network.WLAN(kind).active() for kind in (network.STA_IF, network.AP_IF))
