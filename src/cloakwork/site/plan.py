"""The frozen plan of a site: the noise for provisioning its devices and recovering from their readings.

Computing the noise takes time, and another machine may round differently. So it is computed once and written to a file,
`site.plan.json` beside `site.toml`, from which all others read it.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from cloakwork._files import unique_object, write_durably
from cloakwork.errors import CalibrationError, PlanError, SiteError
from cloakwork.privacy import CUT_BITS, Budget, Cloak, NoiseLaw, flip_table, law_table, table_ratio
from cloakwork.sensor import WORD_BYTES
from cloakwork.site.installation import Site, canonical_json, digest_of
from cloakwork.site.plan_parts import (
    MOST_SENSORS,
    STRICT,
    Hex,
    PlannedBits,
    PlannedSensor,
    PlannedStay,
    PlannedTable,
    SensorNoise,
    SiteClaim,
)
from cloakwork.site.schedule import Schedule, clock_ms
from cloakwork.site.schema import Name, Positive

VERSION = 1
PADDING = 1e-9  # extra noise for machines that round differently, as a fraction
LARGEST_FILE = 50_000_000
_SLIP = 1e-11  # relative error of a ratio, which is rounded up to 40 bits


@dataclass(frozen=True)
class Plan:
    """The noise of a site; `mu` is the privacy cost of a full window."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    site: Name
    site_digest: Hex
    claim: SiteClaim
    mu: Positive
    schedule: Schedule
    # in the order of the model's rows
    sensors: Annotated[tuple[PlannedSensor, ...], Field(min_length=1, max_length=MOST_SENSORS)]
    # by their digest
    tables: Annotated[Mapping[Hex, PlannedTable], Field(min_length=1, max_length=MOST_SENSORS)]
    bits: PlannedBits | None = None
    stay: PlannedStay | None = None
    noise_law: Literal["laplace"] | None = None  # of the noise that the devices add; None for Gaussian noise

    def __post_init__(self) -> None:
        if self.schedule.allowed != self.claim.readings_per_window or not self.schedule.covers(self.claim.window):
            raise SiteError("the schedule allows more readings in a window than the claim covers.")
        if len(set(self.ids)) < len(self.ids):
            raise SiteError("two sensors have the same id.")
        if {sensor.table for sensor in self.sensors} != set(self.tables):
            raise SiteError("the noise tables are not those that the sensors use.")
        for sensor in self.sensors:
            if not _alike(sensor.ratio, sensor.sigma / sensor.step, self.tables[sensor.table].ratio):
                raise SiteError(f'the ratio of sensor "{sensor.id}" is not its noise over its step.')
        if self.stay is not None and {len(self.stay.ratios), len(self.stay.tables)} != {len(self.sensors)}:
            raise SiteError("there is not one slow offset for each sensor.")
        if any(table.bytes != WORD_BYTES * sum(size for _, size in table.levels) for table in self.tables.values()):
            raise SiteError("the size of a noise table is not that of its levels.")

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan, by which devices and readings refer to it."""
        return digest_of(self._values)

    @property
    def id(self) -> str:
        """The first 12 characters of the digest, by which people and files of readings name the plan."""
        return self.digest[:12]

    @property
    def law(self) -> NoiseLaw:
        """The law of the noise that the devices add."""
        return NoiseLaw(self.noise_law or NoiseLaw.GAUSSIAN)

    @property
    def binary_ids(self) -> tuple[str, ...]:
        """Ids of the binary sensors."""
        return () if self.bits is None else self.bits.ids

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all sensors, binary ones last."""
        return (*(sensor.id for sensor in self.sensors), *self.binary_ids)

    def noise(self, sensor_id: str) -> SensorNoise:
        """Return what the device of a sensor does to its readings; refused if this version makes another table."""
        if self.bits is not None and sensor_id in self.bits.ids:
            return SensorNoise(flip_table(int(self.bits.words, 16)), 1.0, 0, 0.0, values=2)
        planned = self.sensor(sensor_id)
        table, slow, made = law_table(self.law, planned.ratio), None, True
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
        return SensorNoise(table, planned.step, fallback, planned.own_noise, slow=slow)

    def sensor(self, sensor_id: str) -> PlannedSensor:
        """Return the sensor of the physics that has this id."""
        for sensor in self.sensors:
            if sensor.id == sensor_id:
                return sensor
        if sensor_id in self.binary_ids:
            raise SiteError(f"{sensor_id} is a binary sensor, and no part of the physics.", sensor=sensor_id)
        known = ", ".join(self.ids[:10])
        more = ", ..." if len(self.ids) > 10 else ""
        raise SiteError(f"{self.site} has no sensor {sensor_id!r}. It has {known}{more}.", sensor=sensor_id)

    def cloak(self, site: Site, *, file: str | Path = "PLAN") -> Cloak:
        """Make a new cloak with the frozen noise, its budget unspent; no search is made.

        Refuses a plan that is not of this site as it is now; errors call the plan `file`.
        """
        name = Path(file).name
        kept = name != plan_beside(site.source).name and name.startswith(Path(site.source).stem)

        def refusal(reason: str, text: str) -> PlanError:
            use = " It fits the site file as it was then: use that one." if kept and reason != "site" else ""
            rewrite = not kept and reason != "site"  # nobody may write over the plan of another site
            return PlanError(f"{text}{use}", reason=reason, plan=str(file), site=site.source, rewrite=rewrite)

        if self.site != site.name:
            raise refusal("site", f"{file} is the plan of {self.site}, and {site.source} is {site.name}: give its own.")
        if (
            self.site_digest != site.digest
            or self.claim != _claim(site)
            or tuple((sensor.id, sensor.baseline) for sensor in self.sensors) != _sensors(site)
            or self.schedule != site.schedule
            or self.binary_ids != site.binary_ids
            or (self.stay is None) != (site.stay is None)
        ):
            raise refusal("changed", f"{site.source}, or a file that it names, has changed since {file} was made.")
        try:
            sigmas, steps = (np.array([getattr(s, k) for s in self.sensors]) for k in ("sigma", "step"))
            slow = None if self.stay is None else self.stay.slow
            cloak = site.cloak_with(sigmas, steps, slow, noise=self.law)
        except CalibrationError as problem:
            raise refusal("noise", f"{file}: {problem}") from None
        if self.bits is not None and site.flip is not None and int(self.bits.words, 16) < site.flip.words:
            raise refusal("noise", f"{file} flips bits less often than the claim needs.")
        if cloak.ratios.tolist() != [sensor.ratio for sensor in self.sensors]:
            raise refusal("ratio", f"{file} has other ratios of noise to step than this version makes.")
        for ratio, table in {sensor.ratio: sensor.table for sensor in self.sensors}.items():
            if law_table(self.law, ratio).digest != table:
                raise refusal("table", f"{file} has other noise tables than this version makes.")
        return cloak

    def budget(self, cloak: Cloak, seconds: float) -> Budget:
        """All readings of the site in so many seconds: each hides a move, and those of binary sensors all they saw.

        A claim for single sensors is about each; the claims of all sensors add up.
        """
        readings = self.schedule.most(clock_ms(seconds))
        budget = Budget().cloak(cloak, readings=readings * cloak.observers)
        if self.bits is None:
            return budget
        other = int(self.bits.words, 16) / 2.0**CUT_BITS
        each = math.log((1 - other) / other) * (1 + 1e-12)
        return budget.choice(each, times=readings * self.bits.shared)

    def write(self, path: str | Path) -> None:
        """Write the plan to a file, as a whole or not at all."""
        target = Path(path).resolve()
        text = json.dumps(self._values | {"digest": self.digest}, indent=1, allow_nan=False) + "\n"
        if target.exists() and not target.is_file():  # a pipe or a device
            target.write_text(text, encoding="utf-8")
            return
        write_durably(target, text.encode())

    @property
    def _values(self) -> dict[str, Any]:
        values = {"v": VERSION, **asdict(self)}
        return {key: value for key, value in values.items() if value is not None}


