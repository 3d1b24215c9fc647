"""What is said and taken over HTTP. Bodies of requests are strict: no other keys, no numbers as texts."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from cloakwork.collect.occupancy import Occupancy, weights_of
from cloakwork.collect.records import Result
from cloakwork.sensor.wire import LARGEST

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", examples=["hall"])]
Sensor = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", examples=["s07"])]
Moment = Annotated[int, Field(ge=0, le=LARGEST, description="Unix milliseconds.", examples=[1794731949036])]
Count = Annotated[int, Field(ge=0, le=LARGEST)]


class Asked(BaseModel):
    """A body or a query that we were sent."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _few(cls, given: object) -> object:
        """One error for any number of unknown keys: to make one for each takes seconds where there are thousands."""
        if isinstance(given, dict) and len(given) > len(cls.model_fields):
            raise ValueError("a key that is not known there; leave it out")
        return given


class Told(BaseModel):
    """A body that we send."""

    model_config = ConfigDict(frozen=True)


class ReadingIn(Asked):
    """A cloaked reading, as a device sends it."""

    v: Annotated[int, Field(ge=1, le=1, examples=[1])]  # a Literal would take true for 1
    site: Name
    sensor: Sensor
    seq: Annotated[int, Field(ge=0, le=LARGEST, examples=[123061282013184])]
    time: Moment
    value: Annotated[int, Field(ge=-LARGEST, le=LARGEST, description="In steps, cloaked.", examples=[8955])]


class Accepted(Told):
    """What became of readings: `accepted` are new, `again` were stored before, `alarms` contradict a stored one."""

    accepted: int = Field(examples=[1])
    again: int = Field(examples=[0])
    alarms: int = Field(examples=[0])


class SiteBody(Told):
    """A site in one line: what it claims and how it is read."""

    name: str = Field(examples=["hall"])
    kind: str = Field(examples=["floorplan"])
    sensors: int
    places: int
    unit: str = Field(examples=["°C"])
    alpha: float = Field(description="Moves of up to this length are hidden.")
    epsilon: float
    delta: float
    scope: str = Field(examples=["network"])
    window_s: float
    readings_per_window: int
    period_ms: int
    estimator: str = Field(examples=["PointSources"])


class SensorBody(Told):
    """A sensor: where it is (coordinates, a node, or unknown), and its noise, step and baseline in the site's unit."""

    id: str
    at: list[float] | str | None
    sigma: float
    step: float
    baseline: float


Segment = tuple[tuple[float, float], tuple[float, float]]


class NamedZone(Told):
    """A part of the site that has a name; `label` is for people.

    `places` are the numbers of its places; empty where the site file names no zones and these are just its rooms.
    """

    id: str = Field(examples=["living"])
    label: str = Field(examples=["Living room"])
    places: list[int] = []


class GeometryBody(Told):
    """The shape of a site. `places` are in the order of a map's numbers; a network has `labels` and `pairs` instead."""

    name: str
    kind: Literal["line", "plane", "floorplan", "graph", "matrix"]
    unit: str
    places: list[list[float]]
    labels: list[str] | None = None
    length: float | None = None
    width: float | None = None
    height: float | None = None
    cell: float | None = None
    walls: list[Segment] = []
    doors: list[Segment] = []
    pairs: list[tuple[int, int]] = []
    lengths: list[float] = []
    sensors: list[SensorBody]
    zones: list[NamedZone] = []


class SpotBody(Told):
    """A recovered source and its vicinity."""

    place: str
    at: list[float]
    weight: float
    radius: float
    probability: float


class ZoneBody(Told):
    """Whether someone is in a zone: expected sources there, and how likely it is that there is any.

    Where the estimator gives no odds, `expected` is the weight found there, and the rest is null.
    """

    id: str = Field(examples=["living"])
    expected: float
    probability: float | None
    occupied: bool | None = Field(description="More likely than not.")


class ResultBody(Told):
    """What was recovered from one frame; `map` and `zones` are null where they were left out."""

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
    sources: list[SpotBody]
    map: list[float] | None
    zones: list[ZoneBody] | None = None
    solved: int
    took_ms: float


class LongerBody(Told):
    """What the readings of a longer time come to by the plan, for someone who keeps them all."""

    seconds: float = Field(examples=[86_400.0])
    epsilon: float = Field(examples=[5.79])


class AttackBody(ResultBody):
    """The same from many frames together, `since` the first of them, as if nobody had moved.

    It looks at one window, and where that has too many readings (`cut`) at its end. Data that are kept for longer say
    more: `longer` says how much.
    """

    frames: int
    readings: int
    since: int
    cut: bool
    longer: LongerBody


class ResultsBody(Told):
    """A part of the results, newest first; `next` is for the query's `after`, null at the end."""

    items: list[ResultBody]
    next: str | None


class ReadingBody(Told):
    """A stored reading: `value` in steps, `reading` in the site's unit (null if the plan has no such sensor)."""

    sensor: str
    seq: int
    time: int
    value: int
    reading: float | None
    received: int


class ReadingsBody(Told):
    """A part of the readings, newest first; `next` is for the query's `after`, null at the end."""

    items: list[ReadingBody]
    next: str | None


def result_body(result: Result, *, with_map: bool, zones: Sequence[Occupancy] | None = None) -> ResultBody:
    """A result as it is told."""
    return ResultBody(**result_values(result, with_map=with_map, zones=zones))


def result_values(result: Result, *, with_map: bool, zones: Sequence[Occupancy] | None = None) -> dict[str, Any]:
    """The fields of a result as they are told; a number that is not finite is null, since JSON has none."""
    return {
        **{name: getattr(result, name) for name in ("site", "time", "sensors", "expected", "estimator", "status")},
        "gap": _finite(result.gap),
        "fit": _finite(result.fit),
        "set_aside": list(result.set_aside),
        "counts": None if result.counts is None else list(result.counts),
        "sources": [
            SpotBody(
                place=spot.place,
                at=list(spot.at),
                weight=spot.weight,
                radius=spot.radius,
                probability=spot.probability,
            )
            for spot in result.sources
        ],
        "map": unpacked(result.map) if with_map else None,
        "zones": None if zones is None else [_zone(one) for one in zones],
        "solved": result.solved,
        "took_ms": result.took_ms,
    }


def unpacked(packed: bytes | None) -> list[float] | None:
    """The numbers of a map, to six digits."""
    if packed is None:
        return None
    return [_short(number) for number in weights_of(packed).tolist()]


def _zone(one: Occupancy) -> ZoneBody:
    chance = None if one.probability is None else _short(one.probability)
    return ZoneBody(id=one.zone.id, expected=_short(one.expected), probability=chance, occupied=one.occupied)


def _short(number: float) -> float:
    return float(f"{number:.6g}")


def _finite(number: float) -> float | None:
    return number if np.isfinite(number) else None
