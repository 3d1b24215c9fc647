"""The parts of a frozen plan, as its file has them, and what a device needs of it."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Field

from cloakwork.privacy import NoiseTable, SlowNoise
from cloakwork.sensor import WORD_BYTES
from cloakwork.site.schema import Name, NotNegative, Number, Positive, Whole

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
class BitsClaim:
    """The claim of a site of bits for `window` seconds; one person changes up to `shared` sensors in a reading."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    epsilon: Positive
    delta: Annotated[float, Field(ge=0, lt=1)]
    shared: Whole
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
        levels = tuple((level.factor, level.count) for level in table.levels)
        return cls(table.ratio, levels, len(table.cuts), table.error)


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
