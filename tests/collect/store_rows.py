"""Rows for tests of the store: a site with a few sensors that read every second."""

from typing import Any

from cloakwork.collect.storage import DeviceReport, Reading, RecoveredSource, Result, Store

SITE = "flat"
START = 1_700_000_000_000
PERIOD = 1000


def moment(frame: int) -> int:
    """The time of a frame."""
    return START + frame * PERIOD


def reading(sensor: str = "s1", frame: int = 0, **changes: Any) -> Reading:
    """A reading whose number is that of its frame."""
    row = Reading(SITE, sensor, frame, moment(frame), 10 * frame, moment(frame) + 20)
    return row._replace(**changes)


def frames(count: int, sensors: int = 3, *, first: int = 0) -> list[Reading]:
    """All readings of some frames, in the order of time and sensor."""
    return [reading(f"s{k}", frame) for frame in range(first, first + count) for k in range(1, sensors + 1)]


def result(frame: int = 0, sensors: int = 3, **changes: Any) -> Result:
    told: dict[str, Any] = {
        "site": SITE,
        "time": moment(frame),
        "sensors": sensors,
        "expected": 3,
        "estimator": "PointSources",
        "status": "found",
        "gap": 1e-3,
        "fit": 0.4,
        "set_aside": ("s2",),
        "counts": (0.1, 0.9),
        "sources": (RecoveredSource("12", (1.5, 2.5), 1.0, 0.5, 0.9),),
        "map": b"zlib\x00\xff",
        "solved": moment(frame) + 500,
        "took_ms": 12.5,
    }
    return Result(**{**told, **changes})


def report(sensor: str = "s1", *, used: int = 1, received: int = START, **changes: Any) -> DeviceReport:
    return DeviceReport(SITE, sensor, "online", used, 60, received)._replace(**changes)


def waiting(store: Store, site: str = SITE) -> list[int]:
    """The times of the frames that wait to be recovered, the earliest first."""
    return sorted(frame.time for frame in store.frames.waiting(site, limit=10_000))
