"""One draw of noise: a sum of look-ups in small tables, with words from a key or from the board's generator."""

import hashlib
import os
import sys

from cloakwork.sensor.errors import RandomError, TableError
from cloakwork.sensor.table import WORD_BYTES, look_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import BufferedReader

# boards whose os.urandom is a hardware generator that its maker stands by; a ring oscillator (rp2) is not
_TRUSTED_BOARDS = ("esp32", "stm32", "pyboard", "mimxrt", "samd")


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
        self._file.readinto(self._word)
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
    """Words from the generator of the operating system or the board; refused where that one is weak."""
    if sys.implementation.name == "micropython" and sys.platform not in _TRUSTED_BOARDS:
        raise RandomError(
            f"the random generator of {sys.platform} is not known to be good enough for noise. "
            "Provision this device with a key."
        )
    return [int.from_bytes(os.urandom(WORD_BYTES), "big") for _ in range(count)]
