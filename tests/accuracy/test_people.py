"""Simulated people keep to the paths, their speed and their habits."""

import numpy as np
import pytest

from cloakwork.accuracy import Habits, simulated_day
from cloakwork.physics import Rooms, Space

ROOMS = Rooms.from_walls((6, 4), cell=0.5, walls=[((3, 0), (3, 4))], doors=[((3, 1), (3, 2))])


def test_people_walk_at_their_speed_and_never_through_a_wall() -> None:
    day = simulated_day(ROOMS.space, 3, seed=1, hours=8, habits=Habits(sit=(5, 60), away=None))
    times = np.arange(0, 8 * 3600, 0.5)
    steps = np.abs(np.diff(day.positions_at(times), axis=0)).sum(axis=2)
    assert steps.max() <= 0.5 * 0.8 + 1e-9
    assert 0.1 < (steps > 0).mean() < 0.5
    x, y = np.moveaxis(day.positions_at(times), 2, 0)
    assert (x[:-1] < 3).any()
    through = (x[:-1] < 3) != (x[1:] < 3)
    assert through.sum() > 50
    assert ((y[:-1][through] > 1) & (y[:-1][through] < 2)).all()


def test_people_sit_come_and_go_as_long_as_stated() -> None:
    habits = Habits()
    day = simulated_day(ROOMS.space, 40, seed=2, hours=24, habits=habits)
    present = day.places_at(np.arange(0, 24 * 3600, 60.0)) >= 0
    assert present.mean() == pytest.approx(4 / (4 + 1.75), abs=0.05)  # mean times of presence and absence
    assert present[0].mean() == pytest.approx(present[-1].mean(), abs=0.25)  # the day begins like any other moment
    for times, places in zip(day.times, day.places, strict=True):
        away = np.flatnonzero(places[:-1] < 0)
        assert (np.diff(times)[away[1:]] >= 1800).all()
        seated = np.diff(times)[(places[:-1] >= 0) & (places[1:] == places[:-1])]
        assert ((seated == 0) | ((seated >= 300 - 1e-6) & (seated <= 2400 + 1e-6))).all()


def test_people_come_and_go_through_the_entrances() -> None:
    day = simulated_day(ROOMS.space, 5, seed=3, hours=24, entrances=((0.25, 0.25),))
    door = ROOMS.space.index((0.25, 0.25))
    for places in day.places:
        gone = np.flatnonzero(places < 0)
        assert len(gone) > 3
        inner = gone[(gone > 0) & (gone < len(places) - 1)]
        assert (places[inner - 1] == door).all()
        assert (places[inner + 1] == door).all()


def test_a_network_has_people_too_and_a_seed_gives_one_day() -> None:
    ring = Space.path([(0, 1), (1, 2), (2, 3), (3, 0)])
    times = np.arange(0, 3600, 10.0)
    first, again = (simulated_day(ring, 2, seed=4, hours=1).places_at(times) for _ in range(2))
    assert (first == again).all()
    assert set(np.unique(first)) <= {-1, 0, 1, 2, 3}
