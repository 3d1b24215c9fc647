"""Trials on the line: truths, noise, methods and distances."""

import numpy as np
import pytest

from cloakwork.accuracy import emd
from cloakwork.physics import Space
from papers.rows import Mean
from papers.trials import Distances


def test_distances_are_those_of_the_measures() -> None:
    rng = np.random.default_rng(1)
    truth, maps = rng.random((20, 13)), rng.random((20, 13)) * (rng.random((20, 13)) < 0.4)
    maps[:, 3] += 0.1
    found = Distances.between(truth, maps)
    for number, (a, b) in enumerate(zip(truth, maps, strict=True)):
        assert found.emd[number] == pytest.approx(emd(b, a, Space.line(13)), rel=1e-12)
        apart = b / b.sum() - a / a.sum()
        assert found.l1[number] == pytest.approx(np.linalg.norm(apart, 1), rel=1e-12)
        assert found.l2[number] == pytest.approx(np.linalg.norm(apart), rel=1e-12)


def test_an_empty_map_counts_as_the_uniform_one() -> None:
    n = 10
    found = Distances.between(np.eye(n), np.zeros((n, n)))
    places = np.arange(n)
    expected = [np.abs(places - place).sum() / n**2 for place in places]
    assert found.emd == pytest.approx(expected)
    assert found.l1 == pytest.approx(np.full(n, 2 * (1 - 1 / n)))


@pytest.mark.parametrize(("over", "under"), [(300, 300), (600, 200), (200, 600)])
def test_the_error_of_a_ratio_is_that_of_many_runs(over: int, under: int) -> None:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(600):
        shared = rng.exponential(size=max(over, under))
        found.append(Mean.ratio((shared + rng.exponential(size=len(shared)))[:over], shared[:under]))
    values = np.array([one.value for one in found])
    assert values.mean() == pytest.approx(2.0, abs=0.02)
    assert np.mean([one.error for one in found]) == pytest.approx(values.std(), rel=0.12)
