"""The frozen plan of a site: the noise for provisioning its devices and recovering from their readings.

Computing the noise takes time, and another machine may round differently. So it is computed once and written to a file,
`site.plan.json` next to `site.toml`, from which all others read it.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from cloakwork._files import unique_object, write_durably
from cloakwork.errors import CalibrationError, PlanError, SiteError
from cloakwork.privacy import CUT_BITS, Cloak, NoiseLaw, flip_table, table_ratio
from cloakwork.sensor import WORD_BYTES
from cloakwork.site.bit_site import BitSite
from cloakwork.site.installation import Site, canonical_json, digest_of
from cloakwork.site.map_forecast import Forecast
from cloakwork.site.plan_parts import (
    MAX_SENSORS,
    STRICT,
    BitsClaim,
    Hex,
    PlannedSensor,
    PlannedStay,
    PlannedTable,
    SensorNoise,
    SiteClaim,
)
from cloakwork.site.schedule import Schedule
from cloakwork.site.schema import Name, Positive

VERSION = 1
PADDING = 1e-9  # extra noise for machines that round differently, as a fraction
SURPLUS = Fraction(1, 10**9)  # more flips, for the same reason
LARGEST_FILE = 50_000_000
_SLIP = 1e-11  # relative error of a ratio, which is rounded up to 40 bits


class FrozenPlan(ABC):
    """What the plans of sites of readings and of bits have in common; `ids` are the sensors in the order of rows."""

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
    @abstractmethod
    def steps(self) -> Mapping[str, float]:
        """The step in which each sensor reports."""

    @abstractmethod
    def noise(self, sensor_id: str) -> SensorNoise:
        """Return what the device of a sensor does to its readings."""

    @abstractmethod
    def check(self, site: Site | BitSite, *, file: str | Path = "PLAN") -> None:
        """Refuse a site that the plan does not fit, as it is now; errors call the plan `file`."""

    @property
    def together(self) -> bool:
        """Whether the claim takes all sensors to measure at the same time, as one person may change several."""
        return True

    @property
    def window(self) -> float:
        """The seconds that the claim is for."""
        return self.claim.window

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

    def _check_site(self, site: Site | BitSite, file: str | Path) -> None:
        """Refuse another site, and a site file that says something else than when the plan was made."""
        if self.site != site.name:
            text = f"{file} is the plan of {self.site}, and {site.source} is {site.name}: give its own."
            raise self._refusal(site, file, "site", text)
        frozen = (self.site_digest, self.claim, self.schedule, self.ids)
        if frozen != (site.digest, site.claim, site.schedule, site.sensor_ids):
            text = f"{site.source}, or a file that it names, has changed since {file} was made."
            raise self._refusal(site, file, "changed", text)

    def _refusal(self, site: Site | BitSite, file: str | Path, reason: str, text: str) -> PlanError:
        name = Path(file).name
        kept = name != plan_beside(site.source).name and name.startswith(Path(site.source).stem)
        use = " It fits the site file as it was then: use that one." if kept and reason != "site" else ""
        rewrite = not kept and reason != "site"  # nobody may write over the plan of another site
        return PlanError(f"{text}{use}", reason=reason, plan=str(file), site=site.source, rewrite=rewrite)


@dataclass(frozen=True)
class Plan(FrozenPlan):
    """The noise of a site of readings; `mu` is the privacy cost of a full window."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    site: Name
    site_digest: Hex
    claim: SiteClaim
    mu: Positive
    schedule: Schedule
    # in the order of the model's rows
    sensors: Annotated[tuple[PlannedSensor, ...], Field(min_length=1, max_length=MAX_SENSORS)]
    # by their digest
    tables: Annotated[Mapping[Hex, PlannedTable], Field(min_length=1, max_length=MAX_SENSORS)]
    stay: PlannedStay | None = None
    noise_law: Literal["laplace"] | None = None  # of the noise that the devices add; None for Gaussian noise
    forecast: Forecast | None = field(default=None, compare=False)  # what a simulation said of the map

    def __post_init__(self) -> None:
        super().__post_init__()
        if {sensor.table for sensor in self.sensors} != set(self.tables):
            raise SiteError("the noise tables are not those that the sensors use.")
        for sensor in self.sensors:
            ratios = (sensor.sigma / sensor.step, self.tables[sensor.table].ratio)
            if not all(math.isclose(sensor.ratio, ratio, rel_tol=_SLIP) for ratio in ratios):
                raise SiteError(f'the ratio of sensor "{sensor.id}" is not its noise over its step.')
        if self.stay is not None and {len(self.stay.ratios), len(self.stay.tables)} != {len(self.sensors)}:
            raise SiteError("there is not one slow offset for each sensor.")
        if any(table.bytes != WORD_BYTES * sum(size for _, size in table.levels) for table in self.tables.values()):
            raise SiteError("the size of a noise table is not that of its levels.")

    @property
    def law(self) -> NoiseLaw:
        """The law of the noise that the devices add."""
        return NoiseLaw(self.noise_law or NoiseLaw.GAUSSIAN)

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the sensors."""
        return tuple(sensor.id for sensor in self.sensors)

    @property
    def together(self) -> bool:
        """Whether the claim is about all sensors."""
        return self.claim.scope != "sensor"

    @property
    def steps(self) -> Mapping[str, float]:
        """The step in which each sensor reports, in the unit of the readings."""
        return {sensor.id: sensor.step for sensor in self.sensors}

    def noise(self, sensor_id: str) -> SensorNoise:
        """Return what the device of a sensor does to its readings; refused if this version makes another table."""
        planned = self.sensor(sensor_id)
        table, slow, made = self.law.distribution.table(planned.ratio), None, True
        if self.stay is not None:
            row = self.sensors.index(planned)
            slow = replace(self.stay.slow, ratios=np.array(self.stay.ratios[row : row + 1]))
            made = slow.tables()[0].digest == self.stay.tables[row]
        if table.digest != planned.table or not made:
            raise SiteError(
                f"the plan has another noise table for sensor {sensor_id} than this version of Cloakwork makes. Use "
                "the version that wrote the plan, or write it again.",
                sensor=sensor_id,
            )
        fallback = round(Fraction(planned.baseline) / Fraction(planned.step))
        return SensorNoise(table, planned.step, fallback, planned.noise_floor, slow=slow)

    def sensor(self, sensor_id: str) -> PlannedSensor:
        """Return the sensor of the physics that has this id."""
        for sensor in self.sensors:
            if sensor.id == sensor_id:
                return sensor
        known = ", ".join(self.ids[:10])
        more = ", ..." if len(self.ids) > 10 else ""
        raise SiteError(f"{self.site} has no sensor {sensor_id!r}. It has {known}{more}.", sensor=sensor_id)

    def check(self, site: Site | BitSite, *, file: str | Path = "PLAN") -> None:
        """Refuse a site that the plan does not fit, as it is now; errors call the plan `file`."""
        self._check_site(site, file)
        if isinstance(site, Site):
            self.cloak(site, file=file)

    def cloak(self, site: Site, *, file: str | Path = "PLAN") -> Cloak:
        """Make a new cloak with the frozen noise, its budget unspent; no search is made.

        Refuses a plan that is not of this site as it is now; errors call the plan `file`.
        """
        self._check_site(site, file)
        refusal = partial(self._refusal, site, file)
        try:
            sigmas, steps = (np.array([getattr(s, k) for s in self.sensors]) for k in ("sigma", "step"))
            slow = None if self.stay is None else self.stay.slow
            cloak = site.cloak_with(sigmas, steps, slow)
        except CalibrationError as problem:
            raise refusal("noise", f"{file}: {problem}") from None
        if cloak.ratios.tolist() != [sensor.ratio for sensor in self.sensors]:
            raise refusal("ratio", f"{file} has other ratios of noise to step than this version makes.")
        for ratio, table in {sensor.ratio: sensor.table for sensor in self.sensors}.items():
            if self.law.distribution.table(ratio).digest != table:
                raise refusal("table", f"{file} has other noise tables than this version makes.")
        return cloak


@dataclass(frozen=True)
class BitPlan(FrozenPlan):
    """The randomised response of a site: how many of all 2^127 words flip a bit, in hexadecimal."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    site: Name
    site_digest: Hex
    claim: BitsClaim
    schedule: Schedule
    sensors: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MAX_SENSORS)]
    words: Annotated[str, Field(pattern=r"^([0-3][0-9a-f]{31}|40{31})$")]

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the sensors."""
        return self.sensors

    @property
    def steps(self) -> Mapping[str, float]:
        """Bits are reported as 0 and 1."""
        return dict.fromkeys(self.sensors, 1.0)

    @property
    def other(self) -> float:
        """Probability that a report is false."""
        return int(self.words, 16) / 2.0**CUT_BITS

    @property
    def each(self) -> float:
        """Epsilon of one report, rounded up."""
        return math.log((1 - self.other) / self.other) * (1 + 1e-12)

    def noise(self, sensor_id: str) -> SensorNoise:
        """Return what the device of a sensor does to its bits."""
        if sensor_id not in self.sensors:
            raise SiteError(f"{self.site} has no sensor {sensor_id!r}.", sensor=sensor_id)
        return SensorNoise(flip_table(int(self.words, 16)), 1.0, 0, 0.0, values=2)

    def check(self, site: Site | BitSite, *, file: str | Path = "PLAN") -> None:
        """Refuse a site that the plan does not fit, as it is now; errors call the plan `file`."""
        self._check_site(site, file)
        if isinstance(site, BitSite) and int(self.words, 16) < site.flip.words:
            raise self._refusal(site, file, "noise", f"{file} flips bits less often than the claim needs.")


def freeze(site: Site, cloak: Cloak) -> Plan:
    """Freeze the noise of a site's cloak as a plan, with a tiny surplus so that it suffices on every machine."""
    if cloak.physics is not site.physics:
        raise SiteError(f"this cloak is not one of {site.name}. Make it with site.cloak().", site=site.name)
    slow = cloak.slow
    if slow is not None:
        slow = replace(slow, ratios=np.array([table_ratio(ratio * (1 + 2 * PADDING)) for ratio in slow.ratios]))
    frozen = site.cloak_with(cloak.sigmas * (1 + PADDING), cloak.steps, slow)
    tables = {ratio: cloak.distribution.table(ratio) for ratio in frozen.ratios.tolist()}
    floors = site.noise_floors if frozen.rests_on_noise_floor else None
    columns = (
        frozen.sigmas,
        frozen.steps,
        frozen.ratios,
        site.baselines,
        np.zeros_like(frozen.sigmas) if floors is None else floors,
    )
    sensors = tuple(
        PlannedSensor(sensor_id, sigma, step, ratio, tables[ratio].digest, baseline, floor)
        for sensor_id, sigma, step, ratio, baseline, floor in zip(
            site.sensor_ids, *(column.tolist() for column in columns), strict=True
        )
    )
    return Plan(
        site=site.name,
        site_digest=site.digest,
        claim=site.claim,
        mu=frozen.profile.mu,
        schedule=site.schedule,
        sensors=sensors,
        tables={table.digest: PlannedTable.of(table) for table in tables.values()},
        stay=_planned_stay(site, frozen),
        noise_law="laplace" if cloak.noise is NoiseLaw.LAPLACE else None,
    )


