"""From the readings of a cloak to sources, with the published accuracy."""

import networkx as nx
import numpy as np
import pytest

from cloakwork.accuracy import emd
from cloakwork.errors import InputError
from cloakwork.physics import Graph, HeatLine, HeatPlane, sources
from cloakwork.privacy import Cloak
from cloakwork.recovery import (
    BasisPursuit,
    Estimator,
    PointSources,
    Problem,
    Status,
    detection_probability,
    extract_sources,
    recover,
)
from papers.calibration import Calibration, PapersPursuit, calibrated


def errors(line: HeatLine, at: list[float], calibration: str, estimator: Estimator) -> tuple[float, float]:
    """Mean earth mover distance over all frames, and over those that the radius does not make infeasible."""
    cloak = calibrated(line, Calibration(calibration), epsilon=1, delta=0.1, alpha=0.01)
    truth = sources(line, at)
    noisy = cloak.simulate(np.tile(line.apply(truth), (500, 1)), rng=np.random.default_rng(11))
    found = recover(noisy, cloak, estimator=estimator)
    each = [emd(row, truth, line.space) if row.sum() > 0 else np.nan for row in found.map]
    solved = [error for error, status in zip(each, found.status, strict=True) if status is Status.SOLVED]
    return float(np.nanmean(each)), float(np.nanmean(solved))


@pytest.mark.parametrize(
    ("at", "calibration", "estimator", "published"),
    [
        ([0.5], "exact", BasisPursuit(), 0.0105),
        ([0.24, 0.76], "paper", PapersPursuit(), 0.172),
        ([0.24, 0.76], "exact", PapersPursuit(), 0.0706),
        ([0.24, 0.76], "exact", BasisPursuit(), 0.047),
    ],
)
def test_the_error_is_the_published_one(
    line: HeatLine, at: list[float], calibration: str, estimator: Estimator, published: float
) -> None:
    assert errors(line, at, calibration, estimator)[0] == pytest.approx(published, rel=0.15)


def test_a_cloak_needs_no_sigma_and_refuses_one(line: HeatLine) -> None:
    cloak = Cloak(line, epsilon=1, delta=1e-6, alpha=0.01)
    with pytest.raises(InputError) as problem:
        recover(np.zeros(50), cloak, sigma=1.0)
    assert problem.value.sigma == 1.0


def test_recovery_reads_only_physics_sigmas_roundings_and_offsets(line: HeatLine) -> None:
    class Bare:
        physics = line
        total_sigmas = np.full(50, 0.1)
        roundings = np.full(50, 0.001)
        offsets = None

    found = recover(line.apply(sources(line, [0.3])), Bare())
    assert found.sources[0].at == pytest.approx(0.3, abs=0.02)


def test_rounding_widens_the_noise() -> None:
    line = HeatLine(n=20, m=10, T=0.05)
    assert Problem.with_noise(line, 0.3, 0.6).noise == pytest.approx(np.sqrt(0.09 + 0.36 / 6))


def test_sources_are_grouped_by_vicinity_heaviest_first(line: HeatLine) -> None:
    weights = np.zeros(100)
    weights[[23, 24]] = [0.3, 0.3]
    weights[75] = 0.9
    weights[50] = 1e-4
    problem = Problem.with_noise(line, 0.5)
    found = extract_sources(weights, problem.range.reduced @ weights, problem)
    assert [round(s.weight, 6) for s in found] == [0.9, 0.6]
    assert found[0].at == pytest.approx(0.76)
    assert found[1].at == pytest.approx(0.245, abs=0.0051)
    assert found[0].radius < found[1].radius


def test_sources_on_a_plane_have_coordinates_and_on_a_graph_names() -> None:
    plane = HeatPlane(n=(10, 10), m=(6, 6), T=0.01)
    found = recover(plane.apply(sources(plane, [(0.3, 0.7)])), plane, sigma=0.01)
    assert found.sources[0].at == pytest.approx((0.3, 0.7))

    graph = Graph(nx.relabel_nodes(nx.path_graph(6), dict(enumerate("abcdef"))), tau=0.5)
    found = recover(graph.apply(sources(graph, ["d"])), graph, sigma=0.001)
    assert found.sources[0].at == "d"
    assert "at d" in str(found)


def test_the_share_of_frames_in_which_a_source_is_noticed_is_right(line: HeatLine) -> None:
    problem = Problem.with_noise(line, 2.0)
    predicted = detection_probability(problem)[49]
    readings = line.apply(sources(line, [0.5])) + 2.0 * np.random.default_rng(6).standard_normal((1500, 50))
    seen = np.mean([status is not Status.EMPTY for status in recover(readings, line, sigma=2.0).status])
    assert 0.3 < predicted < 0.99
    assert seen == pytest.approx(predicted, abs=0.03)


def test_a_second_argument_that_is_no_model_is_refused(line: HeatLine) -> None:
    with pytest.raises(InputError) as problem:
        recover(np.zeros(50), np.zeros(50))  # type: ignore[arg-type]
    assert problem.value.model == "ndarray"


@pytest.mark.parametrize("wrong", ["points", PointSources])
def test_only_an_estimator_is_accepted(wrong: object) -> None:
    with pytest.raises(InputError) as problem:
        recover(np.zeros(50), HeatLine(n=100, m=50, T=0.05), sigma=1.0, estimator=wrong)  # type: ignore[arg-type]
    assert problem.value.estimator is wrong
