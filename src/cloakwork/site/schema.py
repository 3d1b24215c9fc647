"""The keys of a site file, their types and what they allow."""

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from cloakwork.site.schedule import SHORTEST_MS, USUAL_CLOCK_MS

LONGEST_UNIT = 16
LONGEST_LABEL = 64

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=1)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Point = Annotated[list[Number], Field(min_length=2, max_length=2)]
Segment = Annotated[list[Point], Field(min_length=2, max_length=2)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def _seconds(duration: Any) -> Any:
    if not isinstance(duration, str):
        return duration
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(ms|s|m|min|h|d|w)\s*", duration)
    if match is None:
        raise ValueError('give seconds, or a number with ms, s, min, h, d or w such as "1h"')
    return float(match.group(1)) * _UNITS[match.group(2)]


Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0, allow_inf_nan=False)]
SecondsOrZero = Annotated[float, BeforeValidator(_seconds), Field(ge=0, allow_inf_nan=False)]
Period = Annotated[float, BeforeValidator(_seconds), Field(ge=SHORTEST_MS / 1000, allow_inf_nan=False)]


def _printable(longest: int, example: str = "") -> BeforeValidator:
    def check(text: Any) -> Any:
        if isinstance(text, str) and not (0 < len(text) <= longest and text.isprintable() and text.strip()):
            raise ValueError(f"give a text of 1 to {longest} characters that can be printed{example}")
        return text

    return BeforeValidator(check)


