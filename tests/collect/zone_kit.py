"""What tests of zones share: a flat of two rooms with its plan, and results of it."""

from functools import cache

import numpy as np

from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.solver import pack_map
from cloakwork.collect.storage import RecoveredSource, Result
from cloakwork.site import freeze, parse_site

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
def watched(text: str = FLAT, epsilon: float = 8.0) -> CollectedSite:
    site = parse_site(text.format(epsilon=epsilon))
    return CollectedSite(site, freeze(site, site.cloak()))


def found(one: CollectedSite, when: int, *, zone: int | None, chance: float = 0.9) -> Result:
    """A result with one source in this zone, or with none."""
    weights = np.zeros(one.places)
    counts: tuple[float, ...] = (1.0,)
    spots: tuple[RecoveredSource, ...] = ()
    if zone is not None:
        place = int(one.site.zones[zone].places[0])
        weights[place], counts = chance, (1 - chance, chance)
        spots = (RecoveredSource(str(place), (), 1.0, 0.5, chance),)
    return Result(
        one.name, when, 12, 12, "PointSources", "weighed", 0.0, 0.5, (), counts, spots, pack_map(weights), when, 5.0
    )
