"""Records that the parts of the collector exchange. Times are Unix milliseconds; values are cloaked, in steps."""

import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")


def unix_ms() -> int:
    """The wall clock in Unix milliseconds."""
    return time.time_ns() // 1_000_000


class Reading(NamedTuple):
    """One cloaked reading; `time` is by the device's clock, `received` by the collector's."""

    site: str
    sensor: str
    seq: int
    time: int
    value: int
    received: int


class ReadingStatus(StrEnum):
    """The answer to a reading: new, the same message again, or another value under a known sequence number.

    Readings that are refused, because their device has sent too many, never reach the store.
    """

    NEW = "new"
    AGAIN = "again"
    ALARM = "alarm"
    REFUSED = "refused"


class DeviceReport(NamedTuple):
    """A device's status: its state, and how many of the readings that its window allows it has used."""

    site: str
    sensor: str
    state: str
    used: int
    allowed: int
    received: int


@dataclass(frozen=True)
class ProblemCount:
    """The count of a problem; `reason` is one of a fixed set of texts, `last` the time of the last message.

    `site` and `sensor` are empty where they are not from the site files: they never hold what a stranger wrote.
    """

    site: str
    sensor: str
    reason: str
    count: int
    last: int


@dataclass(frozen=True)
class Alarm:
    """One sequence number with two values: noise was used twice, or someone else sends in the sensor's name.

    The store keeps the first value; `received` is when the first contradiction arrived.
    """

    sensor: str
    seq: int
    received: int


@dataclass(frozen=True)
class FoundFault:
    """A change of the physics, found at Unix millisecond `raised`; `ended` is null while it lasts.

    `kind` is one of `FaultKind`. `sensor` is empty where all are concerned, `other` is the sensor at whose position a
    moved one seems to be, or the number of a door.
    """

    sensor: str
    kind: str
    other: str
    raised: int
    ended: int | None = None


@dataclass(frozen=True)
class PhysicsCheck:
    """Tests of a site's physics up to the frame of `time`; `model` identifies the model, `state` is the detector's."""

    site: str
    model: str
    time: int
    state: bytes
    faults: tuple[FoundFault, ...]


class FrameState(NamedTuple):
    """A time that has readings: how many, and of how many of them its last result was made."""

    time: int
    readings: int
    recovered: int = 0


class Role(StrEnum):
    """A token's role: a device writes its own sensor, an analyst reads, an operator may do everything."""

    DEVICE = "device"
    ANALYST = "analyst"
    OPERATOR = "operator"


@dataclass(frozen=True)
class Token:
    """A token without its secret. A device token names its site and sensor; others may be limited to one site."""

    id: str
    role: Role
    site: str | None
    sensor: str | None
    label: str
    made: int
    revoked: int | None


class NewToken(NamedTuple):
    """A new token with its secret, which is known only now: the store keeps a hash."""

    token: Token
    secret: str


@dataclass(frozen=True)
class Page(Generic[Item]):
    """One page of a long list. Pass `next` as `after` to get the following page; None marks the last one."""

    items: tuple[Item, ...]
    next: str | None


@dataclass(frozen=True)
class Erased:
    """The numbers of rows that an erasure removed.

    `in_files` says that an SQLite store's files still hold them, because another program has the store open to read.
    """

    readings: int
    results: int
    reports: int
    in_files: bool = False
