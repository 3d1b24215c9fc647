"""Wire form, version 1: the messages of a device.

A reading is `{"v":1,"seq":S,"time":T,"value":K}` on `cloakwork/v1/<site>/<sensor>/reading`: S the sequence number,
T Unix milliseconds, K the cloaked reading in steps. A status is `{"v":1,"state":"...","used":U,"allowed":A}`, retained,
on `.../status`. There is exactly one way to write each message: readers accept no other spacing, order or form of a
number, so a message has no room for anything else.
"""

from cloakwork.sensor.errors import WireError
from cloakwork.sensor.measuring import FAILING, INVALID, ONLINE, SKIPPING, SLOW

VERSION = 1
LARGEST = (1 << 53) - 1  # every JSON reader holds it exactly
LONGEST = 96  # bytes of a message
LONGEST_NAME = 64
STATES = (ONLINE, "spent", "bench", "offline", FAILING, INVALID, SLOW, SKIPPING)
KINDS = ("reading", "bench", "status")
_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"


def topic(site: str, sensor: str, kind: str) -> str:
    """The topic that a device publishes on: `kind` is reading, bench (readings of an audited device) or status.

    >>> topic("flat", "s07", "reading")
    'cloakwork/v1/flat/s07/reading'
    """
    for name in (site, sensor):
        if not _is_name(name):
            raise WireError("a name has 1 to 64 letters, digits, - and _")
    if kind not in KINDS:
        raise WireError("the last part of a topic is reading, bench or status")
    return "cloakwork/v1/" + site + "/" + sensor + "/" + kind


def parse_topic(text: str) -> tuple[str, str, str]:
    """Site, sensor and kind of a topic.

    >>> parse_topic("cloakwork/v1/flat/s07/status")
    ('flat', 's07', 'status')
    """
    parts = text.split("/")
    if len(parts) != 5 or parts[0] != "cloakwork" or parts[1] != "v1":
        raise WireError("a topic is cloakwork/v1/<site>/<sensor>/<kind>")
    if topic(parts[2], parts[3], parts[4]) != text:
        raise WireError("a topic is cloakwork/v1/<site>/<sensor>/<kind>")
    return parts[2], parts[3], parts[4]


def write_reading(seq: int, time: int, value: int) -> bytes:
    """The bytes of a reading, whose value is already cloaked.

    >>> write_reading(1, 1700000000000, -3)
    b'{"v":1,"seq":1,"time":1700000000000,"value":-3}'
    """
    if not (0 <= seq <= LARGEST and 0 <= time <= LARGEST and -LARGEST <= value <= LARGEST):
        raise WireError("a number does not fit in 53 bits")
    return f'{{"v":1,"seq":{seq},"time":{time},"value":{value}}}'.encode()


def read_reading(payload: bytes) -> tuple[int, int, int]:
    """Sequence number, time and value; refuses anything that `write_reading` would not write.

    >>> read_reading(b'{"v":1,"seq":1,"time":1700000000000,"value":-3}')
    (1, 1700000000000, -3)
    """
    seq, time, value = _fields(payload, ('{"v":1,"seq":', ',"time":', ',"value":', "}"))
    if value == "-0":
        raise WireError("a number is not in its only valid form")
    return _whole(seq), _whole(time), -_whole(value[1:]) if value[:1] == "-" else _whole(value)


def write_status(state: str, used: int, allowed: int) -> bytes:
    """The bytes of a status: readings used in the window that ends now, and the number allowed.

    >>> write_status("online", 3, 60)
    b'{"v":1,"state":"online","used":3,"allowed":60}'
    """
    if state not in STATES or not (0 <= used <= LARGEST and 0 <= allowed <= LARGEST):
        raise WireError("a status has a known state and two counts")
    return f'{{"v":1,"state":"{state}","used":{used},"allowed":{allowed}}}'.encode()


def read_status(payload: bytes) -> tuple[str, int, int]:
    """State, used and allowed; refuses anything that `write_status` would not write.

    >>> read_status(b'{"v":1,"state":"online","used":3,"allowed":60}')
    ('online', 3, 60)
    """
    state, used, allowed = _fields(payload, ('{"v":1,"state":"', '","used":', ',"allowed":', "}"))
    if state not in STATES:
        raise WireError("the state is unknown")
    return state, _whole(used), _whole(allowed)


class ReplayCheck:
    """Detects two different values under one sequence number of a sensor.

    Two values mean that noise was used twice, or that someone else publishes in the sensor's name. The check remembers
    the last `most` numbers.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._seen: dict[int, int] = {}
        self._order: list[int] = []

    def check(self, seq: int, value: int) -> str:
        """Returns `new`, `again` (the same message repeated) or `alarm` (another value under a known number)."""
        if seq in self._seen:
            return "again" if self._seen[seq] == value else "alarm"
        self._seen[seq] = value
        self._order.append(seq)
        if len(self._order) > self._most:
            del self._seen[self._order.pop(0)]
        return "new"


def _fields(payload: bytes, around: tuple[str, str, str, str]) -> tuple[str, str, str]:
    """The three texts between the four fixed parts."""
    if len(payload) > LONGEST:
        raise WireError("a message has at most 96 bytes")
    try:
        text = bytes(payload).decode()
    except (UnicodeError, ValueError):
        raise WireError("a message is ASCII") from None
    head, first, second, tail = around
    if text[: len(head)] != head or text[-len(tail) :] != tail:
        raise WireError("a message does not have the wire form, version 1")
    parts = text[len(head) : -len(tail)].split(first)
    rest = parts[-1].split(second)
    if len(parts) != 2 or len(rest) != 2:
        raise WireError("a message does not have the wire form, version 1")
    return parts[0], rest[0], rest[1]


def _whole(text: str) -> int:
    if not 0 < len(text) <= 16:
        raise WireError("a number is missing, or longer than 16 digits")
    for letter in text:
        if letter not in "0123456789":
            raise WireError("a number is not in its only valid form")
    number = int(text)
    if number > LARGEST or (text[0] == "0" and text != "0"):
        raise WireError("a number is not in its only valid form, or does not fit in 53 bits")
    return number


def _is_name(name: str) -> bool:
    return 0 < len(name) <= LONGEST_NAME and all(letter in _NAME for letter in name)
