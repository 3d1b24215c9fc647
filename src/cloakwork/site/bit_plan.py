"""The frozen plan of a site of bits."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from cloakwork.errors import SiteError
from cloakwork.privacy import CUT_BITS, flip_table
from cloakwork.site.bit_site import BitSite
from cloakwork.site.installation import Site
from cloakwork.site.plan_parts import MAX_SENSORS, STRICT, BitsClaim, FrozenPlan, Hex, SensorNoise
from cloakwork.site.schedule import Schedule
from cloakwork.site.schema import Name

SURPLUS = Fraction(1, 10**9)  # more flips, for machines that round differently


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
    def together(self) -> bool:
        """All sensors measure together: one person may change several."""
        return True

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
        self._check_name(site, file)
        if (
            isinstance(site, Site)
            or self.site_digest != site.digest
            or self.claim != _claim(site)
            or self.schedule != site.schedule
            or self.sensors != site.sensor_ids
        ):
            raise self._changed(site, file)
        if int(self.words, 16) < site.flip.words:
            raise self._refusal(site, file, "noise", f"{file} flips bits less often than the claim needs.")


def freeze_bits(site: BitSite) -> BitPlan:
    """Freeze how often the bits of a site flip, with a tiny surplus; never more often than not."""
    words = min(math.ceil(site.flip.words * (1 + SURPLUS)), 1 << (CUT_BITS - 1))
    return BitPlan(site.name, site.digest, _claim(site), site.schedule, site.sensor_ids, f"{words:032x}")


def _claim(site: BitSite) -> BitsClaim:
    flip = site.flip
    return BitsClaim(flip.epsilon, flip.delta, flip.sensors, site.spec.bits.window, flip.readings_per_window)
