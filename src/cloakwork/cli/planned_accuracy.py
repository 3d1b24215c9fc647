"""How much a plan leaves to see: of a lone source in a frame and in a window, and what drift costs."""

from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray, rounded_down
from cloakwork.accuracy import Limits, limits
from cloakwork.physics import Drift, FloorPlan, Physics
from cloakwork.privacy import Cloak, NoiseLaw
from cloakwork.recovery import Problem, noticed, samples_locally
from cloakwork.site import Site


@dataclass(frozen=True)
class CostOfDrift:
    """How often a frame alone detects a lone source, and the least mean distance that a window alone allows."""

    noticed: float
    average_emd: float | None


def cost_of_drift(site: Site, cloak: Cloak) -> CostOfDrift:
    """Limits for a lone source from one frame and from one window, with unknown offsets."""
    bounds = window_limits(cloak, site.drift)
    return CostOfDrift(share_noticed(cloak, site.drift), None if bounds is None else bounds.average_emd)


def drift_sentences(site: Site, cloak: Cloak, bounds: Limits | None) -> list[str]:
    """The cost of drift, and a note on one that is faster than the readings; nothing for a site without drift."""
    if site.drift is None:
        return []
    cost, unit = cost_of_drift(site, cloak), f" {unit_of_length(cloak.physics)}".rstrip()
    alone = f"detects a lone source in {100 * cost.noticed:.0f} % of cases"
    alone += f" instead of {100 * share_noticed(cloak):.0f} %"
    if bounds is not None and cost.average_emd is not None:
        alone += (
            f", and a window alone locates it no better than to {rounded_down(cost.average_emd, 2)}{unit} on average "
            f"instead of {rounded_down(bounds.average_emd, 2)}{unit}"
        )
    follow = "" if site.not_followed else " Following sources learns the offsets and costs less: --sweep simulates it."
    sentences = [f"Where readings drift as stated, a frame alone {alone}. The claim does not change.{follow}"]
    fastest, period = min(site.drift.on(cloak.physics).over), site.period_ms / 1000
    if fastest < period:
        sentences.append(
            f"Note: a drift over {duration(fastest)} is faster than the readings, {duration(period)} apart: a frame "
            "says little about the offsets of the next."
        )
    return sentences


def share_noticed(cloak: Cloak, drift: Drift | None = None) -> float:
    """The share of frames in which a lone unit source at a typical place is detected at all."""
    offsets = None if drift is None else drift.on(cloak.physics)
    if cloak.shared is not None and cloak.offsets is not None:
        offsets = cloak.offsets.joined(offsets)
    return float(np.median(noticed(Problem.with_noise(cloak.physics, cloak.total_sigmas, cloak.roundings, offsets))))


def reading_sigmas(cloak: Cloak) -> FloatArray:
    """Standard deviation of the noise that each device adds to a reading, shared noise included, shape (m,)."""
    return cloak.sigmas if cloak.shared is None else np.asarray(np.sqrt(np.diagonal(cloak.covariance)))


def window_limits(cloak: Cloak, drift: Drift | None = None) -> Limits | None:
    """The limits of any method for a whole window; none for one place, for a large floor, and for Laplace noise."""
    if cloak.physics.places < 2 or samples_locally(cloak.physics) or cloak.noise is NoiseLaw.LAPLACE:
        return None
    return limits(cloak.physics, cloak.claimed_sigmas / np.sqrt(cloak.readings_per_window), drift=drift)


def unit_of_length(physics: Physics) -> str:
    """The unit of distances; empty if unknown."""
    return "m" if isinstance(physics, FloorPlan) else ""


def duration(seconds: float) -> str:
    """A duration in its largest whole unit."""
    if seconds < 1:
        return f"{1000 * seconds:g} ms"
    for unit, size in (("week", 604800), ("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return f"{seconds:g} seconds"
