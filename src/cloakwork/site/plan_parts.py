"""What both kinds of frozen plans have, and their parts."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Field

from cloakwork._files import write_durably
from cloakwork.errors import PlanError, SiteError
from cloakwork.privacy import NoiseTable, SlowNoise
from cloakwork.sensor import WORD_BYTES
from cloakwork.site.bit_site import BitSite
from cloakwork.site.installation import Site, digest_of
from cloakwork.site.map_forecast import Forecast
from cloakwork.site.schedule import Schedule
from cloakwork.site.schema import Name, NotNegative, Number, Positive, Whole

VERSION = 1
MAX_SENSORS = 100_000
MAX_LEVELS = 16
LARGEST_TABLE = 1_000_000

Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=1, le=2**53 - 1)]
STRICT = ConfigDict(strict=True, extra="forbid")


@dataclass(frozen=True)
class SiteClaim:
    """The privacy claim that the noise meets, for `window` seconds."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    epsilon: Positive
    delta: Annotated[float, Field(ge=0, lt=1)]
    alpha: Positive
    scope: Literal["network", "sensor"]
    window: Positive
    readings_per_window: Whole


@dataclass(frozen=True)
class PlannedSensor:
    """One sensor: noise, step and baseline in the unit of the readings; noise over step, and the table for that.

    `noise_floor` is the noise that the claim needs the sensor to have before its hardware rounds, 0 if it needs none.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    id: Name
    sigma: Positive
    step: Positive
    ratio: Positive
    table: Hex
    baseline: Number
    noise_floor: NotNegative


@dataclass(frozen=True)
class BitsClaim:
    """The claim of a site of bits for `window` seconds; one person changes up to `shared` sensors in a reading."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    epsilon: Positive
    delta: Annotated[float, Field(ge=0, lt=1)]
    shared: Whole
    window: Positive
    readings_per_window: Whole


@dataclass(frozen=True)
class PlannedStay:
    """The claim for stays of up to `readings` frames, and the slow offsets that meet it.

    An offset is renewed every `renew` readings: `carry` 65536ths of it are left, and a draw is added. `ratios` are the
    standard deviations of each sensor's draws in 256ths of its step, and `tables` the digests of their tables.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    length: Positive
    readings: Whole
    epsilon: Positive
    delta: Positive
    mu: Positive
    renew: Whole
    carry: Whole
    ratios: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=MAX_SENSORS)]
    tables: Annotated[tuple[Hex, ...], Field(min_length=1, max_length=MAX_SENSORS)]

    @property
    def slow(self) -> SlowNoise:
        """The slow offsets."""
        return SlowNoise(self.carry, self.renew, np.array(self.ratios))


@dataclass(frozen=True)
class SensorNoise:
    """How a device cloaks a reading: it counts steps, and adds a draw from a table; modulo `values` unless that is 0.

    `fallback` is what it takes in place of a reading that fails, in steps. `slow` is what it does to its offset, of the
    one sensor; None if it has none.
    """

    table: NoiseTable
    step: float
    fallback: int
    noise_floor: float
    values: int = 0
    slow: SlowNoise | None = None


@dataclass(frozen=True)
class PlannedTable:
    """One noise table: its levels as (factor, cut points), its size on a device, and its error."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    ratio: Positive
    levels: Annotated[tuple[tuple[Count, Count], ...], Field(min_length=1, max_length=MAX_LEVELS)]
    bytes: Annotated[int, Field(ge=WORD_BYTES, le=LARGEST_TABLE)]
    error: Annotated[float, Field(ge=0, lt=1)]

    @classmethod
    def of(cls, table: NoiseTable) -> "PlannedTable":
        """Describe a noise table."""
        return cls(
            table.ratio, tuple((level.factor, level.count) for level in table.levels), len(table.cuts), table.error
        )


class FrozenPlan(ABC):
    """The noise of a site as it was frozen: for provisioning devices, and for reading what they send.

    `ids` are the sensors, in the order of their rows.
    """

    site: str
    site_digest: str
    claim: SiteClaim | BitsClaim
    schedule: Schedule
    forecast: Forecast | None = None

    def __post_init__(self) -> None:
        if self.schedule.allowed != self.claim.readings_per_window or not self.schedule.covers(self.claim.window):
            raise SiteError("the schedule allows more readings in a window than the claim covers.")
        if len(set(self.ids)) < len(self.ids):
            raise SiteError("two sensors have the same id.")

    @property
    @abstractmethod
    def ids(self) -> tuple[str, ...]: ...

    @property
    def window(self) -> float:
        """The seconds that the claim is for."""
        return self.claim.window

    @property
    @abstractmethod
    def together(self) -> bool:
        """Whether the claim takes all sensors to measure together."""

    @property
    @abstractmethod
    def steps(self) -> Mapping[str, float]:
        """The step in which each sensor reports."""

    @abstractmethod
    def noise(self, sensor_id: str) -> SensorNoise:
        """Return what the device of a sensor does to its readings."""

    @abstractmethod
    def check(self, site: Site | BitSite, *, file: str | Path = "PLAN") -> None:
        """Refuse a site that the plan does not fit, as it is now; errors call the plan `file`."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan, by which devices and readings refer to it."""
        return digest_of(self._values)

    @property
    def id(self) -> str:
        """The first 12 characters of the digest, by which people and files of readings name the plan."""
        return self.digest[:12]

    def write(self, path: str | Path) -> None:
        """Write the plan to a file, as a whole or not at all."""
        target = Path(path).resolve()
        forecast = {} if self.forecast is None else {"forecast": asdict(self.forecast)}
        text = json.dumps(self._values | {"digest": self.digest} | forecast, indent=1, allow_nan=False) + "\n"
        if target.exists() and not target.is_file():  # a pipe or a device
            target.write_text(text, encoding="utf-8")
            return
        write_durably(target, text.encode())

    @property
    def _values(self) -> dict[str, Any]:
        values = {"v": VERSION, **asdict(self)}  # type: ignore[call-overload]  # each final plan is a dataclass
        values.pop("forecast", None)  # devices do not rest on it: it has no part in the digest
        return {key: value for key, value in values.items() if value is not None}

    def _check_name(self, site: Site | BitSite, file: str | Path) -> None:
        if self.site != site.name:
            raise self._refusal(
                site,
                file,
                "site",
                f"{file} is the plan of {self.site}, and {site.source} is {site.name}: give its own.",
            )

    def _changed(self, site: Site | BitSite, file: str | Path) -> PlanError:
        return self._refusal(
            site, file, "changed", f"{site.source}, or a file that it names, has changed since {file} was made."
        )

    def _refusal(self, site: Site | BitSite, file: str | Path, reason: str, text: str) -> PlanError:
        name = Path(file).name
        kept = name != plan_beside(site.source).name and name.startswith(Path(site.source).stem)
        use = " It fits the site file as it was then: use that one." if kept and reason != "site" else ""
        rewrite = not kept and reason != "site"  # nobody may write over the plan of another site
        return PlanError(f"{text}{use}", reason=reason, plan=str(file), site=site.source, rewrite=rewrite)


def plan_beside(site_file: str | Path) -> Path:
    """Return where the plan of a site file is kept.

    >>> plan_beside("sites/flat.toml").as_posix()
    'sites/flat.plan.json'
    """
    return Path(site_file).with_suffix(".plan.json")