def freeze(site: Site, cloak: Cloak) -> Plan:
    """Freeze the noise of a site's cloak as a plan, with a tiny surplus so that it suffices on every machine."""
    if cloak.physics is not site.physics:
        raise SiteError(f"this cloak is not one of {site.name}. Make it with site.cloak().", site=site.name)
    slow = cloak.slow
    if slow is not None:
        slow = replace(slow, ratios=np.array([table_ratio(ratio * (1 + 2 * PADDING)) for ratio in slow.ratios]))
    frozen = site.cloak_with(cloak.sigmas * (1 + PADDING), cloak.steps, slow, noise=cloak.noise)
    tables = {ratio: law_table(cloak.noise, ratio) for ratio in frozen.ratios.tolist()}
    own = site.own_noises if frozen.rests_on_own_noise and site.own_noises is not None else np.zeros_like(frozen.sigmas)
    columns = (frozen.sigmas.tolist(), frozen.steps.tolist(), frozen.ratios.tolist(), own.tolist())
    sensors = tuple(
        PlannedSensor(sensor_id, sigma, step, ratio, tables[ratio].digest, baseline, noise)
        for (sensor_id, baseline), sigma, step, ratio, noise in zip(_sensors(site), *columns, strict=True)
    )
    return Plan(
        site=site.name,
        site_digest=site.digest,
        claim=_claim(site),
        mu=frozen.profile.mu,
        schedule=site.schedule,
        sensors=sensors,
        tables={table.digest: PlannedTable.of(table) for table in tables.values()},
        bits=_planned_bits(site),
        stay=_planned_stay(site, frozen),
        noise_law="laplace" if cloak.noise is NoiseLaw.LAPLACE else None,
    )