def _planned_stay(site: Site, cloak: Cloak) -> PlannedStay | None:
    stated, stay, slow = site.spec.privacy.stay, cloak.stay, cloak.slow
    if stated is None or stay is None or slow is None:
        return None
    return PlannedStay(
        stated.length,
        stay.readings,
        stay.epsilon,
        stay.delta,
        cloak.stay_mu(stay.readings),
        slow.renew,
        slow.carry,
        tuple(slow.ratios.tolist()),
        tuple(table.digest for table in slow.tables()),
    )


def freeze_bits(site: BitSite) -> BitPlan:
    """Freeze how often the bits of a site flip, with a tiny surplus; never more often than not."""
    words = min(math.ceil(site.flip.words * (1 + SURPLUS)), 1 << (CUT_BITS - 1))
    return BitPlan(site.name, site.digest, site.claim, site.schedule, site.sensor_ids, f"{words:032x}")


def plan_beside(site_file: str | Path) -> Path:
    """Return where the plan of a site file is kept.

    >>> plan_beside("sites/flat.toml").as_posix()
    'sites/flat.plan.json'
    """
    return Path(site_file).with_suffix(".plan.json")


def load_plan(path: str | Path) -> Plan:
    """Read the plan of a site of readings."""
    plan = load_any_plan(path)
    if isinstance(plan, BitPlan):
        raise SiteError(
            f"{path}: the plan of a site of bits. This needs the plan of a site of readings.", path=str(path)
        )
    return plan


