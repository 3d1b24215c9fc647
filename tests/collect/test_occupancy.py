"""How likely someone is in a zone: against what was simulated, and by rules that must always hold."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakwork._checks import FloatArray
from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.solver import Solver, zone_states
from cloakwork.collect.storage import ZoneState
from cloakwork.readings import Frame, FrameRecovery
from cloakwork.recovery import Fit, FrameEstimate, Source, Status
from cloakwork.site import Site, parse_site
from tests.collect.small_sites import FLAT, MANY, flat_site, make, moment, values

FRAMES = 150
SITE = parse_site(FLAT.format(epsilon=8.0))
CELLS = SITE.physics.places


def result(
    weights: FloatArray, spots: list[tuple[int, float]], counts: tuple[float, ...], time: int = 1
) -> FrameRecovery:
    found = tuple(Source(place, None, 1.0, 0.5, np.array([place]), chance) for place, chance in spots)
    fit = Fit(0.5, 0.0, 1)
    return FrameRecovery(time, 12, Status.WEIGHED, 0.0, fit, weights, weights, np.array(counts), found)


def at(*places: tuple[int, float]) -> FloatArray:
    weights = np.zeros(CELLS)
    for place, weight in places:
        weights[place] += weight
    return weights


def told(site: Site, found: FrameRecovery) -> dict[str, tuple[float, float | None]]:
    said = zone_states(site, found, (), hold_ms=1)
    return {one.id: (round(one.expected, 5), one.probability and round(one.probability, 5)) for one in said}


LEFT, RIGHT = (int(zone.places[5]) for zone in SITE.zones)


def test_a_source_that_is_here_or_there_is_in_each_room_with_its_share() -> None:
    found = told(SITE, result(at((LEFT, 0.6), (RIGHT, 0.2)), [(LEFT, 0.8)], (0.2, 0.8)))
    assert found == {"room-1": (0.6, 0.6), "room-2": (0.2, 0.2)}


def test_two_sources_that_may_each_be_in_a_room_are_more_likely_there_than_one() -> None:
    beside = LEFT + 1
    found = told(SITE, result(at((LEFT, 0.5), (beside, 0.5)), [(LEFT, 0.5), (beside, 0.5)], (0.25, 0.5, 0.25)))
    assert found == {"room-1": (1.0, 0.75), "room-2": (0.0, 0.0)}


@given(
    st.lists(st.floats(0, 1), min_size=4, max_size=4),
    st.lists(st.floats(0, 1), max_size=4),
    st.floats(0, 1),
)
def test_a_probability_exceeds_neither_one_nor_the_expected_number_nor_that_of_any_source(
    weights: list[float], chances: list[float], nobody: float
) -> None:
    places = [LEFT, LEFT + 1, RIGHT, RIGHT + 1]
    spots = list(zip(places, chances, strict=False))
    found = result(at(*zip(places, weights, strict=True)), spots, (nobody, 1 - nobody))
    for one in zone_states(SITE, found, (), hold_ms=1):
        assert one.probability is not None
        assert 0 <= one.probability <= min(one.expected, 1 - nobody) + 1e-12
        assert one.occupied is (one.probability >= 0.5)


def test_an_estimator_without_odds_tells_the_weight_only(tmp_path: Path) -> None:
    many = make(tmp_path, MANY + '[[zone]]\nid = "near"\nbetween = [0.0, 0.5]\n')
    [found] = Solver(many).solve([many.frame(moment(many, 0), values(many, 0.3))])
    said = found.zones
    assert said is not None
    assert (said[0].probability, said[0].occupied) == (None, None)
    assert 0.5 < said[0].expected < 1.5


def states(chances: list[float], *, followed: bool, hold_ms: int = 2000) -> list[tuple[bool | None, int | None]]:
    """Whether the left room is occupied, and since when, at a frame a second with these odds."""
    zones: tuple[ZoneState, ...] = ()
    said = []
    for number, chance in enumerate(chances):
        found = result(at((LEFT, chance)), [(LEFT, chance)], (1 - chance, chance), time=1000 * number)
        if followed:
            presence, counts = at((LEFT, chance))[None].astype(np.float32), np.array([1 - chance, chance])
            known = FrameEstimate(number, found.map, found.map, counts, (), (), (), presence, found.fit, 0.0)
            found = replace(found, tracked=known)
        zones = zone_states(SITE, found, zones, hold_ms=hold_ms)
        said.append((zones[0].occupied, zones[0].since))
    return said


@pytest.mark.parametrize("followed", [True, False])
def test_a_zone_in_doubt_keeps_its_state_for_the_hold_and_says_since_when(followed: bool) -> None:
    assert states([0.3, 0.8, 0.3, 0.8], followed=followed) == [(False, None)] * 4
    assert states([0.3, 0.8, 0.8, 0.3], followed=followed) == [(False, None)] * 2 + [(True, 2000)] * 2
    assert states([0.8, 0.3, 0.3, 0.8], followed=followed) == [(True, None)] * 2 + [(False, 2000)] * 2


def test_a_zone_that_is_surely_empty_or_occupied_does_not_wait_for_its_hold() -> None:
    found = states([0.95, 0.05, 0.3, 0.6, 0.95], followed=True)
    assert found == [(True, None), (False, 1000), (False, 1000), (False, 1000), (True, 4000)]


def test_odds_of_a_frame_alone_are_never_sure_enough_to_skip_the_hold() -> None:
    assert states([0.9, 0.05, 0.05], followed=False) == [(True, None), (True, None), (False, 2000)]


def simulated(one: CollectedSite, seed: int) -> tuple[list[Frame], FloatArray]:
    """Frames with nobody to three people anywhere, and how many of them were in each zone."""
    rng, physics = np.random.default_rng(seed), one.site.physics
    frames, truth = [], []
    for number in range(FRAMES):
        people = np.bincount(rng.integers(0, physics.places, rng.integers(0, 4)), minlength=physics.places)
        noise = one.cloak.sigmas * rng.standard_normal(physics.sensors)
        readings = physics.apply(people.astype(float)) + one.site.baselines + noise
        steps = np.rint(readings / one.cloak.steps).astype(int)
        frames.append(one.frame(moment(one, number), dict(zip(one.ids, steps.tolist(), strict=True))))
        truth.append([people[zone.places].sum() for zone in one.site.zones])
    return frames, np.array(truth, dtype=float)


@pytest.mark.parametrize(("epsilon", "of_chance"), [(1.0, 0.9), (2.0, 0.65), (8.0, 0.15)])
def test_odds_agree_with_how_often_someone_was_there(epsilon: float, of_chance: float) -> None:
    one = flat_site(FLAT + "speed = 0\n", epsilon)
    frames, truth = simulated(one, seed=3)
    said = [found.zones or () for found in Solver(one).solve(frames)]
    odds = np.array([[zone.probability for zone in each] for each in said], dtype=float)
    expected = np.array([[zone.expected for zone in each] for each in said])
    there = truth > 0
    chance = float(np.mean(there.mean(axis=0) * (1 - there.mean(axis=0))))
    assert np.mean((odds - there) ** 2) < of_chance * chance, "Brier score against always saying the base rate"
    assert abs(np.mean(odds - there)) < 0.07
    assert abs(np.mean(expected - truth)) < 0.1
    # 300 answers in four bins: a well-made forecast is off by about 0.05 in one that has a hundred
    for low in (0.0, 0.25, 0.5, 0.75):
        held = (odds >= low) & (odds <= low + 0.25)
        if held.sum() >= 40:
            assert abs(odds[held].mean() - there[held].mean()) < 0.12
