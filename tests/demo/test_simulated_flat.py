"""The simulated flat."""

import re
from pathlib import Path

import numpy as np
import pytest

from cloakwork.demo import SimulatedFlat, load_flat, load_forecast
from cloakwork.physics import sources
from cloakwork.site import parse_site
from papers.followed_people import Movement
from scripts.plain_flat import plain_flat
from tests.demo.small import SMALL

README = Path(__file__).parents[2] / "README.md"
BEGAN = 1_700_000_000_000
STEPS = Movement((((1.125, 1.125),), ((2.125, 1.125), (8.125, 7.125))), "two steps", frame_ms=1000)


def test_a_sensor_measures_what_the_model_says_of_now() -> None:
    site, now = plain_flat(), [BEGAN]
    world = SimulatedFlat(site, STEPS, BEGAN, lambda: now[0])
    for moment, people in ((0, STEPS.frames[0]), (1000, STEPS.frames[1]), (2000, STEPS.frames[0])):
        now[0] = BEGAN + moment
        wanted = site.physics.apply(sources(site.physics, list(people))) + site.baselines
        assert np.allclose([world.reading(row) for row in range(site.physics.sensors)], wanted, rtol=1e-12)


def test_readings_follow_with_the_lag_of_the_flat() -> None:
    """Someone changes places and sits: after each lag, 1/e of the difference is left."""
    seats = [(1.25, 1.25)], [(8.25, 7.25)]
    site = parse_site(SMALL.replace("cell = 0.5", 'cell = 0.5\nlag = "2min"').replace("[4.0, 3.0]", "[10.0, 8.0]"))
    moved = Movement((tuple(seats[0]), *[tuple(seats[1])] * 60), "one step", frame_ms=60_000)
    world = SimulatedFlat(site, moved, BEGAN, lambda: BEGAN)
    before, after = (site.physics.apply(sources(site.physics, seat)) + site.baselines for seat in seats)
    assert np.allclose(world.readings(BEGAN), before)
    for lags in (1, 2, 4):
        shown = world.readings(BEGAN + 60_000 + lags * 120_000)
        left = np.linalg.norm(shown - after) / np.linalg.norm(before - after)
        assert left == pytest.approx(np.exp(-lags), rel=0.11), "people are looked at ten times in a lag"


def test_the_truth_is_of_the_time_that_is_asked_for_and_none_elsewhere_before_or_ahead() -> None:
    world = SimulatedFlat(load_flat(), STEPS, BEGAN, lambda: BEGAN + 5500)
    for asked, time in ((BEGAN, BEGAN), (BEGAN + 1200, BEGAN + 1200), (None, BEGAN + 5500)):
        truth = world.truth("flat", asked)
        assert truth is not None
        assert (truth.time, truth.sources) == (time, STEPS.frames[(time - BEGAN) // 1000 % 2])
    assert world.truth("yard", BEGAN) is world.truth("flat", BEGAN - 1) is world.truth("flat", BEGAN + 5501) is None


def test_the_demonstration_forecasts_what_the_readme_says() -> None:
    known = load_forecast()
    row = re.search(r"\| 4 \(the demo\) \|.*/ (\d+) % \|.*/ (\d+) % \|", README.read_text(encoding="utf-8"))
    assert row is not None
    assert [f"{100 * value:.0f}" for value in (known.room, known.count)] == list(row.groups())
