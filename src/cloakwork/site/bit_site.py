"""One installation of binary sensors: a validated site file with its zones, schedule and randomised response."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cloakwork.errors import CalibrationError, SiteError
from cloakwork.privacy import Flip
from cloakwork.site.advice import Advice
from cloakwork.site.installation import HELD_PERIODS, SHORTEST_HOLD, digest_of, schedule_of
from cloakwork.site.plan_parts import BitsClaim
from cloakwork.site.schedule import Schedule
from cloakwork.site.schema import BitSiteSpec


@dataclass(frozen=True)
class BitZone:
    """A part of a site of bits, and the rows of the sensors that watch it."""

    id: str
    label: str
    rows: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class BitSite:
    """A validated file of a site whose sensors all report 0 or 1.

    >>> from cloakwork.site import parse_any_site
    >>> site = parse_any_site('''
    ... name = "seats"
    ... bits = {epsilon = 2.0, delta = 1e-5, readings_per_window = 60}
    ... sensor = [{id = "sofa", zone = "living"}, {id = "desk", zone = "study"}, {id = "chair", zone = "study"}]
    ... zone = [{id = "living"}, {id = "study"}]
    ... ''')
    >>> site.shared
    3
    """

    spec: BitSiteSpec
    source: str = "SITE"
    """Name of the site file, for messages."""

    @property
    def name(self) -> str:
        """The site's name."""
        return self.spec.name

    @property
    def sensor_ids(self) -> tuple[str, ...]:
        """Names of the sensors."""
        return tuple(sensor.id for sensor in self.spec.sensor)

    def resolution_of(self, sensor_id: str) -> float:  # noqa: ARG002 - the same for all
        """The step of a sensor's hardware: it reads 0 or 1."""
        return 1.0

    def build(self) -> None:
        """Refuse a claim that cannot be met, and a schedule that cannot be."""
        _ = self.flip, self.schedule

    @property
    def claim(self) -> BitsClaim:
        """The guarantee that a plan of the site must meet."""
        flip = self.flip
        return BitsClaim(flip.epsilon, flip.delta, flip.sensors, self.window, flip.readings_per_window)

    @property
    def window(self) -> float:
        """The seconds that the claim is for."""
        return self.spec.bits.window

    @property
    def unit(self) -> str:
        """Bits have no unit."""
        return ""

    @property
    def files(self) -> Mapping[str, Path]:
        """A site of bits names no files."""
        return {}

    @cached_property
    def zones(self) -> tuple[BitZone, ...]:
        """The zones that sensors watch."""
        rows = {
            zone.id: tuple(k for k, s in enumerate(self.spec.sensor) if s.zone == zone.id) for zone in self.spec.zone
        }
        return tuple(BitZone(zone.id, zone.label or zone.id, rows[zone.id]) for zone in self.spec.zone if rows[zone.id])

    @cached_property
    def shared(self) -> int:
        """The most sensors that one person can change in a reading.

        Whether someone is in one zone rather than in another concerns the sensors of both.
        """
        least = sum(number for _, number in Counter(sensor.zone for sensor in self.spec.sensor).most_common(2))
        stated = self.spec.bits.shared
        if stated is not None and stated < least:
            raise SiteError(
                f"bits.shared = {stated}: whether someone is in one zone or in another changes up to {least} sensors. "
                f"Give {least} or more, or leave it out.",
                key="shared",
                shared=stated,
            )
        return stated or least

    @cached_property
    def flip(self) -> Flip:
        """The randomised response of the sensors."""
        stated = self.spec.bits
        try:
            return Flip(
                epsilon=stated.epsilon,
                delta=stated.delta,
                readings_per_window=stated.readings_per_window,
                sensors=self.shared,
            )
        except CalibrationError as problem:
            raise SiteError(str(problem), key="epsilon") from None

    @cached_property
    def schedule(self) -> Schedule:
        """The times at which a device of the site reads."""
        return schedule_of(self.spec.bits)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of the claim, one sentence each."""
        number = f"{self.shared} sensors" if self.shared > 1 else "one sensor"
        return (
            f"It assumes that one person changes at most {number} in each reading: all of the zone where they are, and "
            "all of the zone where they would be otherwise.",
            "It assumes that each device draws fresh noise for each reading, which no one else knows.",
        )

    @property
    def left_open(self) -> tuple[Advice, ...]:
        """What the claim leaves open because the site file does not state it: nothing."""
        return ()

    @property
    def hold_s(self) -> float:
        """Seconds for which a zone in doubt keeps its state while the other one is more likely."""
        return max(SHORTEST_HOLD, HELD_PERIODS * self.schedule.period_ms / 1000)

    @property
    def digest(self) -> str:
        """SHA-256 of what the claim rests on: neither the names of zones nor how people use them."""
        claim = self.spec.bits.model_dump(mode="json", exclude_defaults=True) | {"shared": self.shared}
        return digest_of({"name": self.name, "bits": claim, "sensors": self.sensor_ids})
