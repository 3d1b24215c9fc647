"""Results as JSON, and the result of a whole window as an attacker would compute it."""

from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import Annotated, Any

import numpy as np
from cachetools import LRUCache
from pydantic import BaseModel, ConfigDict, Field, model_validator

from cloakwork.collect.attack import Attack, attack
from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.frame_results import unpack_map
from cloakwork.collect.storage import (
    FAILED,
    Reading,
    RecoveredSource,
    RecoveredTrack,
    Result,
    Store,
    ZoneState,
    unix_ms,
)
from cloakwork.errors import InputError
from cloakwork.recovery import DOUBTFUL
from cloakwork.sensor.wire import LARGEST

MOST_READINGS = 200_000  # of one attack
PAGE = 5000
MOST_ATTACKS = 32
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", examples=["hall"])]
SensorId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", examples=["s07"])]
Moment = Annotated[int, Field(ge=0, le=LARGEST, description="Unix milliseconds.", examples=[1794731949036])]


class RequestModel(BaseModel):
    """A body that a client sends. It is strict: no unknown keys, no numbers as texts."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _limit_keys(cls, data: object) -> object:
        """One error for any number of unknown keys: an error for each takes seconds where there are thousands."""
        if isinstance(data, dict) and len(data) > len(cls.model_fields):
            raise ValueError("an unknown key; leave it out")
        return data


class ResponseModel(BaseModel):
    """A body that the collector sends."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class ZoneBody(ResponseModel):
    """Whether someone is in a zone: expected sources there, and the probability that there is any.

    Where the estimator gives no odds, `expected` is the weight found there, and the rest is null. `since` is when
    `occupied` last changed, null before its first change.
    """

    id: str = Field(examples=["living"])
    expected: float
    probability: float | None
    occupied: bool | None = Field(description="Somebody was there, more likely than not, within the site's hold.")
    since: int | None


class ResultBody(ResponseModel):
    """The result of one frame; `map` is null where it is left out, `zones` where nothing was recovered.

    `failed` says that recovery gave no result, for the reason in `status`; `doubtful`, that the readings fit the model
    so badly that the map is suspect. `settled` says that the result also uses the frames of one window after it;
    `tracks` are the sources that are followed, the likeliest first, empty where frames are recovered alone.
    """

    site: str
    time: int
    sensors: int
    expected: int
    estimator: str
    status: str
    gap: float | None
    fit: float | None
    set_aside: list[str]
    counts: list[float] | None
    sources: list[RecoveredSource]
    map: list[float] | None
    settled: bool
    tracks: list[RecoveredTrack]
    zones: list[ZoneBody] | None
    solved: int
    took_ms: float
    failed: bool = False
    doubtful: bool = False


class AttackBody(ResultBody):
    """The result of many frames combined, `since` the first of them, as if no source had moved.

    It covers one window, and where that has too many readings (`cut`) only its end.
    """

    frames: int
    readings: int
    since: int
    cut: bool


def result_body(result: Result, *, with_map: bool) -> ResultBody:
    """A result as JSON."""
    return ResultBody(**_result_fields(result, with_map=with_map))


def attack_body(found: Attack) -> AttackBody:
    """The result of a window as JSON."""
    fields = _result_fields(found.result, with_map=True)
    window = {name: getattr(found, name) for name in ("frames", "readings", "since", "cut")}
    return AttackBody(**fields | window)


def _result_fields(result: Result, *, with_map: bool) -> dict[str, Any]:
    """The fields of a result; a number that is not finite becomes null, since JSON has none."""
    own = {name: getattr(result, name) for name in ResultBody.model_fields if hasattr(result, name)}
    return own | {
        "gap": _finite(result.gap),
        "fit": _finite(result.fit),
        "map": unpacked(result.map) if with_map else None,
        "zones": None if result.zones is None else [_zone_body(zone) for zone in result.zones],
        "failed": result.status.startswith(FAILED),
        "doubtful": bool(result.fit < DOUBTFUL),
    }


def unpacked(packed: bytes | None) -> list[float] | None:
    """The numbers of a map, to six digits."""
    return None if packed is None else [_rounded(number) for number in unpack_map(packed).tolist()]


def _zone_body(zone: ZoneState) -> ZoneBody:
    chance = None if zone.probability is None else _rounded(zone.probability)
    expected = _rounded(zone.expected)
    return ZoneBody(id=zone.id, expected=expected, probability=chance, occupied=zone.occupied, since=zone.since)


def _rounded(number: float) -> float:
    return float(f"{number:.6g}")


def _finite(number: float) -> float | None:
    return number if np.isfinite(number) else None


class AttackCache:
    """Computes attacks, and keeps the last few: one takes seconds, and many screens may ask at once.

    An attack is computed again when more readings of its window have arrived.
    """

    def __init__(self, store: Store, *, clock: Callable[[], int] = unix_ms) -> None:
        self._store = store
        self._clock = clock
        self._attacks: LRUCache[tuple[str, int, int, int], Attack] = LRUCache(MOST_ATTACKS)
        self._lock = Lock()

    def attack_until(self, watched: CollectedSite, until: int | None) -> Attack | None:
        """The window that ends with `until`, or with the newest frame, combined; None where it has no reading."""
        name = watched.name
        last = self._clock() + watched.ahead_ms if until is None else until
        frames = self._store.frames.times(name, until=last + 1, limit=1)
        if not frames:
            return None
        end = frames[0].time if until is None else until
        erasures = self._store.erasures(name)
        rows, cut = self._readings(name, max(1, end + 1 - watched.window_ms), end + 1)
        key = (name, end, len(rows), erasures)
        with self._lock:
            for old in [old for old in self._attacks if old[0] == name and old[3] != erasures]:
                del self._attacks[old]  # its readings may have been erased
            if key in self._attacks:
                return self._attacks[key]
        try:
            found = replace(attack(watched, rows), cut=cut)
        except InputError:
            return None
        with self._lock:
            self._attacks[key] = found
        return found

    def _readings(self, site: str, since: int, until: int) -> tuple[list[Reading], bool]:
        """The last readings of a period, and whether it has more than are used."""
        readings: list[Reading] = []
        after: str | None = None
        while True:
            page = self._store.readings.page(site, since=since, until=until, limit=PAGE, after=after, newest_first=True)
            readings += page.items
            after = page.next
            if after is None or len(readings) >= MOST_READINGS:
                return readings[:MOST_READINGS], after is not None or len(readings) > MOST_READINGS
