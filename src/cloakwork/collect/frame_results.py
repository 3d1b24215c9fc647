"""The records that the store keeps of recovered frames."""

import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.occupancy import zone_states
from cloakwork.collect.storage import RecoveredSource, RecoveredTrack, Result
from cloakwork.readings import FrameRecovery
from cloakwork.recovery import PointSources

DOUBTFUL_TRACK = 0.1  # tracks that are less likely are left out


def pack_map(weights: FloatArray) -> bytes:
    """Compress the weights of a map for the store."""
    return zlib.compress(np.asarray(weights, dtype="<f4").tobytes(), 6)


def unpack_map(packed: bytes) -> FloatArray:
    """Return the weights of a stored map, one per place."""
    return np.frombuffer(zlib.decompress(packed), dtype="<f4").astype(np.float64)


def make_result(
    site: CollectedSite,
    found: FrameRecovery,
    solved: int,
    took_ms: float,
    *,
    before: Result | None = None,
    known: Mapping[int, RecoveredTrack] | None = None,
    labels: int = 0,
) -> Result:
    """Convert a recovered frame to the record that the store keeps; `solved` is in Unix milliseconds.

    `before` is the result before it. `known` are earlier records of its tracks, which may have begun before this
    process did, and `labels` is the largest label so far.
    """
    tracks = sorted(_tracks(site, found, known or {}), key=lambda track: -track.probability)
    return Result(
        site=site.name,
        time=found.time,
        sensors=found.sensors,
        expected=len(site.ids),
        estimator=site.estimator_name,
        status=found.status.name.lower(),
        gap=found.gap,
        fit=found.fit.p_value,
        set_aside=tuple(site.ids[sensor] for sensor in found.fit.set_aside),
        counts=None if found.counts is None else tuple(float(chance) for chance in found.counts),
        sources=tuple(
            RecoveredSource(
                **_spot(site, source.place, source.at),
                weight=float(source.weight),
                radius=float(source.radius),
                probability=float(source.probability),
                label=label,
                vicinity=tuple(source.vicinity.tolist()),
            )
            for source, label in zip(found.sources, found.labels, strict=True)
        ),
        map=pack_map(found.shown),
        solved=solved,
        took_ms=took_ms,
        settled=found.settled,
        labels=None if found.tracked is None else labels,
        tracks=tuple(tracks),
        zones=zone_states(site.site, found, (before and before.zones) or (), hold_ms=site.hold_ms),
    )


def _tracks(site: CollectedSite, found: FrameRecovery, known: Mapping[int, RecoveredTrack]) -> Iterator[RecoveredTrack]:
    sources = dict(zip(found.labels, found.sources, strict=True))
    for track in found.tracks:
        if track.probability < DOUBTFUL_TRACK:
            continue
        source, earlier = sources.get(track.label), known.get(track.label)
        since = round(1000 * track.since)
        yield RecoveredTrack(
            **_spot(site, track.places[-1], track.positions[-1]),
            label=track.label,
            since=since if earlier is None else min(since, earlier.since),
            weight=_strength(site) if source is None else float(source.weight),
            radius=None if source is None else float(source.radius),
            probability=float(track.probability),
            same=float(track.same if earlier is None else min(track.same, earlier.same)),
        )


def _spot(site: CollectedSite, place: int, at: object) -> dict[str, Any]:
    """The place of a source or track: its number and coordinates, or the name of a node."""
    space = site.site.physics.space
    if space.labels is not None or not space.places.shape[1]:
        return {"place": space.name(place), "at": ()}
    return {"place": str(place), "at": tuple(float(value) for value in np.atleast_1d(np.asarray(at)))}


def place_of(site: CollectedSite, track: RecoveredTrack) -> int | None:
    """The number of the place of a stored track; None if the site has no such place any more."""
    space = site.site.physics.space
    numbers = range(len(space))
    names = {str(number) if space.places.shape[1] else space.name(number): number for number in numbers}
    return names.get(track.place)


def _strength(site: CollectedSite) -> float:
    """The weight that a source is followed with."""
    estimator = site.estimator.estimator
    if isinstance(estimator, PointSources) and isinstance(estimator.strength, int | float):
        return float(estimator.strength)
    return 1.0
