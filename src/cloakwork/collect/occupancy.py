"""Is someone in a zone? What a result says of each zone of its site."""

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.collect.records import Result, Spot
from cloakwork.physics import Space
from cloakwork.site import Site, Zone

LIKELY = 0.5


@dataclass(frozen=True)
class Occupancy:
    """What is known of a zone: the expected number of sources in it, and how likely it is that there is any.

    Where the estimator gives no odds, `expected` is the weight that it found there, in strongest sources, and
    `probability` is None.
    """

    zone: Zone
    expected: float
    probability: float | None

    @property
    def occupied(self) -> bool | None:
        """Whether someone is there more likely than not; None where nobody can say."""
        return None if self.probability is None else self.probability >= LIKELY


def weights_of(packed: bytes) -> FloatArray:
    """The numbers of a stored map, one for each place."""
    return np.frombuffer(zlib.decompress(packed), dtype="<f4").astype(np.float64)


def occupancies(site: Site, result: Result) -> tuple[Occupancy, ...] | None:
    """What a result says of each zone of its site; None where it has no map, or is of other places.

    Notes
    -----
    A map holds how many sources to expect at each place, and so their sum over a zone is what to expect there. How
    likely any is there does not follow from the map alone: two sources that are each here or there with even odds, and
    one here with another there, have the same map. So each place of the map is taken to be about the spot nearest to
    it. A spot that is real with probability p and has a share s of its part of the map in the zone is there with
    probability p s; where its part has k > 1 sources if it is real, p (1 - (1 - s)^k). Spots are taken as independent.
    The outcome is never more than two bounds that always hold: the expected number, and the probability that there is
    any source at all. Where no spot is listed, all of the map is about one, which is real with that probability.
    """
    if result.map is None:
        return None
    weights = weights_of(result.map)
    if len(weights) != site.physics.places:
        return None
    expected = [float(weights[zone.places].sum()) for zone in site.zones]
    if result.counts is None:
        return tuple(Occupancy(zone, number, None) for zone, number in zip(site.zones, expected, strict=True))
    anyone = 1.0 - result.counts[0]
    chances = [spot.probability for spot in result.sources] or [anyone]
    try:
        nearest = _nearest(result.sources, site.physics.space)
    except (ValueError, IndexError):  # the site had other places then
        return None
    return tuple(
        Occupancy(zone, number, min(_anyone_in(zone, weights, nearest, chances), number, anyone))
        for zone, number in zip(site.zones, expected, strict=True)
    )


def _anyone_in(zone: Zone, weights: FloatArray, nearest: IntArray, chances: Sequence[float]) -> float:
    """The probability that at least one spot is in the zone."""
    whole = np.bincount(nearest, weights, minlength=len(chances))
    inside = np.bincount(nearest[zone.places], weights[zone.places], minlength=len(chances))
    empty = 1.0
    for chance, total, part in zip(chances, whole.tolist(), inside.tolist(), strict=True):
        if part > 0 and chance > 0:
            number = max(1.0, total / chance)
            empty *= 1.0 - chance * (1.0 - math.pow(1.0 - min(1.0, part / total), number))
    return 1.0 - empty


def _nearest(spots: Sequence[Spot], space: Space) -> IntArray:
    """For each place the number of the spot nearest to it, 0 where there is none."""
    if not spots:
        return np.zeros(len(space), dtype=np.int64)
    far = np.stack([space.distances(_place(spot, space)) for spot in spots])
    return np.asarray(np.argmin(far, axis=0), dtype=np.int64)


def _place(spot: Spot, space: Space) -> int:
    """The place of a spot; a node goes by its name, all others by their number."""
    return int(spot.place) if space.labels is None else [str(label) for label in space.labels].index(spot.place)
