"""The frozen plan of a site: the noise that its devices are provisioned with and its readings are recovered with.

Working out the noise takes time, and another machine may round differently. So it is worked out once and written to a
file, `site.plan.json` beside `site.toml`, and everyone who needs the noise reads it from there.
"""

import json
import math
import os
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from cloakwork.errors import CalibrationError, SiteError
from cloakwork.privacy import Cloak, NoiseTable, noise_table
from cloakwork.sensor import WORD_BYTES
from cloakwork.site.installation import Site, canonical_json, digest_of
from cloakwork.site.schedule import Schedule
from cloakwork.site.schema import Name, Number, Positive, Whole

VERSION = 1
PADDING = 1e-9  # noise that is added for machines that round differently, as a fraction
LARGEST_FILE = 50_000_000
MOST_SENSORS = 100_000
MOST_LEVELS = 16
LARGEST_TABLE = 1_000_000
_SLIP = 1e-11  # how far a ratio, which is rounded up to 40 bits, may be from sigma / step

Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=1, le=2**53 - 1)]
_STRICT = ConfigDict(strict=True, extra="forbid")


@dataclass(frozen=True)
class SiteClaim:
    """What the noise is for: the site's claim, for `window` seconds."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    epsilon: Positive
    delta: Positive
    alpha: Positive
    scope: Literal["network", "sensor"]
    window: Positive
    readings_per_window: Whole


@dataclass(frozen=True)
class PlannedSensor:
    """One sensor: noise, step and baseline in the unit of the readings; noise over step, and which table that takes."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    id: Name
    sigma: Positive
    step: Positive
    ratio: Positive
    table: Hex
    baseline: Number