def plan_beside(site_file: str | Path) -> Path:
    """Return where the plan of a site file is kept.

    >>> plan_beside("sites/flat.toml").as_posix()
    'sites/flat.plan.json'
    """
    return Path(site_file).with_suffix(".plan.json")


def load_plan(path: str | Path) -> Plan:
    """Read a plan; refuses one that is not complete and exactly as it was written."""

    def refusal(reason: str, text: str, **values: object) -> PlanError:
        return PlanError(f"{path}: {text}", reason=reason, plan=str(path), site=None, rewrite=True, **values)

    try:
        content = _read_json(Path(path))
    except ValueError as problem:
        raise refusal("file", str(problem)) from None
    if not isinstance(content, dict) or "v" not in content or not isinstance(content.get("digest"), str):
        raise refusal("form", "not a plan of Cloakwork.")
    if content["v"] != VERSION or isinstance(content["v"], bool):
        raise refusal(
            "version",
            f"a plan of version {content['v']!r:.40}, but this Cloakwork reads version {VERSION}. Use the one that "
            "wrote it.",
        )
    body = {key: value for key, value in content.items() if key not in {"v", "digest"}}
    if digest_of({"v": VERSION, **body}) != content["digest"]:
        raise refusal("digest", "changed or damaged since it was written; its digest does not fit.")
    try:
        plan = _PLAN.validate_json(canonical_json(body))
    except ValidationError as problem:
        key, message = _first_error(problem)
        raise refusal("content", f"{key}: {message}." if key else f"{message}.", key=key) from None
    if plan.digest != content["digest"]:
        raise refusal("numbers", "its numbers are not written as Cloakwork writes them.")
    return plan


_PLAN: TypeAdapter[Plan] = TypeAdapter(Plan)


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


def _claim(site: Site) -> SiteClaim:
    return SiteClaim(**{field.name: getattr(site.spec.privacy, field.name) for field in fields(SiteClaim)})


def _planned_bits(site: Site) -> PlannedBits | None:
    """Freeze how often bits flip, with a tiny surplus like that of the noise; never more often than not."""
    flip = site.flip
    if flip is None:
        return None
    words = min(math.ceil(flip.words * Fraction(1 + PADDING)), 1 << (CUT_BITS - 1))
    return PlannedBits(site.binary_ids, flip.epsilon, flip.delta, flip.sensors, f"{words:032x}")


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


def _sensors(site: Site) -> tuple[tuple[str, float], ...]:
    """Id and baseline of each sensor."""
    return tuple(zip(site.sensor_ids, site.baselines.tolist(), strict=True))


def _alike(*values: float) -> bool:
    return all(math.isclose(value, values[0], rel_tol=_SLIP) for value in values)
