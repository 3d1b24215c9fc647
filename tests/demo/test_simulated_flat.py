"""The simulated flat."""

import numpy as np
import pytest

from cloakwork.demo import Movement, SimulatedFlat, load_flat, staying
from cloakwork.errors import InputError
from cloakwork.physics import sources
from cloakwork.site import parse_site

BEGAN = 1_700_000_000_000
STEPS = Movement((((1.1, 1.1),), ((2.1, 1.1), (8.1, 7.1))), "two steps", frame_ms=1000)


class Hands:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = BEGAN

    def __call__(self) -> int:
        return self.now


def test_a_sensor_measures_what_the_model_says_of_now() -> None:
    site, clock = load_flat(), Hands()
    world = SimulatedFlat(site, STEPS, BEGAN, clock)
    for moment, people in ((0, [(1.1, 1.1)]), (1000, [(2.1, 1.1), (8.1, 7.1)]), (2000, [(1.1, 1.1)])):
        clock.now = BEGAN + moment
        wanted = site.physics.apply(sources(site.physics, people)) + site.baselines
        assert np.allclose([world.reading(row) for row in range(site.physics.sensors)], wanted, rtol=1e-12)


def test_the_truth_is_of_the_time_that_is_asked_for() -> None:
    clock = Hands()
    world = SimulatedFlat(load_flat(), STEPS, BEGAN, clock)
    clock.now = BEGAN + 5500
    past, now = world.truth("flat", BEGAN + 1200), world.truth("flat", None)
    assert past is not None
    assert now is not None
    assert (past.time, past.sources) == (BEGAN + 1200, ((2.1, 1.1), (8.1, 7.1)))
    assert (now.time, now.sources) == (BEGAN + 5500, ((2.1, 1.1), (8.1, 7.1)))


def test_nothing_is_simulated_elsewhere_before_or_ahead() -> None:
    clock = Hands()
    world = SimulatedFlat(load_flat(), STEPS, BEGAN, clock)
    clock.now = BEGAN + 10_000
    assert world.truth("flat", BEGAN) is not None
    assert world.truth("yard", BEGAN) is None
    assert world.truth("flat", BEGAN - 1) is None
    assert world.truth("flat", clock.now + 1) is None


def test_people_walk_on_a_floor_plan_only() -> None:
    line = parse_site(
        'name = "hall"\nsensors = 2\n[physics]\nkind = "line"\nplaces = 10\nT = 0.05\n[sources]\nkind = "pulse"\n'
        "[privacy]\nepsilon = 4.0\ndelta = 1e-5\nalpha = 0.1\n"
    )
    with pytest.raises(InputError, match="floor plan"):
        SimulatedFlat(line, staying([]), BEGAN, Hands())