@dataclass(frozen=True)
class PlannedTable:
    """One table of noise: its levels as (factor, cut points), its size on a device, and its error."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    ratio: Positive
    levels: Annotated[tuple[tuple[Count, Count], ...], Field(min_length=1, max_length=MOST_LEVELS)]
    bytes: Annotated[int, Field(ge=WORD_BYTES, le=LARGEST_TABLE)]
    error: Annotated[float, Field(ge=0, lt=1)]


@dataclass(frozen=True)
class Plan:
    """What was worked out for a site; `mu` is what a full window costs.

    Attributes
    ----------
    site, site_digest
        Name of the site, and what its site file said.
    claim, schedule
        What the noise is for, and when a device reads.
    sensors
        In the order of the model's rows.
    tables
        By their digest.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    site: Name
    site_digest: Hex
    claim: SiteClaim
    mu: Positive
    schedule: Schedule
    sensors: Annotated[tuple[PlannedSensor, ...], Field(min_length=1, max_length=MOST_SENSORS)]
    tables: Annotated[Mapping[Hex, PlannedTable], Field(min_length=1, max_length=MOST_SENSORS)]

    def __post_init__(self) -> None:
        if self.schedule.allowed != self.claim.readings_per_window or not self.schedule.covers(self.claim.window):
            raise SiteError("the schedule allows more readings in a window than the claim covers.")
        if len({sensor.id for sensor in self.sensors}) < len(self.sensors):
            raise SiteError("two sensors have the same id.")
        if {sensor.table for sensor in self.sensors} != set(self.tables):
            raise SiteError("the tables are not those that the sensors use.")
        for sensor in self.sensors:
            if not _alike(sensor.ratio, sensor.sigma / sensor.step, self.tables[sensor.table].ratio):
                raise SiteError(f'the ratio of sensor "{sensor.id}" is not that of its noise to its step.')
        if any(table.bytes != WORD_BYTES * sum(size for _, size in table.levels) for table in self.tables.values()):
            raise SiteError("a table has another size than its levels.")

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan, by which devices and readings refer to it."""
        return digest_of(self._values)

    def sensor(self, name: str) -> PlannedSensor:
        """The sensor of this id."""
        for sensor in self.sensors:
            if sensor.id == name:
                return sensor
        known = ", ".join(sensor.id for sensor in self.sensors[:10])
        raise SiteError(f"{self.site} has no sensor {name!r}. It has {known}{', ...' * (len(self.sensors) > 10)}.")

    def cloak(self, site: Site, *, file: str | Path = "PLAN") -> Cloak:
        """A new cloak with the frozen noise, its budget unspent; no search is made.

        Refused where the plan is not of this site as it is now; `file` is what such a message calls the plan.
        """
        again = f"Write the plan again with: {_command(site.source, file)}"
        if Path(file).name != plan_beside(site.source).name and Path(file).name.startswith(Path(site.source).stem):
            again = "It goes with the site file as it was then: use that one."
        if self.site != site.name:
            raise SiteError(f"{file} is the plan of {self.site}, and {site.source} is {site.name}. {again}")
        told = tuple((sensor.id, sensor.baseline) for sensor in self.sensors)
        if (
            self.site_digest != site.digest
            or self.claim != _claim(site)
            or told != _told(site)
            or self.schedule != site.schedule
        ):
            raise SiteError(f"{site.source}, or a file that it names, has changed since {file} was made. {again}")
        try:
            cloak = site.cloak_with(*(np.array([getattr(s, k) for s in self.sensors]) for k in ("sigma", "step")))
        except CalibrationError as problem:
            raise SiteError(f"{file}: {problem} {again}") from None
        if cloak.ratios.tolist() != [sensor.ratio for sensor in self.sensors]:
            raise SiteError(f"{file} has other ratios of noise to step than this version makes. {again}")
        for ratio, table in {sensor.ratio: sensor.table for sensor in self.sensors}.items():
            if noise_table(ratio).digest != table:
                raise SiteError(f"{file} has other tables of noise than this version makes. {again}")
        return cloak

    def write(self, path: str | Path) -> None:
        """Write the plan to a file, which is there whole or not at all."""
        target = Path(path).resolve()
        text = json.dumps(self._values | {"digest": self.digest}, indent=1, allow_nan=False) + "\n"
        if target.exists() and not target.is_file():  # a pipe or a device is written to as it is
            target.write_text(text, encoding="utf-8")
            return
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        with part.open("x", encoding="utf-8") as file:
            try:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                part.unlink(missing_ok=True)
                raise
        part.replace(target)

    @property
    def _values(self) -> dict[str, Any]:
        return {"v": VERSION, **asdict(self)}


def freeze(site: Site, cloak: Cloak) -> Plan:
    """The plan of a site with the noise of its cloak, a hair more of it so that it suffices on every machine."""
    if cloak.physics is not site.physics:
        raise SiteError(f"this cloak is not one of {site.name}. Make it with site.cloak().")
    frozen = site.cloak_with(cloak.sigmas * (1 + PADDING), cloak.steps)
    tables = {ratio: noise_table(ratio) for ratio in frozen.ratios.tolist()}
    columns = (frozen.sigmas.tolist(), frozen.steps.tolist(), frozen.ratios.tolist())
    sensors = tuple(
        PlannedSensor(name, sigma, step, ratio, tables[ratio].digest, baseline)
        for (name, baseline), sigma, step, ratio in zip(_told(site), *columns, strict=True)
    )
    return Plan(
        site=site.name,
        site_digest=site.digest,
        claim=_claim(site),
        mu=frozen.profile.mu,
        schedule=site.schedule,
        sensors=sensors,
        tables={table.digest: _planned(table) for table in tables.values()},
    )


def plan_beside(site_file: str | Path) -> Path:
    """Where the plan of a site file is kept.

    >>> plan_beside("sites/flat.toml").as_posix()
    'sites/flat.plan.json'
    """
    return Path(site_file).with_suffix(".plan.json")


def load_plan(path: str | Path) -> Plan:
    """Read a plan; refused unless it is whole and exactly as it was written."""
    file = Path(path)
    again = f"Write it again with: {_command('SITE', file)}"
    given = _read(file, again)
    if not isinstance(given, dict) or "v" not in given or not isinstance(given.get("digest"), str):
        raise SiteError(f"{file}: not a plan of Cloakwork. {again}")
    if given["v"] != VERSION or isinstance(given["v"], bool):
        raise SiteError(
            f"{file}: a plan of version {given['v']!r:.40}, where this Cloakwork reads version {VERSION}. Use the one "
            f"that wrote it. Or: {again}"
        )
    body = {key: value for key, value in given.items() if key not in {"v", "digest"}}
    if digest_of({"v": VERSION, **body}) != given["digest"]:
        raise SiteError(f"{file}: changed or damaged since it was written; its digest does not fit. {again}")
    try:
        plan = _PLAN.validate_json(canonical_json(body))
    except ValidationError as problem:
        raise SiteError(f"{file}: {_first(problem)}. {again}") from None
    if plan.digest != given["digest"]:
        raise SiteError(f"{file}: its numbers are not written as Cloakwork writes them. {again}")
    return plan


_PLAN: TypeAdapter[Plan] = TypeAdapter(Plan)


def _command(site: str, file: str | Path) -> str:
    return shlex.join(["cloakwork", "plan", site, "--out", str(file)])


def _read(file: Path, again: str) -> Any:
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise SiteError(f"{file}: larger than {LARGEST_FILE // 10**6} MB, which no plan is. {again}")
        text = file.read_text(encoding="utf-8")
    except OSError as problem:
        raise SiteError(f"{file}: {problem.strerror}. {again}") from None
    except UnicodeDecodeError:
        raise SiteError(f"{file}: not a text file in UTF-8. {again}") from None
    try:
        found = json.loads(text, object_pairs_hook=_once)
        canonical_json(found)  # refuses numbers that are not finite
    except (ValueError, RecursionError):
        raise SiteError(f"{file}: not valid JSON, or a number in it is not finite. {again}") from None
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, refused where it has a key twice: two readers could take it for two things."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


def _first(problem: ValidationError) -> str:
    """The first thing that is wrong, with where it is."""
    error = problem.errors(include_url=False, include_input=False)[0]
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).lstrip(".")
    said = error["msg"].removeprefix("Value error, ").rstrip(".")
    return f"{where}: {said}" if where else said


def _claim(site: Site) -> SiteClaim:
    told = site.spec.privacy
    return SiteClaim(told.epsilon, told.delta, told.alpha, told.scope, told.window, told.readings_per_window)


def _told(site: Site) -> tuple[tuple[str, float], ...]:
    return tuple(zip(site.sensor_ids, site.baselines.tolist(), strict=True))


def _planned(table: NoiseTable) -> PlannedTable:
    levels = tuple((level.factor, len(level.cuts) // WORD_BYTES) for level in table.levels)
    return PlannedTable(table.ratio, levels, len(table.cuts), table.error)


def _alike(*values: float) -> bool:
    return all(math.isclose(value, values[0], rel_tol=_SLIP) for value in values)
