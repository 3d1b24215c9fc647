"""Occupancy: what a recovered frame says about each zone of its site, and whether somebody is there."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.collect.storage import ZoneState
from cloakwork.physics import Space
from cloakwork.readings import FrameRecovery
from cloakwork.recovery import Source
from cloakwork.site import Site, Zone

LIKELY = 0.5
SURE = 0.1  # if the odds are right, at most one change in ten by this rule is wrong


def zone_states(
    site: Site, found: FrameRecovery, before: Sequence[ZoneState], *, hold_ms: int
) -> tuple[ZoneState, ...]:
    """The state of each zone at a frame, given the states `before` it; missing zones start unknown.

    A zone changes at once when a tracker is sure, with a probability of someone there below 10 or above 90 %. In
    between it keeps its state until the other one has been more likely for `hold_ms`. The odds of a frame that was
    recovered alone forget all frames before, so there `hold_ms` always counts.
    """
    last = {state.id: state for state in before}
    expected = [float(found.shown[zone.places].sum()) for zone in site.zones]
    chances: Sequence[float | None] = [None] * len(expected)
    doubt = 0.0 if found.tracked is None else SURE
    if found.tracked is not None:
        chances = [found.tracked.anyone(zone.places) for zone in site.zones]
    elif found.counts is not None:
        chances = _chances(site, found, expected, 1.0 - float(found.counts[0]))
    return tuple(
        _state(ZoneState(zone.id, number, chance), found.time, last.get(zone.id), doubt, hold_ms)
        for zone, number, chance in zip(site.zones, expected, chances, strict=True)
    )


def _state(now: ZoneState, time: int, before: ZoneState | None, doubt: float, hold_ms: int) -> ZoneState:
    if now.probability is None:
        return now
    likely = now.probability >= LIKELY
    if before is None or before.occupied is None or before.seen is None:
        return replace(now, occupied=likely, seen=time)
    sure = not doubt <= now.probability <= 1 - doubt
    if likely != before.occupied and (sure or time - before.seen >= hold_ms):
        return replace(now, occupied=likely, since=time, seen=time)
    seen = time if likely == before.occupied else before.seen
    return replace(now, occupied=before.occupied, since=before.since, seen=seen)


def _chances(site: Site, found: FrameRecovery, expected: Sequence[float], anyone: float) -> list[float]:
    """The probability that at least one source is in each zone, for a frame that was recovered alone.

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
    chances = [source.probability for source in found.sources] or [anyone]
    nearest = _nearest(found.sources, site.physics.space)
    return [
        min(_anyone_in(zone, found.shown, nearest, chances), number, anyone)
        for zone, number in zip(site.zones, expected, strict=True)
    ]


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


def _nearest(sources: Sequence[Source], space: Space) -> IntArray:
    """For each place the number of the source nearest to it, 0 if there is none."""
    if not sources:
        return np.zeros(len(space), dtype=np.int64)
    far = np.stack([space.distances(source.place) for source in sources])
    return np.asarray(np.argmin(far, axis=0), dtype=np.int64)
