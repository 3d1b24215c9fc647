"""What the parts of the collector hand to each other. Times are Unix milliseconds; a value is in steps and cloaked."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")
FAILED = "failed"  # how the status of a result begins that is none


class Reading(NamedTuple):
    """One cloaked reading; `time` is the device's, `received` the collector's."""

    site: str
    sensor: str
    seq: int
    time: int
    value: int
    received: int


class Report(NamedTuple):
    """A device's status: its state, and how many readings of its window it has used."""

    site: str
    sensor: str
    state: str
    used: int
    allowed: int
    received: int


@dataclass(frozen=True)
class Problem:
    """Bad messages, counted; `reason` is one of a fixed set of texts, `last` when the last one came.

    `site` and `sensor` are empty where a message does not say whose it is: they never hold what a stranger wrote.
    """

    site: str
    sensor: str
    reason: str
    count: int
    last: int


class Alarm(NamedTuple):
    """One sequence number with two values: noise was used twice, or someone else speaks in the sensor's name.

    The store keeps the first value; `received` is when the first contradiction came.
    """

    sensor: str
    seq: int
    received: int


class FrameTime(NamedTuple):
    """A moment that has readings, and of how many sensors."""

    time: int
    sensors: int


class Verdict(StrEnum):
    """What the store says of a reading: `AGAIN` is the same message once more, `ALARM` another under a known number."""

    NEW = "new"
    AGAIN = "again"
    ALARM = "alarm"


class Role(StrEnum):
    """Who holds a token: a device writes its own sensor, an analyst reads, an operator may do all."""

    DEVICE = "device"
    ANALYST = "analyst"
    OPERATOR = "operator"


@dataclass(frozen=True)
class Spot:
    """A recovered source: place, coordinates, weight, radius of its vicinity and how probable it is."""

    place: str
    at: tuple[float, ...]
    weight: float
    radius: float
    probability: float


@dataclass(frozen=True)
class Result:
    """What was recovered from one frame, with the estimator and its certificate.

    `sensors` is how many of the `expected` sensors had reported, `set_aside` names those that did not fit, `counts` is
    the probability of 0, 1, 2, ... sources where the estimator says it. `map` is a zlib-compressed float32 array
    (little-endian) with one weight per place, or None where it was left out. `solved` is when, in Unix milliseconds.
    """

    site: str
    time: int
    sensors: int
    expected: int
    estimator: str
    status: str
    gap: float
    fit: float
    set_aside: tuple[str, ...]
    counts: tuple[float, ...] | None
    sources: tuple[Spot, ...]
    map: bytes | None
    solved: int
    took_ms: float


@dataclass(frozen=True)
class Token:
    """A token without its secret. A device's names its site and sensor; another's may be limited to one site."""

    id: str
    role: Role
    site: str | None
    sensor: str | None
    label: str
    made: int
    revoked: int | None


class NewToken(NamedTuple):
    """A token at the one moment when its secret is known: the store keeps a hash only."""

    token: Token
    secret: str


@dataclass(frozen=True)
class Page(Generic[Item]):
    """A part of a long answer; give `next` as `after` for the part that follows, None says that this was the last."""

    items: tuple[Item, ...]
    next: str | None


@dataclass(frozen=True)
class Erased:
    """How many rows an erasure removed."""

    readings: int
    results: int
    reports: int