Unit = Annotated[str, _printable(LONGEST_UNIT, ', such as "°C"')]
Label = Annotated[str, _printable(LONGEST_LABEL)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ToleranceSpec(_Table):
    """`[physics.tolerance]`: how wrong the model may be."""

    diffusion: NotNegative = 0.0  # relative error of T, tau, or a squared reach or length; below 1
    gain: NotNegative = 0.0  # relative error of each sensor's gain
    position: NotNegative = 0.0  # how far each sensor may be from its stated position
    doors: bool = False  # whether each door may be open or shut; at most 6 doors
    memory: bool = False  # whether rooms of a steady floor plan remember, with any time constant


class LineSpec(_Table):
    """A line."""

    kind: Literal["line"]
    places: Whole  # number of cells, n
    T: Positive  # diffusion constant times time, in squared length
    length: Positive = 1.0  # length of the line
    placement: Literal["grid", "anywhere"] = "anywhere"  # where sources may be: anywhere, or on the cells only
    tolerance: ToleranceSpec = ToleranceSpec()  # how wrong the model may be


class PlaneSpec(_Table):
    """A plane without walls."""

    kind: Literal["plane"]
    places: Annotated[list[Whole], Field(min_length=2, max_length=2)]  # number of cells along x and along y
    T: Positive  # diffusion constant times time, in squared length
    size: Annotated[list[Positive], Field(min_length=2, max_length=2)] = [1.0, 1.0]  # width and height
    tolerance: ToleranceSpec = ToleranceSpec()  # how wrong the model may be


class FloorPlanSpec(_Table):
    """Rooms with walls and doors: a drawing, or a size with walls and doors in metres."""

    kind: Literal["floorplan"]
    cell: Positive  # side of a cell, in metres: the size of the smallest source
    drawing: str | None = None  # rooms as text: # wall, . floor, + door, blank outside; this, or size
    size: Annotated[list[Positive], Field(min_length=2, max_length=2)] | None = None  # or width and height
    walls: list[Segment] = []  # with size: list of [[x, y], [x, y]]
    doors: list[Segment] = []  # with size: the openings in walls, in the same form
    regime: Literal["steady", "pulse"]  # for lasting sources, or for a puff
    reach: Positive | None = None  # with "steady": metres over which warmth fades to 1/e
    length: Positive | None = None  # with "pulse": standard deviation of the puff when it is read, in metres
    footprint: NotNegative = 0.0  # radius of the area that a sensor averages over, in metres
    lag: SecondsOrZero = 0.0  # with "steady": a reading covers 63 % of a change in this time; for simulations
    tolerance: ToleranceSpec = ToleranceSpec()  # how wrong the model may be

    @model_validator(mode="after")
    def _whole(self) -> "FloorPlanSpec":
        if (self.drawing is None) == (self.size is None):
            raise ValueError("give either drawing, or size with walls and doors")
        if self.drawing is not None and (self.walls or self.doors):
            raise ValueError("walls and doors go with size; a drawing already has them")
        needed, other = ("reach", "length") if self.regime == "steady" else ("length", "reach")
        if getattr(self, needed) is None or getattr(self, other) is not None:
            raise ValueError(f'regime = "{self.regime}" needs {needed} (metres), and no {other}')
        if self.lag and self.regime == "pulse":
            raise ValueError('lag goes with regime = "steady": a pulse is read when the model says')
        return self


class GraphSpec(_Table):
    """A network: edges as [from, to], [from, to, weight] or [from, to, weight, length], or a CSV file of such rows."""

    kind: Literal["graph"]
    edges: str | list[Annotated[list[str | int | float], Field(min_length=2, max_length=4)]]
    tau: NotNegative  # diffusion time
    tolerance: ToleranceSpec = ToleranceSpec()  # how wrong the model may be


class MatrixSpec(_Table):
    """Any matrix: a CSV or NumPy file with one row a sensor; places lie on a line of `length`, or as `pairs` says."""

    kind: Literal["matrix"]
    file: str  # CSV or .npy file: one row per sensor, one column per cell, no header
    pairs: str | None = None  # CSV file of neighbours: cell, cell, length; without it, cells lie on a line
    length: Positive = 1.0  # without pairs: length of that line
    lag: SecondsOrZero = 0.0  # as for a floor plan; 0 for radio
    tolerance: ToleranceSpec = ToleranceSpec()  # how wrong the model may be; only gain applies


class OwnSpec(_Table):
    """A model in a Python file next to the site file; its `from_site` takes all other keys."""

    model_config = ConfigDict(extra="allow")

    kind: Annotated[str, Field(pattern=r"^[^/\\:]+\.py:[A-Za-z_]\w*$")]
    tolerance: ToleranceSpec = ToleranceSpec()  # how wrong the model may be

    @property
    def options(self) -> dict[str, Any]:
        """All other keys."""
        return self.model_extra or {}


def _model(physics: Any) -> Any:
    """Which of the tables below describes the model."""
    kind = physics.get("kind") if isinstance(physics, dict) else getattr(physics, "kind", None)
    return "own" if isinstance(kind, str) and ".py:" in kind else kind


KINDS = ("floorplan", "graph", "line", "matrix", "plane")
PhysicsSpec: TypeAlias = Annotated[
    Annotated[LineSpec, Tag("line")]
    | Annotated[PlaneSpec, Tag("plane")]
    | Annotated[FloorPlanSpec, Tag("floorplan")]
    | Annotated[GraphSpec, Tag("graph")]
    | Annotated[MatrixSpec, Tag("matrix")]
    | Annotated[OwnSpec, Tag("own")],
    Discriminator(_model),
]


class SensorSpec(_Table):
    """`[[sensor]]`: its id, where it is, what it reads with no source near, and hardware unlike that of the others."""

    id: Name  # name, as in readings: at most 64 letters, digits, _ and -
    at: Number | Point | str | int | None = None  # a position; in a network a node, by default the id; no matrix has it
    baseline: Number | None = None  # what it reads with no source near; by default the site's
    resolution: Positive | None = None  # step of its hardware; by default as under [privacy]
    noise_floor: NotNegative | None = None  # noise before its hardware rounds; by default as under [privacy]
    map_error: NotNegative = 0.0  # how far readings stray from the model beyond noise, which recovery allows for


def _strength(strength: Any) -> Any:
    """Check one number above 0, or a pair; anything else gets one message, not one for each form."""
    values = strength if isinstance(strength, list) else [strength]
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool) and 0 <= v < float("inf")]
    pair = isinstance(strength, list)
    good = len(numbers) == len(values) == (2 if pair else 1) and (numbers[0] < numbers[1] if pair else numbers[0] > 0)
    if not good:
        raise ValueError("give one number above 0, or [least, most] with 0 <= least < most")
    return tuple(float(v) for v in numbers) if pair else float(numbers[0])


Strength = Annotated[float | tuple[float, float], BeforeValidator(_strength)]


class SourcesSpec(_Table):
    """`[sources]`: what is hidden.

    `strength` is one number if every source has it, or [least, most] if each has its own in between.
    """

    kind: Literal["lasting", "pulse"]  # people and machines, or a puff
    strength: Strength = 1.0  # reading of a unit source: one number, or [least, most] if they differ
    max_count: Whole | None = None  # the most sources at a time, for recovery; 4 by default

    @property
    def strongest(self) -> float:
        """Strength of the strongest source, which is the unit of the physics."""
        return self.strength[1] if isinstance(self.strength, tuple) else self.strength


class StaySpec(_Table):
    """`[privacy.stay]`: a second claim, for a source that stays where it is for up to `length`."""

    length: Seconds  # the longest stay that is hidden, such as "8h"; at least the window
    epsilon: Positive  # for all readings of a stay and around it
    delta: Annotated[float, Field(gt=0, lt=1)]  # above 0, below 1


