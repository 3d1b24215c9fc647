"""People who are followed are found at least as well later as at once."""

import numpy as np
import pytest

from cloakwork.physics import Nuisance
from cloakwork.site import parse_site
from cloakwork.site.tracking_quality import follow_simulated, habits_of
from scripts.plain_flat import plain_flat_text


@pytest.mark.parametrize("walking", [False, True])
def test_what_is_known_later_is_at_least_as_good_as_what_is_known_at_once(*, walking: bool) -> None:
    """Those who walk move far more often than the site says: hindsight must not take them for people who sit."""
    site = parse_site(plain_flat_text().replace("cell = 0.25", "cell = 1.0"))
    habits, sigmas = habits_of(site, walking=walking), site.cloak().sigmas
    assert habits is not None
    found = [follow_simulated(site, sigmas, habits, frames=150, seed=seed) for seed in range(3)]
    better = np.array([each.settled.room.value - each.live.room.value for each in found])
    error = better.std(ddof=1) / np.sqrt(len(better))
    assert better.mean() >= -2 * error, (better.mean(), error)
    assert better.mean() >= (-0.02 if walking else 0.0), better


def test_readings_that_follow_late_cost_rooms_at_once() -> None:
    """The same people and the same noise: whoever has changed rooms is still seen in the old one."""
    text = plain_flat_text().replace("cell = 0.25", "cell = 1.0")
    at_once, late = (parse_site(text.replace("lag = 0.0", f"lag = {lag}.0")) for lag in (0, 1200))
    habits, sigmas = habits_of(at_once, walking=False), at_once.cloak().sigmas / 4
    assert habits is not None
    rooms = [follow_simulated(site, sigmas, habits, frames=150).live.room.value for site in (at_once, late)]
    assert rooms[1] < rooms[0] - 0.05


def test_offsets_that_hide_stays_are_simulated() -> None:
    """The same people and the same noise; the offsets are larger than what a person adds to a reading."""
    site = parse_site(plain_flat_text().replace("cell = 0.25", "cell = 1.0"))
    habits, sigmas, sensors = habits_of(site, walking=False), site.cloak().sigmas / 4, site.physics.sensors
    assert habits is not None
    wandering = Nuisance(np.eye(sensors), np.full(sensors, 2.0), np.full(sensors, 3600.0))
    rooms = [
        follow_simulated(site, sigmas, habits, frames=40, offsets=offsets).live.room.value
        for offsets in (None, wandering)
    ]
    assert rooms[1] < rooms[0]
