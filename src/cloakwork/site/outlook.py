"""What a plan leaves to see, over which times, and what to change in its site file."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cloakwork._checks import duration, more_noise, spread_of
from cloakwork.accuracy import Limits, limits
from cloakwork.physics import Drift
from cloakwork.privacy import LARGE_COST, Cloak, NoiseLaw
from cloakwork.recovery import Problem, detection_probability, samples_locally
from cloakwork.site.advice import Advice
from cloakwork.site.bit_site import BitSite
from cloakwork.site.installation import Site
from cloakwork.site.sanity import oddities
from cloakwork.site.schedule import clock_ms

EVEN = 0.95  # share of the allowed readings that are taken, since slots are whole milliseconds
HORIZONS_S = (3_600, 28_800, 86_400, 604_800, 31_557_600)  # an hour, eight hours, a day, a week, a year


def spans_of(site: Site | BitSite) -> dict[str, int]:
    """The most readings of a sensor in a window, and in an hour, eight hours, a day, a week and a year if longer."""
    window = site.window
    longer = (seconds for seconds in HORIZONS_S if seconds > window)
    return {
        duration(window): site.schedule.allowed,
        **{duration(seconds): site.schedule.most(clock_ms(seconds)) for seconds in longer},
    }


def share_detected(cloak: Cloak, drift: Drift | None = None) -> float:
    """The share of frames in which a lone unit source in a typical cell is detected at all."""
    offsets = None if drift is None else drift.on(cloak.physics)
    noisy = Problem.with_noise(cloak.physics, cloak.total_sigmas, cloak.roundings, offsets)
    return float(np.median(detection_probability(noisy)))


def window_limits(cloak: Cloak, drift: Drift | None = None) -> Limits | None:
    """The limits of any method for a whole window; none for one cell, for a large floor, and for Laplace noise."""
    if cloak.physics.places < 2 or samples_locally(cloak.physics) or cloak.noise is NoiseLaw.LAPLACE:
        return None
    return limits(cloak.physics, cloak.claimed_sigmas / np.sqrt(cloak.readings_per_window), drift=drift)


@dataclass(frozen=True)
class CostOfDrift:
    """How often a frame alone detects a lone source, and the least mean distance that a window alone allows."""

    noticed: float
    average_emd: float | None


def cost_of_drift(site: Site, cloak: Cloak) -> CostOfDrift:
    """Limits for a lone source from one frame and from one window, with unknown offsets."""
    bounds = window_limits(cloak, site.drift)
    return CostOfDrift(share_detected(cloak, site.drift), None if bounds is None else bounds.average_emd)


def plan_advice(site: Site, cloak: Cloak) -> tuple[Advice, ...]:
    """What to change in the site file: what the guarantee leaves open, wastes or cannot mean."""
    return (*oddities(site), *site.left_open, *_hardware(site, cloak), *_rhythm(site), *_fast_drift(site))


def _hardware(site: Site, cloak: Cloak) -> Iterator[Advice]:
    """A step of the hardware that a noise floor would make nearly free."""
    if cloak.resolution_cost > LARGE_COST and cloak.noise is NoiseLaw.GAUSSIAN and not cloak.rests_on_noise_floor:
        floor = "0" if site.noise_floors is None else spread_of(site.noise_floors)
        yield Advice(
            ("privacy", "noise_floor"),
            f"the sensors' steps with a noise floor of {floor} take {more_noise(cloak.resolution_cost)}.",
            "A sensor that is noisy before it rounds needs far less: measure that, and set noise_floor under "
            "[privacy].",
        )


def _rhythm(site: Site) -> Iterator[Advice]:
    """A period with which the budget runs out before the window ends, or is never used up."""
    privacy, schedule = site.spec.privacy, site.schedule
    window, slots = duration(privacy.window), schedule.slots_in(clock_ms(privacy.window))
    if schedule.pauses:
        yield Advice(
            ("privacy", "period"),
            f"all devices fall silent after {schedule.allowed:,} readings in a row until {window} is over.",
            "For even readings, delete period under [privacy].",
        )
    elif slots < (1.0 if privacy.period else EVEN) * schedule.allowed:
        yield Advice(
            ("privacy", "readings_per_window"),
            f"a device takes at most {slots:,} of the {schedule.allowed:,} readings in {window} that the noise covers.",
            f"Set readings_per_window = {slots} under [privacy].",
        )


def _fast_drift(site: Site) -> Iterator[Advice]:
    """A drift of which a frame says little about the next."""
    if site.drift is None:
        return
    fastest, period = min(site.drift.on(site.physics).over), site.period_ms / 1000
    if fastest < period:
        yield Advice(
            ("drift", "over"),
            f"a drift over {duration(fastest)} is faster than the readings, {duration(period)} apart.",
            "Set over under [drift] to hours.",
        )