def load_any_plan(path: str | Path) -> Plan | BitPlan:
    """Read a plan, of readings or of bits; refuses one that is not complete and exactly as it was written."""

    def refusal(reason: str, text: str, **values: object) -> PlanError:
        return PlanError(f"{path}: {text}", reason=reason, plan=str(path), site=None, rewrite=True, **values)

    try:
        content = _read_json(Path(path))
    except ValueError as problem:
        raise refusal("file", str(problem)) from None
    if not isinstance(content, dict) or "v" not in content or not isinstance(content.get("digest"), str):
        raise refusal("form", "not a plan of Cloakwork.")
    if content["v"] != VERSION or isinstance(content["v"], bool):
        text = f"a plan of version {content['v']!r:.40}, but this Cloakwork reads version {VERSION}."
        raise refusal("version", f"{text} Use the one that wrote it.")
    body = {key: value for key, value in content.items() if key not in {"v", "digest"}}
    promised = {key: value for key, value in content.items() if key not in {"digest", "forecast"}}
    if digest_of(promised) != content["digest"]:
        raise refusal("digest", "changed or damaged since it was written; its digest does not fit.")
    try:
        plan = (_BIT_PLAN if "words" in body else _PLAN).validate_json(canonical_json(body))
    except ValidationError as problem:
        key, message = _first_error(problem)
        raise refusal("content", f"{key}: {message}." if key else f"{message}.", key=key) from None
    if plan.digest != content["digest"]:
        raise refusal("numbers", "its numbers are not written as Cloakwork writes them.")
    return plan


_PLAN: TypeAdapter[Plan] = TypeAdapter(Plan)
_BIT_PLAN: TypeAdapter[BitPlan] = TypeAdapter(BitPlan)


def _read_json(file: Path) -> Any:
    """Return the content of a JSON file; raises ValueError with a sentence if there is none."""
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise ValueError(f"larger than {LARGEST_FILE // 10**6} MB, which no plan is.")
        text = file.read_text(encoding="utf-8")
    except OSError as problem:
        raise ValueError(f"{problem.strerror}.") from None
    except UnicodeDecodeError:
        raise ValueError("not a text file in UTF-8.") from None
    try:
        content = json.loads(text, object_pairs_hook=unique_object)
        canonical_json(content)  # refuses numbers that are not finite
    except (ValueError, RecursionError):
        raise ValueError("not valid JSON, or a number in it is not finite.") from None
    return content


def _first_error(problem: ValidationError) -> tuple[str, str]:
    """Return the key and the message of the first error; an error of the plan as a whole has no key."""
    error = problem.errors(include_url=False, include_input=False)[0]
    parts = (part for part in error["loc"] if isinstance(part, int) or "[" not in part)  # without the types of a union
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".")
    return key, error["msg"].removeprefix("Value error, ").rstrip(".")
