"""Scenes of people who are followed over time: how errors are counted."""

from itertools import permutations

import numpy as np
import pytest

from papers.followed_people import LEAD, distances, flat, gospa, switches


def test_distances_are_those_of_the_best_assignment() -> None:
    table, rng = flat().space.distance_table, np.random.default_rng(1)
    scene = [rng.integers(0, flat().places, 3).tolist() for _ in range(LEAD + 4)]
    marks = [rng.integers(0, flat().places, 3).tolist() for _ in scene]
    pairs = list(zip(marks, scene, strict=True))[LEAD:]
    best = [min(np.mean(table[people, list(order)]) for order in permutations(here)) for here, people in pairs]
    assert distances(marks, scene) == pytest.approx(best)


def test_missing_and_false_marks_cost_half_the_cut_each_in_gospa() -> None:
    scene = [[5]] * (LEAD + 1)
    assert gospa([[5]] * len(scene), scene) == 0
    assert gospa([[]] * len(scene), scene) == 1.0
    assert gospa([[5, 900]] * len(scene), scene) == 1.0


def test_a_person_whose_mark_changes_its_label_is_counted() -> None:
    assert switches([[5], [5], [6], [6]], [[1], [1], [2], [2]], [[5], [5], [6], [6]]) == 1
