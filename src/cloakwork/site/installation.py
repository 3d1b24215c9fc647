"""One installation: a validated site file with its model, zones, schedule, cloak and estimator."""

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.errors import CalibrationError, SiteError
from cloakwork.physics import Drift, Nuisance, Physics, Timing, Tolerance
from cloakwork.privacy import Assumptions, Cloak, Hardware, SlowNoise, Stay
from cloakwork.recovery import MAX_COARSE, Motion, PointSources, samples_locally
from cloakwork.site.advice import Advice
from cloakwork.site.build import USUAL_COUNT, EstimatorChoice, build, choose_estimator, make_drift, make_motion
from cloakwork.site.plan_parts import SiteClaim
from cloakwork.site.schedule import Schedule, clock_ms, make_schedule
from cloakwork.site.schema import BitsSpec, OwnSpec, PrivacySpec, SiteSpec
from cloakwork.site.zones import Zone, make_zones

OFTEN_MS = 10_000  # a site that reads more often has less time for each frame
SHORTEST_HOLD = 30.0  # seconds
HELD_PERIODS = 2
WALKING_SPEED = 1.5  # metres per second
_STATE_MEMORY = (
    "Set memory = true under [physics.tolerance]; or memory = false for sensors that see people directly, such as "
    "thermal arrays."
)
_ALONE = ("zone", "motion", "entrance", "drift", "heat")
_BESIDE: dict[str, Any] = dict.fromkeys(_ALONE, True) | {"sensor": {"__all__": {"map_error"}}}
NO_PART_IN_THE_CLAIM: dict[str, Any] = _BESIDE | {"physics": {"lag"}}


