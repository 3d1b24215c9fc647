"""People who are followed are found at least as well later as at once."""

import numpy as np

from cloakwork.physics import Nuisance
from cloakwork.site import parse_site
from cloakwork.site.tracking_quality import follow_simulated
from scripts.plain_flat import plain_flat_text


def test_what_is_known_later_is_at_least_as_good_as_what_is_known_at_once() -> None:
    site = parse_site(plain_flat_text().replace("cell = 0.25", "cell = 1.0"))
    sigmas = site.cloak().sigmas
    found = [follow_simulated(site, sigmas, frames=100, seed=seed) for seed in range(2)]
    better = np.array([each.settled.room.value - each.live.room.value for each in found])
    assert better.mean() >= 0.0, better


def test_offsets_that_hide_stays_are_simulated() -> None:
    """The same people and the same noise; the offsets are larger than what a person adds to a reading."""
    site = parse_site(plain_flat_text().replace("cell = 0.25", "cell = 1.0"))
    sigmas, sensors = site.cloak().sigmas / 4, site.physics.sensors
    wandering = Nuisance(np.eye(sensors), np.full(sensors, 2.0), np.full(sensors, 3600.0))
    rooms = [
        follow_simulated(site, sigmas, frames=40, offsets=offsets).live.room.value for offsets in (None, wandering)
    ]
    assert rooms[1] < rooms[0]
