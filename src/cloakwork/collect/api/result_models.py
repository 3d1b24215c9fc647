"""Results as JSON, and what an attacker computes from a longer time."""

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from cloakwork.collect.attack import Attack, Span
from cloakwork.collect.frame_results import unpack_map
from cloakwork.collect.storage import (
    FAILED,
    RecoveredSource,
    RecoveredTrack,
    Result,
    ZoneState,
)
from cloakwork.recovery import DOUBTFUL
from cloakwork.sensor.wire import LARGEST

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
    occupied: bool | None = Field(
        description="Whether somebody is there; changes when that is sure, or more likely than not for the site's hold."
    )
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
    """An attacker's knowledge of the last moment of a span, from all its frames `since` the first.

    Sources are followed through all of them; where a site's sources cannot be followed, the frames are combined as if
    no source had moved. Where all would take too long (`cut`), only the last are used.
    """

    span: Span
    frames: int
    readings: int
    since: int
    cut: bool


def result_body(result: Result, *, with_map: bool) -> ResultBody:
    """A result as JSON."""
    return ResultBody(**_result_fields(result, with_map=with_map))


def attack_body(found: Attack, span: Span) -> AttackBody:
    """The result of a span as JSON."""
    fields = _result_fields(found.result, with_map=True)
    own = {name: getattr(found, name) for name in ("frames", "readings", "since", "cut")}
    return AttackBody(**fields | own, span=span)


def _result_fields(result: Result, *, with_map: bool) -> dict[str, Any]:
    """The fields of a result; a number that is not finite becomes null, since JSON has none."""
    own = {name: getattr(result, name) for name in ResultBody.model_fields if hasattr(result, name)}
    return own | {
        "gap": _finite(result.gap),
        "fit": _finite(result.fit),
        "map": unpacked(result.map) if with_map else None,
        "sources": result.sources if with_map else [replace(source, vicinity=()) for source in result.sources],
        "zones": None if result.zones is None else [_zone_body(zone) for zone in result.zones],
        "failed": result.status.startswith(FAILED),
        "doubtful": bool(result.fit < DOUBTFUL),
    }


def unpacked(packed: bytes | None) -> list[float] | None:
    """The numbers of a map, to six digits, and at most 20 after the point."""
    if packed is None:
        return None
    numbers = unpack_map(packed)
    scale = 10.0 ** (5 - np.floor(np.log10(np.maximum(np.abs(numbers), 1e-15))))
    rounded: list[float] = (np.rint(numbers * scale) / scale).tolist()
    return rounded


def _zone_body(zone: ZoneState) -> ZoneBody:
    chance = None if zone.probability is None else _rounded(zone.probability)
    expected = _rounded(zone.expected)
    return ZoneBody(id=zone.id, expected=expected, probability=chance, occupied=zone.occupied, since=zone.since)


def _rounded(number: float) -> float:
    return float(f"{number:.6g}")


def _finite(number: float) -> float | None:
    return number if np.isfinite(number) else None