@dataclass(frozen=True, eq=False)
class Site:
    """A validated file of a site of readings; the model and the cloak are built on first use.

    >>> from importlib.resources import files
    >>> from cloakwork.site import load_site
    >>> len(load_site(str(files("cloakwork.site") / "example.toml")).sensor_ids)
    80
    """

    spec: SiteSpec
    folder: Path
    source: str = "SITE"
    """Name of the site file, for messages."""
    run_code: bool = False
    """Whether the file of a model of the site's own may be run."""

    def __repr__(self) -> str:
        return f"Site({self.name!r}, from {self.source})"

    @property
    def name(self) -> str:
        """The site's name."""
        return self.spec.name

    @cached_property
    def physics(self) -> Physics:
        """The model of how sources become readings here."""
        return build(self.spec, self.folder, run_code=self.run_code)

    def build(self) -> None:
        """Build the model with its zones and the motion in it; refuses what cannot be."""
        _ = self.physics, self.spec.zone and self.zones, self.motion, self.drift, self.stay

    @cached_property
    def sensor_ids(self) -> tuple[str, ...]:
        """Names of the sensors, in the order of the model's rows."""
        number = self.physics.sensors
        digits = len(str(number))
        return tuple(s.id for s in self.spec.sensor) or tuple(f"s{k:0{digits}d}" for k in range(1, number + 1))

    @cached_property
    def baselines(self) -> FloatArray:
        """The reading of each sensor with no source near, shape (m,)."""
        default = self.spec.baseline
        if not self.spec.sensor:
            return np.full(self.physics.sensors, default)
        return np.array([default if s.baseline is None else s.baseline for s in self.spec.sensor])

    @property
    def map_errors(self) -> FloatArray:
        """How far readings of each sensor stray from the model beyond their noise, shape (m,)."""
        return np.array([sensor.map_error for sensor in self.spec.sensor] or [0.0] * self.physics.sensors)

    @cached_property
    def resolutions(self) -> FloatArray | None:
        """The step of each sensor's hardware, shape (m,); None if the site file states none."""
        return self._per_sensor("resolution")

    @cached_property
    def noise_floors(self) -> FloatArray | None:
        """The noise that each sensor has before its hardware rounds, shape (m,); None if the site file states none."""
        return self._per_sensor("noise_floor")

    def resolution_of(self, sensor_id: str) -> float | None:
        """The step of one sensor's hardware."""
        steps = self.resolutions
        return None if steps is None else float(steps[self.sensor_ids.index(sensor_id)])

    def _per_sensor(self, key: str) -> FloatArray | None:
        """A key of [privacy] that each sensor may replace; 0 for sensors without one if others have it."""
        usual = getattr(self.spec.privacy, key)
        values = [getattr(sensor, key) for sensor in self.spec.sensor] or [None] * self.physics.sensors
        stated = [usual if value is None else value for value in values]
        return None if all(value is None for value in stated) else np.array([value or 0.0 for value in stated])

    @cached_property
    def stay(self) -> Stay | None:
        """The claim for sources that stay; None if the site file states none."""
        stated, schedule = self.spec.privacy.stay, self.schedule
        if stated is None:
            return None
        if stated.length < self.spec.privacy.window:
            raise SiteError(
                f"privacy.stay: a length of {stated.length:g} seconds is shorter than the window of "
                f"{self.spec.privacy.window:g}. The claim for a window covers such stays: leave the table out.",
                key="stay",
            )
        why = "recovery cannot take offsets out with so many sources" if self.samples_locally else ""
        if self.spec.sources.kind == "pulse":
            why = "it needs lasting sources"
        if why:
            raise SiteError(f"privacy.stay: {why}. Leave the table out.", key="stay")
        readings = schedule.most(clock_ms(stated.length))
        period = schedule.period_ms / 1000 * schedule.window_slots / min(schedule.allowed, schedule.window_slots)
        return Stay(readings, stated.epsilon, stated.delta, period)

    @property
    def claim(self) -> SiteClaim:
        """The guarantee that a plan of the site must meet."""
        return SiteClaim(**{each.name: getattr(self.spec.privacy, each.name) for each in fields(SiteClaim)})

    @property
    def window(self) -> float:
        """The seconds that the claim is for."""
        return self.spec.privacy.window

    @property
    def unit(self) -> str:
        """Unit of the readings; empty if the site file gives none."""
        return self.spec.unit or ""

    @property
    def length_unit(self) -> str:
        """Unit of distances; empty if the model does not know it."""
        return self.physics.length_unit

    @cached_property
    def zones(self) -> tuple[Zone, ...]:
        """The zones that the site file names, or else the rooms of a floor plan."""
        return make_zones(self.spec, self.physics)

    @property
    def not_followed(self) -> str:
        """The reason why sources are not followed from frame to frame; empty if they are."""
        choice, places = self.estimator(), self.physics.places
        if not isinstance(choice.estimator, PointSources):
            return choice.reason
        if places > MAX_COARSE and not self.samples_locally:
            return f"{places:,} places are too many; at most {MAX_COARSE:,} are possible"
        return ""

    @property
    def samples_locally(self) -> bool:
        """Whether sources are sampled by local moves: many of known strength without drift, or on a large floor."""
        sources = self.spec.sources
        few = isinstance(sources.strength, tuple) or self.drift is not None
        return samples_locally(self.physics, 1 if few else sources.max_count or USUAL_COUNT)

    @property
    def follows(self) -> bool:
        """Whether the site's sources are followed from frame to frame; if not, each frame is recovered alone."""
        return not self.not_followed

    @cached_property
    def motion(self) -> Motion:
        """The movement of the site's sources."""
        return make_motion(self.spec, self.physics, self.not_followed)

    @property
    def chains(self) -> int:
        """Number of chains that follow the site's sources."""
        return 8 if self.period_ms < OFTEN_MS else 16

    @cached_property
    def drift(self) -> Drift | None:
        """How the readings wander without any source; None if they do not."""
        return make_drift(self.spec, self.physics)

    @property
    def hold_s(self) -> float:
        """Seconds for which a zone in doubt keeps its state while the other one is more likely."""
        hold = self.spec.motion.hold
        return max(SHORTEST_HOLD, HELD_PERIODS * self.period_ms / 1000) if hold is None else hold

    @cached_property
    def schedule(self) -> Schedule:
        """The times at which a device of the site reads."""
        return schedule_of(self.spec.privacy)

    @property
    def period_ms(self) -> int:
        """Milliseconds between two readings of one sensor."""
        return self.schedule.period_ms

    @property
    def files(self) -> dict[str, Path]:
        """The files that the site file names, by the key of the physics table that names them."""
        physics = self.spec.physics
        if isinstance(physics, OwnSpec):
            texts = {
                key: self.folder / text for key, text in (physics.model_extra or {}).items() if isinstance(text, str)
            }
            files = {key: path for key, path in texts.items() if path.is_file()}
            return {**files, "kind": self.folder / physics.kind.partition(":")[0]}
        names = {key: getattr(physics, key, None) for key in ("edges", "file", "pairs")}
        return {key: self.folder / name for key, name in names.items() if isinstance(name, str)}

    @property
    def digest(self) -> str:
        """SHA-256 of the site file's content and of the files that it names, as they are now.

        Comments, layout, keys set to their default, zones, motion, entrances, drift, heat, the lag and map errors do
        not count: they have no part in the claim, and naming a room or a radiator must not force a new plan on the
        devices.
        """
        hashes = {}
        for key, path in self.files.items():
            try:
                hashes[key] = hashlib.sha256(path.read_bytes()).hexdigest()
            except OSError as problem:
                raise SiteError(f"physics.{key} = {path.name!r}: {problem.strerror or problem}.", key=key) from None
        own = isinstance(self.spec.physics, OwnSpec)  # whose lag may mean anything
        without = _BESIDE if own else NO_PART_IN_THE_CLAIM
        content = self.spec.model_dump(mode="json", exclude_defaults=True, exclude=without)
        return digest_of({"files": hashes, "site": content})

    @property
    def tolerance(self) -> Tolerance:
        """The largest error of the model.

        Devices read on a schedule, whenever a pulse was emitted, and windows follow each other. So a pulse may be read
        at the model's time after its emission, and at every later time.
        """
        declared = self.spec.physics.tolerance.model_dump()
        return Tolerance(**declared, later=self.physics.pulse)

    @property
    def timing(self) -> Timing:
        """The largest time between sensors of a frame, and the speed of sources.

        People walk where distances are in metres; a pulse stays where it was emitted. Where the unit of distances is
        not known, as for a matrix, lasting sources may move at any speed.
        """
        spread, speed = self.schedule.spread, self.spec.privacy.speed
        if speed is not None:
            return Timing(spread, speed)
        if self.spec.sources.kind == "pulse":
            return Timing(spread)
        return Timing(spread, WALKING_SPEED if self.length_unit == "m" else "any")

    @property
    def left_open(self) -> tuple[Advice, ...]:
        """What usual rooms and sensors do that the claim does not cover here, and how to cover it."""
        memory = () if self.spec.physics.tolerance.memory or self.spec.sources.kind == "pulse" else self._no_memory()
        if self.resolutions is not None:
            return memory
        problem = (
            "The step of the hardware is not covered: readings count as exact, so devices take only simulated ones."
        )
        return (*memory, Advice(("privacy", "resolution"), problem, "Set resolution under [privacy] to the step."))

    def _no_memory(self) -> tuple[Advice, ...]:
        """What a claim without a tolerance of memory leaves open."""
        key = ("physics", "tolerance", "memory")
        late = f" Readings lag by {self.physics.lag:g} s here, so warmth does linger." if self.physics.lag else ""
        if self.physics.floor is None:
            return (Advice(key, f"Readings that follow late are not covered.{late}", ""),) if late else ()
        stated = "memory" in self.spec.physics.tolerance.model_fields_set and not late
        problem = (
            "Rooms in which warmth lingers are not covered: there, moves of the past can shift a frame further than "
            f"the claim allows.{late}"
        )
        return (Advice(key, problem, "The site file says memory = false." if stated else _STATE_MEMORY),)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of the claim besides the model, one sentence each."""
        return tuple(self._assumptions())

    def _assumptions(self) -> Iterator[str]:
        privacy = self.spec.privacy
        if privacy.scope != "sensor":
            yield self.timing.sentence(self.length_unit or "units of length")
        if self.spec.sources.kind == "pulse":
            later = " or a later one" if self.physics.pulse else ""
            yield (
                "It assumes that all sensors of a frame read a pulse at the same time after its emission, which is the "
                f"model's time{later}."
            )
        if self.resolutions is None:
            yield "It assumes exact readings: no step of the hardware is covered."
        else:
            yield f"It assumes that the hardware reads in steps of {self._shown(self.resolutions)}."
        if self.noise_floors is not None and self.noise_floors.any():
            yield (
                "It assumes that each sensor has white Gaussian noise of its own, of at least "
                f"{self._shown(self.noise_floors)}, before its hardware rounds in equal steps."
            )
        yield "It assumes that each device draws fresh noise for each reading, which no one else knows."
        if privacy.stay is not None:
            yield "The claim for a stay takes each device to keep its offset."

    def _shown(self, values: FloatArray) -> str:
        """Values of the sensors with their unit, as one number or a range."""
        low, high = float(values.min()), float(values.max())
        return f"{low:g}{'' if low == high else f' to {high:g}'} {self.unit}".strip()

    @cached_property
    def _drift_left(self) -> Drift | Nuisance | None:
        """The drift that the noise is designed for: what earlier windows leave of it, where sources are followed."""
        if self.drift is None or not self.follows:
            return self.drift
        equal = self._cloak(None)
        sigma = equal.claimed_sigmas / math.sqrt(equal.readings_per_window)
        return self.drift.on(self.physics).learnt(sigma, self.spec.privacy.window)

    def estimator(self) -> EstimatorChoice:
        """Choose the estimator that suits the site's sources."""
        return choose_estimator(self.spec.sources, self.physics.space, local=self.samples_locally)

    def cloak(self) -> Cloak:
        """A new cloak that meets the site's claims, with its budget unspent."""
        try:
            return self._cloak(self._drift_left, stay=self.stay, design=self.spec.privacy.design)
        except CalibrationError as problem:
            raise CalibrationError(f"{self.source}: {problem}", **problem.values) from None

    def cloak_with(self, sigmas: FloatArray, steps: FloatArray, offsets: SlowNoise | None = None) -> Cloak:
        """A new cloak with this noise, these steps and slow offsets; refused if they miss the claims."""
        stay = None if self.stay is None else replace(self.stay, offsets=offsets)
        return self._cloak(self._drift_left, steps, stay=stay, sigma=sigmas)

    def _cloak(self, drift: Drift | Nuisance | None, steps: FloatArray | None = None, **options: Any) -> Cloak:
        """A cloak that meets the claim; designs locate sources in spite of the drift, and the sensors send in steps."""
        keys = ("epsilon", "delta", "alpha", "scope", "noise", "readings_per_window")
        return Cloak(
            self.physics,
            **{key: getattr(self.spec.privacy, key) for key in keys},
            hardware=Hardware(self.resolutions, 0.0 if self.noise_floors is None else self.noise_floors, steps),
            assumptions=Assumptions(self.tolerance, self.timing, drift, self.map_errors),
            **options,
        )


def schedule_of(claim: PrivacySpec | BitsSpec) -> Schedule:
    """The times at which a device reads under a claim."""
    stated = {key: getattr(claim, key) for key in ("window", "period", "late", "clock")}
    return make_schedule(**stated, allowed=claim.readings_per_window)


def canonical_json(values: object) -> str:
    r"""JSON with sorted keys, no spaces and the shortest form of each number that reads back as the same.

    >>> canonical_json({"b": [1, 0.1], "a": "°C"})
    '{"a":"\\u00b0C","b":[1,0.1]}'
    """
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of(values: object) -> str:
    """SHA-256 of the canonical JSON, in hexadecimal: the same on every machine."""
    return hashlib.sha256(canonical_json(values).encode()).hexdigest()
