"""People who are followed are found at least as well later as at once."""

import re
from importlib.resources import files

import numpy as np
import pytest

from cloakwork.site import parse_site
from cloakwork.site.tracking_quality import follow_simulated, habits_of


@pytest.mark.parametrize("walking", [False, True])
def test_what_is_known_later_is_at_least_as_good_as_what_is_known_at_once(*, walking: bool) -> None:
    """Those who walk move far more often than the site says: hindsight must not take them for people who sit."""
    text = files("cloakwork.site").joinpath("example.toml").read_text(encoding="utf-8")
    site = parse_site(text.replace("cell = 0.25", "cell = 1.0"))
    habits, sigmas = habits_of(site, walking=walking), site.cloak().sigmas
    assert habits is not None
    found = [follow_simulated(site, sigmas, habits, frames=150, seed=seed) for seed in range(3)]
    better = np.array([each.settled.room.value - each.live.room.value for each in found])
    error = better.std(ddof=1) / np.sqrt(len(better))
    assert better.mean() >= -2 * error, (better.mean(), error)
    assert better.mean() >= (-0.02 if walking else 0.0), better


def test_readings_that_follow_late_cost_rooms_at_once() -> None:
    """The same people and the same noise: whoever has changed rooms is still seen in the old one."""
    text = files("cloakwork.site").joinpath("example.toml").read_text(encoding="utf-8")
    text = re.sub(r"lag = .*", "", text)
    at_once, late = (parse_site(text.replace("cell = 0.25", f"cell = 1.0\nlag = {lag}")) for lag in (0, 1200))
    habits, sigmas = habits_of(at_once, walking=False), at_once.cloak().sigmas / 4
    assert habits is not None
    rooms = [follow_simulated(site, sigmas, habits, frames=150).live.room.value for site in (at_once, late)]
    assert rooms[1] < rooms[0] - 0.05
