"""People's movement through the whole chain."""

from dataclasses import replace

import numpy as np
import pytest

from papers import Run
from papers.experiment import Size
from papers.experiments.movement import (
    DELTA,
    EPSILON,
    EVERY_MS,
    Method,
    cloak_of,
    distances,
    film,
    flat,
)
from papers.walks import staying

PEOPLE = ((2.0, 2.0), (8.0, 6.0))


def test_people_who_stay_are_where_they_are() -> None:
    told: list[tuple[int, int]] = []
    two_moments = replace(staying(PEOPLE), frame_ms=2 * EVERY_MS)
    found = film(two_moments, Run(1, Size.QUICK, lambda *done: told.append(done)))
    assert told[-1][0] == told[-1][1]
    assert found.people == (2, 2)
    assert [len(track.distances) for track in found.tracks] == [2] * len(found.tracks)
    assert found.stills[0].people == PEOPLE
    assert found.of(Method.OURS).distances[0] < found.guess[0]


def test_the_claim_is_the_same_for_all_and_only_the_noise_differs() -> None:
    claims = {(cloak_of(one).epsilon, cloak_of(one).delta, cloak_of(one).alpha) for one in Method}
    assert len(claims) == 1
    for method in Method:
        assert cloak_of(method).profile.delta(EPSILON) <= DELTA
    assert np.median(cloak_of(Method.OURS).sigmas) < cloak_of(Method.EQUAL).sigma
    papers = [method for method in Method if np.min(cloak_of(method).sigmas) > 4 * cloak_of(Method.EQUAL).sigma]
    assert papers == [Method.PAPERS, Method.PAPERS_NOISE]


def test_distance_is_walking_distance_and_an_empty_map_counts_as_the_same_everywhere() -> None:
    truth = np.zeros((3, flat().places))
    here, there = flat().rooms.cell_at(5.75, 0.25), flat().rooms.cell_at(6.25, 0.25)
    truth[:, here] = 1.0
    maps = np.zeros_like(truth)
    maps[0, here] = 2.0
    maps[1, there] = 1.0
    found = distances(truth, maps)
    assert found[0] == pytest.approx(0.0)
    assert found[1] > 2.0  # through the door, and not through the wall
    assert found[2] == pytest.approx(float(distances(truth[:1], np.ones((1, flat().places)))[0]))
