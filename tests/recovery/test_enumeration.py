"""Weighing every placement: against a sum over all ordered tuples, and the proof that leaves counts out."""

import itertools
import math

import numpy as np
import pytest

from cloakwork._checks import FloatArray
from cloakwork.recovery.enumeration import Terms, enumerate_placements

NO_LIMIT = 1e9


def problem(rng: np.random.Generator, places: int, strength: float) -> tuple[FloatArray, FloatArray]:
    """Columns of some heat kernel, one a row, and readings of two sources with noise."""
    x, s = np.linspace(0, 1, places), np.linspace(0, 1, 7)
    columns = strength * np.exp(-((x[:, None] - s) ** 2) / 0.1)
    readings = columns[rng.integers(places)] + columns[rng.integers(places)] + rng.standard_normal(len(s))
    return columns, readings


def terms(columns: FloatArray, readings: FloatArray) -> Terms:
    seen, gram = columns @ readings, columns @ columns.T
    return Terms(seen, seen - np.diag(gram) / 2, gram, float(readings @ readings))


def brute_force(columns: FloatArray, readings: FloatArray, least: int, most: int) -> tuple[FloatArray, FloatArray]:
    """Probability of each count, and expected number of sources at each place, over all ordered tuples."""
    evidence, expected = np.zeros(most + 1), np.zeros(len(columns))
    for k in range(least, most + 1):
        for placed in itertools.product(range(len(columns)), repeat=k):
            rest = readings - columns[list(placed)].sum(axis=0)
            weight = math.exp(-(rest @ rest) / 2) / len(columns) ** k
            evidence[k] += weight
            np.add.at(expected, list(placed), weight)
    return evidence / evidence.sum(), expected / evidence.sum()


@pytest.mark.parametrize("strength", [0.5, 2.0, 8.0])
@pytest.mark.parametrize(("least", "most"), [(0, 3), (1, 3), (2, 2)])
def test_probabilities_and_draws_equal_a_sum_over_all_ordered_tuples(strength: float, least: int, most: int) -> None:
    rng = np.random.default_rng(3)
    columns, readings = problem(rng, 9, strength)
    evidence, drawn = np.zeros(most + 1), np.zeros((20_000, most), dtype=np.int64)
    left_out = enumerate_placements(terms(columns, readings), least, NO_LIMIT, 0.5, evidence, drawn)
    right, expected = brute_force(columns, readings, least, most)
    np.testing.assert_allclose(evidence, right, atol=1e-10)
    assert left_out < 1e-10
    counted = np.bincount(drawn[drawn >= 0], minlength=len(columns)) / len(drawn)
    np.testing.assert_allclose(counted, expected, atol=3 / len(drawn) * most)


def test_a_count_is_left_out_only_if_it_is_negligible() -> None:
    rng = np.random.default_rng(5)
    columns, readings = problem(rng, 9, 12.0)
    evidence, drawn = np.zeros(5), np.zeros((10, 4), dtype=np.int64)
    left_out = enumerate_placements(terms(columns, readings), 0, NO_LIMIT, 0.5, evidence, drawn)
    right, _ = brute_force(columns, readings, 0, 4)
    assert (evidence == 0).any()
    assert right[evidence == 0].sum() <= left_out < 1e-12


def test_a_count_with_too_many_placements_is_not_guessed_at() -> None:
    rng = np.random.default_rng(6)
    columns, readings = problem(rng, 9, 1.0)
    evidence, drawn = np.zeros(4), np.zeros((10, 3), dtype=np.int64)
    assert math.isinf(enumerate_placements(terms(columns, readings), 0, 100.0, 0.5, evidence, drawn))


def test_readings_that_no_whole_sources_explain_are_handed_on() -> None:
    columns = 40.0 * np.eye(5)
    readings = columns[0] / 2
    evidence, drawn = np.zeros(3), np.zeros((10, 2), dtype=np.int64)
    result = enumerate_placements(terms(columns, readings), 1, NO_LIMIT, 0.5, evidence, drawn)
    assert math.isinf(result) or np.isclose(evidence.sum(), 1)
