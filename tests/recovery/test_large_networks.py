"""Recovery on networks whose matrix is never formed, against the estimators that have it."""

from typing import Any

import networkx as nx
import numpy as np
import pytest

from cloakwork.errors import InputError
from cloakwork.physics import Graph, sources
from cloakwork.physics import graph as graph_module
from cloakwork.recovery import BasisPursuit, Bregman, Estimator, PointSources, Recovery, Status, recover

STREETS = nx.to_scipy_sparse_array(nx.grid_2d_graph(9, 9))
SIGMA = 0.1


def both(
    estimator: Estimator, monkeypatch: Any, *, sigma: float = SIGMA, tau: float = 0.6
) -> tuple[Recovery, Recovery]:
    """The same noisy readings of two sources, recovered with the matrix and without it."""
    formed, unformed = Graph(STREETS, 0.6), Graph(STREETS, 0.6)
    noise = sigma * np.random.default_rng(5).normal(size=81)
    readings = formed.apply(sources(formed, [20, 60])) + noise
    first = recover(readings, formed, sigma=sigma, estimator=estimator)
    monkeypatch.setattr(graph_module, "MAX_EXPLICIT", 0)
    return first, recover(readings, unformed, sigma=sigma, estimator=estimator)


def test_one_source_is_weighed_on_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    formed, unformed = both(PointSources(1.0, max_sources=1), monkeypatch)
    assert unformed.status is Status.WEIGHED
    assert unformed.counts == pytest.approx(formed.counts, abs=0.01)
    assert np.abs(unformed.intensity - formed.intensity).sum() < 0.03


def test_several_sources_have_the_same_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    formed, unformed = both(PointSources(1.0, max_sources=3), monkeypatch, sigma=0.05)
    assert np.abs(unformed.counts - formed.counts).sum() / 2 < 0.1
    assert np.abs(unformed.intensity - formed.intensity).sum() / 2 < 0.25
    assert int(unformed.counts.argmax()) == len(unformed.sources) == 2
    for place in (20, 60):
        assert any(place in source.vicinity for source in unformed.sources)


def test_columns_where_they_are_needed_give_the_same_least_map(monkeypatch: pytest.MonkeyPatch) -> None:
    formed, unformed = both(BasisPursuit(), monkeypatch, sigma=0.03)
    assert unformed.status is Status.SOLVED
    assert unformed.map.sum() == pytest.approx(formed.map.sum(), rel=1e-6)
    assert 0 <= unformed.gap < 1e-6
    assert unformed.violation < 1e-9


def test_readings_without_a_source_give_an_empty_map(monkeypatch: pytest.MonkeyPatch) -> None:
    assert both(BasisPursuit(), monkeypatch, sigma=5.0)[1].status is Status.EMPTY


@pytest.mark.parametrize("estimator", [Bregman(), PointSources(None), PointSources((0.5, 1.0))])
def test_estimators_that_need_the_matrix_are_refused(estimator: Estimator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_module, "MAX_EXPLICIT", 0)
    with pytest.raises(InputError):
        recover(np.zeros(81), Graph(STREETS, 0.6), sigma=1.0, estimator=estimator)
