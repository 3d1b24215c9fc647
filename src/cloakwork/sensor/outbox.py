"""Readings that the broker has not confirmed yet: they survive a power cut and are sent again byte for byte."""

from cloakwork.sensor.errors import WireError
from cloakwork.sensor.wire import read_reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cloakwork.sensor.store import Folder

NAME = "outbox"
_LEFT = b"="  # begins the line of the last message that left


class Outbox:
    """Messages in the order in which they were made; beyond `most` of them, the oldest is dropped.

    The outbox remembers the last message that left, confirmed or dropped, to recognise the message that the broker
    holds as its own.
    """

    def __init__(self, store: "Folder", most: int) -> None:
        self._store = store
        self._most = most
        self._kept: dict[int, bytes] = {}
        self._lines = 0
        self._last = b""
        self._last_seq = -1
        for line in (store.read(NAME) or b"").split(b"\n"):
            try:
                self._load(line)
            except WireError:
                continue  # a power cut tore this line
        self._order = list(self._kept)
        self.tidy()

    def _load(self, line: bytes) -> None:
        if line[:1] == _LEFT:
            self._last, self._last_seq = line[1:], _number(line[1:])
        else:
            self._kept[_number(line)] = line

    def __len__(self) -> int:
        return len(self._order)

    def add(self, payload: bytes) -> int:
        """Keep a message until it is confirmed; returns its sequence number."""
        seq = _number(payload)
        self._store.append(NAME, payload + b"\n")
        self._lines += 1
        self._kept[seq] = payload
        self._order.append(seq)
        while len(self._order) > self._most:
            self._remove(self._order[0])
        self._tidy_if_long()
        return seq

    def first(self, most: int) -> "list[tuple[int, bytes]]":
        """The oldest messages, with their sequence numbers."""
        return [(seq, self._kept[seq]) for seq in self._order[:most]]

    def knows(self, payload: bytes) -> bool:
        """Whether this device made this message, or has already dropped or confirmed a later one."""
        seq = read_reading(payload)[0]
        return seq < self._last_seq or payload in (self._last, self._kept.get(seq, b""))

    def newest(self) -> bytes:
        """The remembered message with the highest number; empty if there is none."""
        latest = self._kept[self._order[-1]] if self._order else b""
        return latest or self._last

    def confirmed(self, seq: int) -> None:
        """Remove a message that the broker has confirmed."""
        if seq in self._kept:
            self._remove(seq)
            self._tidy_if_long()

    def clear(self) -> None:
        """Drop all unconfirmed messages."""
        self._kept = {}
        self._order = []
        self.tidy()

    def tidy(self) -> None:
        """Rewrite the file without the messages that have left, so that the next start does not send them again."""
        lines = [_LEFT + self._last] if self._last else []
        lines += [self._kept[seq] for seq in self._order]
        self._lines = len(lines)
        self._store.replace(NAME, b"".join([line + b"\n" for line in lines]))

    def _remove(self, seq: int) -> None:
        payload = self._kept.pop(seq)
        self._order.remove(seq)
        if seq > self._last_seq:
            self._last, self._last_seq = payload, seq

    def _tidy_if_long(self) -> None:
        if self._lines > 2 * len(self._order) + 8:
            self.tidy()


def _number(line: bytes) -> int:
    """The sequence number of a message; refused if it is torn."""
    return read_reading(line)[0]
