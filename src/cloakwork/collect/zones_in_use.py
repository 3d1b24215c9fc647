"""Which zones are in use, from the stored reports of their binary sensors."""

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.collect.collected_site import CollectedSite, unable_sensors
from cloakwork.collect.storage import Store
from cloakwork.recovery import presence

MOST_SLOTS = 1440
RECENT_SLOTS = 240  # enough for the present: older reports hardly count


@dataclass(frozen=True, eq=False)
class RoomPresence:
    """The probability that someone is in a zone at each time, given all reports of the period.

    `reports` is how many of them there are; without any, the probability is the stated share everywhere.
    """

    id: str
    label: str
    times: IntArray
    probability: FloatArray
    reports: int


def room_presence(store: Store, watched: CollectedSite, until: int, *, slots: int = MOST_SLOTS) -> list[RoomPresence]:
    """Compute the presence in each zone that binary sensors watch, over the slots before `until`."""
    site, flip, period = watched.site, watched.site.flip, watched.schedule.period_ms
    if flip is None:
        return []
    last = (until - 1) // period
    times = period * np.arange(max(1, last - slots + 1), last + 1)
    stated = site.spec.presence
    stay = math.exp(-period / 1000 / stated.stay)
    labels = {zone.id: zone.label for zone in site.zones}
    rooms: dict[str, list[str]] = {}
    for sensor in site.spec.binary:
        rooms.setdefault(str(sensor.zone), []).append(sensor.id)
    unable = unable_sensors(store, watched.name, times.tolist(), period)
    found = []
    for zone, sensors in rooms.items():
        reports = np.stack([_reports(store, watched, sensor, unable) for sensor in sensors], axis=1)
        # someone who comes and goes between two readings is not followed, so the share alone limits how often they come
        least = 1 - (1 - stated.share) / stated.share
        chances = presence(reports, flip, stay=max(stay, least + 1e-9), share=stated.share, seen=stated.seen)
        found.append(RoomPresence(zone, labels[zone], times, chances, int((reports >= 0).sum())))
    return found


def _reports(store: Store, watched: CollectedSite, sensor: str, unable: Mapping[int, Set[str]]) -> IntArray:
    """The reports of a sensor at the times of `unable`, -1 where there is none or the device could not measure."""
    reports, times, period = np.full(len(unable), -1), list(unable), watched.schedule.period_ms
    if times:
        since, until, most = times[0], times[-1] + period, len(times)
        page = store.readings.page(watched.name, sensor=sensor, since=since, until=until, limit=most, newest_first=True)
        for row in page.items:
            if row.value in {0, 1}:
                reports[(row.time - since) // period] = row.value
    return np.where([sensor in those for those in unable.values()], -1, reports)


def in_use(store: Store, watched: CollectedSite, now: int) -> dict[str, float]:
    """The probability that someone is in each watched zone now; zones without a recent report are left out."""
    rooms = room_presence(store, watched, now + 1, slots=RECENT_SLOTS)
    return {room.id: float(room.probability[-1]) for room in rooms if room.reports}