class PrivacySpec(_Table):
    """`[privacy]`: the claim, for a window, and how often a device reads (by default, evenly over the window)."""

    noise: Literal["gaussian", "laplace"] = "gaussian"  # "laplace" with scope = "sensor" only
    epsilon: Positive  # for a whole window
    delta: Annotated[float, Field(ge=0, lt=1)]  # below 1; above 0 unless the noise is Laplace
    alpha: Positive  # distance within which a unit source is hidden
    scope: Literal["network", "sensor"] = "network"  # an observer sees all sensors, or one
    design: Literal["least-error", "equal"] = "least-error"  # locate a lone source best, or the same noise for all
    resolution: Positive | None = None  # step of the hardware, in the unit of the readings
    noise_floor: NotNegative | None = None  # noise of a sensor before its hardware rounds, at least
    window: Seconds = 3600.0  # seconds, or a text such as "15min"
    readings_per_window: Whole = 1  # frames that the guarantee covers together
    period: Period | None = None  # time between readings, at least 10 ms; by default spread over the window
    late: Seconds | None = None  # how late in its slot a reading may be; by default a tenth of a period, at most 0.2 s
    clock: Seconds = USUAL_CLOCK_MS / 1000  # how far a device's clock may be from the true time
    speed: NotNegative | Literal["any"] | None = None  # top speed of a source; 1.5 m/s on a steady floor plan
    stay: StaySpec | None = None  # a second guarantee

    @field_validator("delta")
    @classmethod
    def _some(cls, value: float, info: ValidationInfo) -> float:
        if value == 0 and info.data.get("noise") == "gaussian":
            raise ValueError("Gaussian noise needs a delta above 0, such as 1e-5")
        return value


class ZoneSpec(_Table):
    """`[[zone]]`: a named part of the space, given by one of `room`, `corners`, `between` and `places`.

    `room` is a point in a room of a floor plan; `corners` are two opposite corners of a rectangle, or all corners of
    another shape; `between` are two positions on a line; `places` are nodes of a network, or columns of a matrix.
    """

    id: Name  # name: at most 64 letters, digits, _ and -
    label: Label | None = None  # name to display, at most 64 characters; by default the id
    room: Point | None = None  # in a floor plan: any point in a room
    corners: Annotated[list[Point], Field(min_length=2)] | None = None  # two opposite corners, or all
    between: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = None  # on a line: from, to
    places: Annotated[list[str | int], Field(min_length=1)] | None = None  # nodes of a network, or columns of a matrix

    @property
    def form(self) -> str:
        """The key that gives the zone."""
        return next(key for key in ZONE_FORMS if getattr(self, key) is not None)

    @model_validator(mode="after")
    def _whole(self) -> "ZoneSpec":
        if sum(getattr(self, key) is not None for key in ZONE_FORMS) != 1:
            raise ValueError(f"give one of {', '.join(ZONE_FORMS)}, and one only")
        return self


ZONE_FORMS = ("room", "corners", "between", "places")
MOVING = ("stay", "walk", "speed")


class MotionSpec(_Table):
    """`[motion]`: how sources move, and how long a zone in doubt keeps its state."""

    kind: Literal["people", "still"] | None = None  # sit and walk, or never move; by default people on a floor plan
    stay: Seconds | None = None  # how long a source usually sits, such as "20min"
    walk: Seconds | None = None  # how long it usually walks
    speed: Positive | None = None  # how fast it walks, in units of the space per second
    present: Seconds | None = None  # how long it is usually there
    absent: Seconds | None = None  # how long one that has gone takes to return
    hold: SecondsOrZero | None = None  # how long a zone in doubt keeps its state; by default two periods, at least 30 s

    @field_validator(*MOVING)
    @classmethod
    def _moves(cls, value: float | None, info: ValidationInfo) -> float | None:
        if info.data.get("kind") == "still":
            raise ValueError('sources of kind = "still" never move; leave this key out')
        return value


class EntranceSpec(_Table):
    """`[[entrance]]`: a place where sources come and go."""

    at: Number | Point | str | int  # a position, a node, or a column of a matrix with pairs


class DriftSpec(_Table):
    """`[drift]`: how readings wander without any source, as standard deviations in their unit."""

    sensor: NotNegative = 0.0  # of each sensor
    room: NotNegative = 0.0  # of each room of a floor plan, with its doors shut
    all: NotNegative = 0.0  # of all sensors together
    over: Seconds = 6 * 3600.0  # the time over which they wander so far


class HeatSpec(_Table):
    """`[[heat]]`: heat at a known place, such as a radiator or a window; `strength` as that of sources."""

    at: Number | Point | str | int  # a position, a node, or a column of a matrix with pairs
    strength: NotNegative  # the most that it can have: two standard deviations
    over: Seconds = 2 * 3600.0  # the time over which it changes


def distinct_ids(tables: list[Any], info: ValidationInfo) -> list[Any]:
    """Refuse two tables of one kind with the same id."""
    seen: dict[str, int] = {}
    for number, table in enumerate(tables, start=1):
        if table.id in seen:
            both = f"{info.field_name}s {seen[table.id]} and {number}"
            raise ValueError(f'{both} are both called "{table.id}"; ids must differ')
        seen[table.id] = number
    return tables


