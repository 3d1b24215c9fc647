"""Small sites with their plans, and readings and results of them."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

from cloakwork.collect.collected_site import CollectedBits, CollectedSite, load_collected_site
from cloakwork.collect.live_recovery import LiveRecovery
from cloakwork.collect.storage import Reading, RecoveredSource, Result, Store, ZoneState, pack_map
from cloakwork.physics import sources
from cloakwork.site import freeze, load_site, parse_site, plan_beside
from tests.waiting import PATIENCE

WAIT = 0.15
LONG = PATIENCE
LINE = """name = "corridor"
sensors = 12
baseline = 20.0
[physics]
kind = "line"
places = 40
T = 0.01
[sources]
kind = "pulse"
max_count = 2
[privacy]
epsilon = 8.0
delta = 1e-3
alpha = 0.02
window = "1min"
readings_per_window = 6
"""
MANY = LINE.replace("max_count = 2", "max_count = 30").replace("corridor", "many")  # too many to compare: BasisPursuit
GRAPH = """name = "net"
sensors = 5
[physics]
kind = "graph"
edges = [["a", "b"], ["b", "c"], ["c", "d"], ["d", "e"], ["e", "f"], ["f", "a"]]
tau = 0.2
[sources]
kind = "pulse"
[privacy]
epsilon = 8.0
delta = 1e-3
alpha = 0.1
"""
FIRST = 30_000_000  # number of the first frame: long past by any clock


def site_file(folder: Path, text: str = LINE) -> Path:
    """A site file with its frozen plan beside it."""
    path = folder / "site.toml"
    path.write_text(text)
    site = load_site(path)
    freeze(site, site.cloak()).write(plan_beside(path))
    return path


def make(folder: Path, text: str = LINE) -> CollectedSite:
    watched = load_collected_site(site_file(folder, text))
    assert isinstance(watched, CollectedSite)
    return watched


def moment(watched: CollectedSite, number: int) -> int:
    """The time of a frame."""
    return (FIRST + number) * watched.schedule.period_ms


def values(watched: CollectedSite, *at: object, seed: int = 0) -> dict[str, int]:
    """What the sensors send of sources at these places."""
    physics, cloak = watched.site.physics, watched.cloak
    true = physics.apply(sources(physics, list(at))) if at else np.zeros(physics.sensors)
    noisy = true + watched.site.baselines + cloak.sigmas * np.random.default_rng(seed).standard_normal(physics.sensors)
    return dict(zip(watched.site.sensor_ids, np.rint(noisy / cloak.steps).astype(int).tolist(), strict=True))


def readings(
    watched: CollectedSite, number: int, said: dict[str, int] | None = None, *, without: Iterable[str] = ()
) -> list[Reading]:
    """The readings of one frame, as the intake hands them on."""
    when, gone = moment(watched, number), set(without)
    said = values(watched, 0.3, seed=number) if said is None else said
    return [Reading(watched.name, name, number, when, value, when) for name, value in said.items() if name not in gone]


def as_file(rows: Iterable[Reading], path: Path) -> Path:
    """The same readings as a file for `cloakwork recover`."""
    lines = ["time,sensor,seq,steps", *(f"{row.time},{row.sensor},{row.seq},{row.value}" for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@contextmanager
def running(
    store: Store, *sites: CollectedSite | CollectedBits, wait: float = WAIT
) -> Iterator[tuple[LiveRecovery, list[Result]]]:
    """Live recovery at work, and what it tells."""
    told: list[Result] = []
    live = LiveRecovery(store, {site.name: site for site in sites}, on_result=[told.append], wait=wait)
    live.start()
    try:
        assert live.settle(LONG)
        yield live, told
    finally:
        assert live.stop()


def give(store: Store, live: LiveRecovery, rows: Sequence[Reading]) -> None:
    """Store readings and hand them on, as the intake does."""
    store.readings.add(rows)
    live.on_new(rows)


FLAT = """name = "flat"
sensors = 12
[physics]
kind = "floorplan"
cell = 0.5
size = [5.0, 3.0]
walls = [[[2.5, 0.0], [2.5, 3.0]]]
doors = [[[2.5, 1.0], [2.5, 2.0]]]
regime = "steady"
reach = 1.0
footprint = 0.5
[sources]
kind = "lasting"
strength = 5.0
max_count = 3
[privacy]
epsilon = {epsilon}
delta = 1e-3
alpha = 0.2
window = "1min"
readings_per_window = 6
"""


@cache
def flat_site(text: str = FLAT, epsilon: float = 8.0) -> CollectedSite:
    site = parse_site(text.format(epsilon=epsilon))
    return CollectedSite(site, freeze(site, site.cloak()))


def flat_result(site: CollectedSite, when: int, *, zone: int | None, chance: float = 0.9) -> Result:
    """A result with one source in this zone, or with none."""
    weights = np.zeros(site.site.physics.places)
    counts: tuple[float, ...] = (1.0,)
    spots: tuple[RecoveredSource, ...] = ()
    if zone is not None:
        place = int(site.site.zones[zone].places[0])
        weights[place], counts = chance, (1 - chance, chance)
        spots = (RecoveredSource(str(place), (), 1.0, 0.5, chance),)
    zones = tuple(
        ZoneState(one.id, *((chance, chance, True) if number == zone else (0.0, 0.0, False)), since=when)
        for number, one in enumerate(site.site.zones)
    )
    return Result(
        *(site.name, when, 12, 12, "PointSources", "weighed", 0.0, 0.5, (), counts, spots),
        *(pack_map(weights), when, 5.0),
        zones=zones,
    )
