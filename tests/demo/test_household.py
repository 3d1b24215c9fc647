"""The people of the demonstrations."""

from itertools import pairwise

import numpy as np
import pytest

from cloakwork.demo import SEATS, Household, family, load_flat, load_office, residents_of
from cloakwork.demo.household import DAY_S, SPEED, WAKING_S, floor_of
from cloakwork.errors import InputError
from cloakwork.site import parse_site
from tests.collect.page_kit import LINE


@pytest.fixture(scope="module")
def household() -> Household:
    return family(floor_of(load_flat()))


def at_clock(household: Household, hour: int, minute: int) -> set[str]:
    """The seats that are taken at a time of day."""
    people = household.at(1000 * ((3600 * hour + 60 * minute - WAKING_S) % DAY_S))
    cells = {household.rooms.cell_at(*at) for at in people}
    return {seat for seat, at in SEATS.items() if household.rooms.cell_at(*at) in cells}


def test_they_wake_work_and_meet(household: Household) -> None:
    assert at_clock(household, 6, 40) == {"left", "right", "bunk"}
    assert at_clock(household, 11, 0) == {"desk"}
    assert at_clock(household, 19, 30) == {"head", "foot", "side", "bench"}


def test_they_walk_at_a_walking_pace_and_never_through_a_wall(household: Household) -> None:
    day, space = household.day, household.rooms.space
    links = {tuple(sorted(pair)) for pair in space.pairs.tolist()}
    for times, places in zip(day.times, day.places, strict=True):
        assert (np.diff(times) >= 0).all()
        assert times[-1] < DAY_S
        moves = [pair for pair in pairwise(places.tolist()) if -1 not in pair and pair[0] != pair[1]]
        assert {tuple(sorted(pair)) for pair in moves} <= links
        walked = (np.diff(places) != 0) & (places[1:] >= 0) & (places[:-1] >= 0)
        assert np.allclose(np.diff(times)[walked], household.rooms.cell / SPEED)


def test_they_come_and_go_through_the_entrance_of_the_site_and_are_at_most_four(household: Household) -> None:
    site = load_flat()
    [entrance] = site.motion.entrances or ()
    door = site.physics.space.index(entrance)
    for places in household.day.places:
        away = np.flatnonzero(places == -1)
        beside = np.union1d(away - 1, away + 1)
        beside = beside[(beside >= 0) & (beside < len(places))]
        assert {int(place) for place in places[beside] if place >= 0} <= {door}
    counts = {len(household.at(60_000 * minute)) for minute in range(24 * 60)}
    assert counts == {1, 2, 3, 4}
    assert site.spec.sources.max_count == 4


def test_any_floor_has_residents_who_stay_on_it_and_leave_room_for_a_guest() -> None:
    for site, number in ((load_flat(), None), (load_office()[1], 15)):
        people = residents_of(site, number=number)
        assert len(people.day.places) == number or len(people.day.places) + 1 == site.spec.sources.max_count
        seen = [at for hour in range(24) for at in people.at(3_600_000 * hour)]
        assert len(seen) > 12
        assert {people.rooms.cell_at(*at) >= 0 for at in seen} == {True}
    with pytest.raises(InputError):
        residents_of(parse_site(LINE))