class SiteSpec(_Table):
    """One installation whose sensors read numbers."""

    name: Name  # at most 64 letters, digits, _ and -
    sensors: Whole | None = None  # number of sensors, spread evenly; this, or [[sensor]]
    baseline: Number = 0.0  # what a sensor reads with no source near
    unit: Unit | None = None  # unit of the readings, such as "°C"; for display only
    physics: PhysicsSpec  # how sources become readings
    sensor: list[SensorSpec] = []  # one table for each sensor
    sources: SourcesSpec  # what to hide
    privacy: PrivacySpec  # the guarantee
    zone: list[ZoneSpec] = []  # named parts of the space; by default the rooms of a floor plan
    motion: MotionSpec = MotionSpec()  # how sources move
    entrance: list[EntranceSpec] = []  # where sources come and go; by default anywhere
    drift: DriftSpec = DriftSpec()  # how readings wander without any source
    heat: list[HeatSpec] = []  # heat at known places, such as a radiator

    _distinct = field_validator("sensor", "zone")(distinct_ids)

    @model_validator(mode="after")
    def _together(self) -> "SiteSpec":
        if (self.sensors is None) == (not self.sensor):
            both = "both are given" if self.sensor else "neither is given"
            raise ValueError(f"give either sensors = N for even spacing, or one [[sensor]] for each; {both}")
        steps = [self.privacy.resolution if s.resolution is None else s.resolution for s in self.sensor]
        if None in steps and any(steps):
            number = steps.index(None)
            raise ValueError(
                f'sensor "{self.sensor[number].id}" has no resolution, and others have one; state it for each of them, '
                "or under [privacy]"
            )
        stated: list[PrivacySpec | SensorSpec] = [self.privacy, *self.sensor]
        if any(s.noise_floor is not None for s in stated) and not any(s.resolution is not None for s in stated):
            raise ValueError("noise_floor without resolution: state the step of the hardware too")
        pulse = self.physics.kind in {"line", "plane", "graph"} or (
            isinstance(self.physics, FloorPlanSpec) and self.physics.regime == "pulse"
        )
        if self.sources.kind == "lasting" and pulse:
            raise ValueError(
                'sources.kind = "lasting" with a model of a pulse: a lasting source keeps emitting, and the noise for '
                'a pulse would not hide it. Use a floorplan with regime = "steady", or sources.kind = "pulse"'
            )
        return self


class BitsSpec(_Table):
    """`[bits]`: the claim of a site of binary sensors, for a window, and how often a device reads.

    `shared` is how many sensors one person can change in a reading; by default all of the two zones that have most.
    """

    epsilon: Positive  # for a whole window; at most 300
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0  # 0 or above, below 1
    shared: Whole | None = None  # sensors that one person can change; by default those of the two largest zones
    window: Seconds = 3600.0  # seconds, or a text such as "1h"
    readings_per_window: Whole  # readings of one sensor that the guarantee covers together
    period: Period | None = None  # as under [privacy]
    late: Seconds | None = None  # as under [privacy]
    clock: Seconds = USUAL_CLOCK_MS / 1000  # as under [privacy]


class BitsSensorSpec(_Table):
    """`[[sensor]]` of a site of bits: its id, and the zone that it watches."""

    id: Name  # name, as in readings
    zone: Name  # the zone that it watches


class BitsZoneSpec(_Table):
    """`[[zone]]` of a site of bits: its id, and what people call it."""

    id: Name  # name
    label: Label | None = None  # name to display; by default the id


class PresenceSpec(_Table):
    """`[presence]`: how long someone stays in a zone, for which share of the time, and what a sensor sees then.

    `seen` are the probabilities that it reads 1 while nobody is there, and while someone is.
    """

    stay: Seconds = 1200.0  # how long someone usually stays
    share: Annotated[float, Field(gt=0, lt=1)] = 0.3  # share of the time that someone is there
    seen: Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=2, max_length=2)] = [0.0, 1.0]


class BitSiteSpec(_Table):
    """One installation of binary sensors."""

    name: Name
    bits: BitsSpec
    sensor: Annotated[list[BitsSensorSpec], Field(min_length=1)]
    zone: Annotated[list[BitsZoneSpec], Field(min_length=1)]
    presence: PresenceSpec = PresenceSpec()

    _distinct = field_validator("sensor", "zone")(distinct_ids)

    @model_validator(mode="after")
    def _watched(self) -> "BitSiteSpec":
        known = [zone.id for zone in self.zone]
        for sensor in self.sensor:
            if sensor.zone not in known:
                raise ValueError(
                    f'sensor "{sensor.id}": there is no [[zone]] with the id "{sensor.zone}". Zones: {", ".join(known)}'
                )
        return self
