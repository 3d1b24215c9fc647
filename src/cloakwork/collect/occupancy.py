"""Occupancy: what a result says about each zone of its site."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.collect.solver import unpack_map
from cloakwork.collect.storage import RecoveredSource, Result
from cloakwork.physics import Space
from cloakwork.site import Site, Zone

LIKELY = 0.5


@dataclass(frozen=True)
class Occupancy:
    """A zone with the expected number of sources in it, and the probability that there is any.

    If the estimator gives no probabilities, `expected` is the recovered weight, in units of the strongest source, and
    `probability` is None.
    """

    zone: Zone
    expected: float
    probability: float | None

    @property
    def occupied(self) -> bool | None:
        """Whether a source is there more likely than not; None if unknown."""
        return None if self.probability is None else self.probability >= LIKELY


def occupancies(site: Site, result: Result) -> tuple[Occupancy, ...] | None:
    """Return the occupancy of each zone; None if the result has no map, or is for other places.

    Notes
    -----
    A map holds the expected number of sources at each place, so its sum over a zone is the expected number there. The
    probability of any source there does not follow from the map alone: two sources that are each here or there with
    even odds have the same map as one here and one there. So each place of the map is attributed to the nearest
    recovered source. A source that is real with probability p and has a share s of its part of the map in the zone is
    there with probability p s; if its part has k > 1 sources when it is real, p (1 - (1 - s)^k). Sources are taken as
    independent. The outcome never exceeds two bounds that always hold: the expected number, and the probability that
    there is any source at all. If no source is listed, the whole map belongs to one, which is real with that
    probability.
    """
    if result.map is None:
        return None
    weights = unpack_map(result.map)
    if len(weights) != site.physics.places:
        return None
    expected = [float(weights[zone.places].sum()) for zone in site.zones]
    if result.counts is None:
        return tuple(Occupancy(zone, number, None) for zone, number in zip(site.zones, expected, strict=True))
    anyone = 1.0 - result.counts[0]
    chances = [source.probability for source in result.sources] or [anyone]
    try:
        nearest = _nearest(result.sources, site.physics.space)
    except (ValueError, IndexError):  # the site had other places at that time
        return None
    return tuple(
        Occupancy(zone, number, min(_anyone_in(zone, weights, nearest, chances), number, anyone))
        for zone, number in zip(site.zones, expected, strict=True)
    )


def _anyone_in(zone: Zone, weights: FloatArray, nearest: IntArray, chances: Sequence[float]) -> float:
    """The probability that at least one source is in the zone."""
    whole = np.bincount(nearest, weights, minlength=len(chances))
    inside = np.bincount(nearest[zone.places], weights[zone.places], minlength=len(chances))
    empty = 1.0
    for chance, total, part in zip(chances, whole.tolist(), inside.tolist(), strict=True):
        if part > 0 and chance > 0:
            number = max(1.0, total / chance)
            empty *= 1.0 - chance * (1.0 - math.pow(1.0 - min(1.0, part / total), number))
    return 1.0 - empty


def _nearest(sources: Sequence[RecoveredSource], space: Space) -> IntArray:
    """For each place the number of the source nearest to it, 0 if there is none."""
    if not sources:
        return np.zeros(len(space), dtype=np.int64)
    far = np.stack([space.distances(_place(source, space)) for source in sources])
    return np.asarray(np.argmin(far, axis=0), dtype=np.int64)


def _place(source: RecoveredSource, space: Space) -> int:
    """The place of a source; nodes go by their name, all others by their number."""
    return int(source.place) if space.labels is None else [str(label) for label in space.labels].index(source.place)
