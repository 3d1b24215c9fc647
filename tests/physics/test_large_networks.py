"""Networks whose matrix is never formed: the kernel, its slopes and the readers of edges, against dense algebra."""

from pathlib import Path
from typing import Any

import mpmath
import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import linalg

from cloakwork.errors import CalibrationError, PhysicsError
from cloakwork.physics import Graph, Laplacian, network_slope
from cloakwork.physics import graph as graph_module
from cloakwork.physics.network_kernel import POLES, RATIONAL, RESIDUES, NetworkKernel
from cloakwork.privacy import Cloak

STREETS = nx.to_scipy_sparse_array(nx.grid_2d_graph(9, 9))
HUBS = nx.to_scipy_sparse_array(nx.barabasi_albert_graph(200, 3, seed=1))


@pytest.fixture
def unformed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every graph as too large for its matrix."""
    monkeypatch.setattr(graph_module, "MAX_EXPLICIT", 0)


@pytest.mark.parametrize("rational", [False, True])
@pytest.mark.parametrize("kind", ["heat", "walk"])
@pytest.mark.parametrize("adjacency", [STREETS, HUBS])
def test_kernel_is_the_exponential_within_its_error(adjacency: Any, kind: str, rational: bool) -> None:
    kernel: NetworkKernel = getattr(NetworkKernel, kind)(adjacency, 1.3)
    kernel.__dict__["rational"] = rational
    L = np.diag(kernel.diagonal) - kernel.W.toarray()
    assert np.linalg.eigvalsh(L)[-1] <= kernel.bound
    columns = np.random.default_rng(1).normal(size=(len(L), 19))
    apart = kernel.apply(columns) - linalg.expm(-1.3 * L) @ columns
    assert (np.linalg.norm(apart, axis=0) <= kernel.error * np.linalg.norm(columns, axis=0)).all()


def test_rational_sum_is_as_near_to_the_exponential_as_it_states() -> None:
    """Against mpmath, from 0 to where both have vanished."""
    points = np.concatenate([np.linspace(0, 50, 2001), np.geomspace(50, 1e8, 300)])
    poles, residues = ([mpmath.mpc(value) for value in values] for values in (POLES, RESIDUES))
    for x in points:
        value = 2 * sum((c / (mpmath.mpf(x) + z)).real for z, c in zip(poles, residues, strict=True))
        assert abs(value - mpmath.exp(-mpmath.mpf(x))) <= RATIONAL


@pytest.mark.parametrize("kind", list(Laplacian))
@pytest.mark.parametrize("adjacency", [STREETS, HUBS])
def test_unformed_matrix_acts_like_the_formed_one(adjacency: Any, kind: Laplacian, monkeypatch: Any) -> None:
    sensors = [3, 3, 70, 12]
    formed = Graph(adjacency, 0.8, sensors, gain=2.0, laplacian=kind)
    matrix = formed.matrix.copy()
    expected = linalg.expm(-0.8 * formed.laplacian.toarray())[sensors] * 2
    assert np.abs(matrix - expected).max() < 1e-12
    monkeypatch.setattr(graph_module, "MAX_EXPLICIT", 0)
    rng = np.random.default_rng(2)
    maps, readings = rng.normal(size=(2, 3, matrix.shape[1])), rng.normal(size=(3, 4))
    assert np.abs(formed.apply(maps) - maps @ matrix.T).max() < 1e-8
    assert np.abs(formed.adjoint(readings) - readings @ matrix).max() < 1e-8


def test_a_random_walk_loses_no_weight() -> None:
    walk = Graph(HUBS, 2.0, laplacian="normalised", gain=3.0)
    assert walk.matrix.sum(axis=0) == pytest.approx(np.full(200, 3.0), rel=1e-12)
    assert walk.matrix.min() >= 0


@pytest.mark.parametrize("kind", list(Laplacian))
@pytest.mark.parametrize(("adjacency", "tau"), [(STREETS, 1.0), (HUBS, 0.3), (HUBS, 1.5)])
def test_slope_without_a_matrix_is_never_too_small(
    adjacency: Any, tau: float, kind: Laplacian, monkeypatch: Any
) -> None:
    weights = np.random.default_rng(3).uniform(0.5, 2.0, adjacency.shape[0])
    graph = Graph(adjacency, tau, laplacian=kind)
    true = graph.steps().norms(weights)
    monkeypatch.setattr(graph_module, "MAX_EXPLICIT", 0)
    slopes = graph.edge_slopes(weights)
    assert (slopes.upper >= true).all()
    local = slopes.doubt == 0
    assert local or (adjacency is HUBS and tau == 1.5 and kind is Laplacian.COMBINATORIAL)
    assert graph.moves().steepest(weights).value <= true.max() * (1.01 if local else 1.6)
    if local:
        assert (2 * slopes.values - slopes.upper <= true).all()


@pytest.mark.parametrize("kind", list(Laplacian))
@pytest.mark.parametrize(
    ("graph", "tau", "sensors"),
    [
        (nx.star_graph(300), 0.1, None),
        (nx.star_graph(60), 1.0, [0]),
        (nx.path_graph(500), 300.0, None),
        (nx.random_regular_graph(20, 200, seed=1), 1.0, None),
        (nx.barabasi_albert_graph(300, 3, seed=1), 0.3, None),
    ],
)
def test_a_sketch_is_tight_whatever_the_near_part_is_worth(
    graph: Any, tau: float, sensors: list[int] | None, kind: Laplacian, monkeypatch: Any
) -> None:
    physics = Graph(graph, tau, sensors, laplacian=kind)
    true = physics.steps().norms()
    monkeypatch.setattr(graph_module, "MAX_EXPLICIT", 0)
    monkeypatch.setattr(network_slope, "MAX_JUMPS", 0.0)  # no edge is local
    slopes = physics.edge_slopes()
    assert (slopes.upper >= true - 1e-15).all()
    if true.max() > 1e-9:  # else roundings are all that is seen
        assert slopes.upper.max() <= 1.6 * true.max()


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95, 1.0, 3.0, -1.0])
def test_a_bound_from_random_readings_is_too_small_no_more_often_than_stated(share: float) -> None:
    rng, trials, rows, doubt = np.random.default_rng(1), 40_000, 16, 0.1
    true = np.r_[3.0, 2.0, 1.0, np.full(20, 0.3)]
    near = share * np.r_[true[:3], np.zeros(20)]  # with 0 nothing is known, and with 3 and -1 what is known is wrong
    numbers = rng.standard_normal((trials, rows, len(true)))
    readings, known = numbers @ true, numbers @ near
    sums = np.stack([(readings**2).sum(1), (readings * known).sum(1), (known**2).sum(1)], axis=1)
    bounds = network_slope.norm_bounds(sums, np.full(trials, np.linalg.norm(near)), rows, doubt)
    failed = float((bounds < np.linalg.norm(true)).mean())
    assert failed <= doubt
    assert failed > 0 or share == 1.0
    if share == 1.0:  # the known part is most of it
        alone = network_slope.norm_bounds(sums * [1, 0, 0], np.zeros(trials), rows, doubt)
        assert bounds.mean() < 0.9 * alone.mean()


def test_the_doubt_of_a_sketch_counts_against_delta(unformed: None) -> None:
    hubs = Graph(HUBS, 1.5)
    assert 0 < hubs.doubt <= 1e-8
    assert 1 < hubs.looseness() < 1.6
    true = np.linalg.norm(linalg.expm(-1.5 * hubs.laplacian.toarray()), axis=0)
    # estimated from the readings of that sketch; a recovery compares columns, so errors count beside the largest norm
    assert hubs.column_norms() == pytest.approx(true, abs=0.15 * true.max())
    with pytest.raises(CalibrationError) as problem:
        Cloak(hubs, epsilon=2.0, delta=hubs.doubt / 2, alpha=1.0)
    assert problem.value.delta == hubs.doubt / 2


def test_edges_come_from_csv_parquet_and_pairs(tmp_path: Path) -> None:
    """With a self-loop, a repeated edge and one given in the other direction."""
    (tmp_path / "e.csv").write_text("source,target,weight,length\na,b,2,1\nb,c,1,3\nc,c,5,1\nb,a,2,1\n")
    table = {"source": ["a", "b"], "target": ["b", "c"], "weight": [2.0, 1.0], "length": [1.0, 3.0]}
    pq.write_table(pa.table(table), tmp_path / "e.parquet")
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_edge("a", "b", weight=2.0, length=1.0)
    graph.add_edge("b", "c", weight=1.0, length=3.0)
    expected = Graph(graph, 0.7)
    for name in ("e.csv", "e.parquet"):
        read = Graph.from_edges(tmp_path / name, 0.7)
        assert read.space.labels == ("a", "b", "c")
        assert np.allclose(read.matrix, expected.matrix, atol=1e-14)
        assert read.space.distances(0).tolist() == [0.0, 1.0, 4.0]
    assert Graph.from_edges([(7, 9), (9, 8), (9, 7)], 0.7).space.labels == (7, 8, 9)
    assert Graph.from_edges(np.array([[0, 1], [1, 2]]), 0.7).space.labels is None


@pytest.mark.parametrize(
    ("text", "labels", "weights"),
    [
        ("hall,attic,2\nhall,shed,0.5\n", ("attic", "hall", "shed"), [2.0, 0.5]),
        ("# a web graph\n\n5\t3\n# 7\t8\n5\t4\n", (3, 4, 5), [1.0, 1.0]),
        ("Source;Target;Label;Weight\n1;2;x;3.5\n2;3;;1\n", (1, 2, 3), [3.5, 1.0]),
        ("\ufefffrom, to, weight\r\na, b, 2\r\nb , c, 1\r\n", ("a", "b", "c"), [2.0, 1.0]),
        ("source,target\n007,7\n7,true\n", ("007", "7", "true"), [1.0, 1.0]),
    ],
)
def test_a_csv_file_may_have_no_header_other_delimiters_comments_and_any_names(
    tmp_path: Path, text: str, labels: tuple[object, ...] | None, weights: list[float]
) -> None:
    path = tmp_path / "edges.csv"
    path.write_text(text, encoding="utf-8", newline="")
    graph = Graph.from_edges(path, 1.0)
    assert graph.space.labels == labels
    assert [graph.adjacency[u, v] for u, v in graph.space.pairs] == weights


@pytest.mark.parametrize(
    ("text", "attribute"),
    [
        ("", "source"),
        ("first,second,third\na,b,1\n", "columns"),
        ("source,target\na,b\nb,c", "source"),
        ("source,target\na,\n", "source"),
        ("source,target,weight\na,b,nan\n", "edge"),
        ("source,target,weight\na,b,heavy\n", "source"),
        ("source,target,weight\na,b,1\nb,a,2\n", "edge"),
        ("source,target\n" + "".join(f"a{k},b{k}\n" for k in range(1000)), "places"),
    ],
)
def test_edge_lists_that_say_something_impossible_are_refused(tmp_path: Path, text: str, attribute: str) -> None:
    path = tmp_path / "edges.csv"
    path.write_text(text)
    with pytest.raises(PhysicsError) as problem:
        Graph.from_edges(path, 1.0)
    assert attribute in problem.value.values


@pytest.mark.usefixtures("unformed")
def test_unequal_noise_covers_heat_that_arrives_later_at_a_precise_sensor() -> None:
    """Long edges around one sensor hide it from a move at first; later the heat of steeper edges arrives there."""
    path = nx.path_graph(61)
    nx.set_edge_attributes(path, {(u, v): 100.0 if 25 <= u < 35 else 1.0 for u, v in path.edges}, "length")
    graph = Graph(path, 0.5)
    base = float(Cloak(graph, epsilon=1.0, delta=1e-6, alpha=1.0, readings_per_window=16).sigma)
    sigma = np.full(61, 1.05 * base)
    sigma[30] = 0.0058 * base
    values, vectors = np.linalg.eigh(nx.laplacian_matrix(path, weight=None).toarray().astype(float))
    kernel = (vectors * np.exp(-5.0 * values)) @ vectors.T
    lengths = np.where((np.arange(60) >= 25) & (np.arange(60) < 35), 100.0, 1.0)
    later = np.linalg.norm((kernel[:, 1:] - kernel[:, :-1]) / sigma[:, None], axis=0) / lengths
    allowed = Cloak(graph, epsilon=1.0, delta=1e-6, alpha=1.0, readings_per_window=16).frame_mu
    assert later.max() > allowed
    with pytest.raises(CalibrationError):
        Cloak(graph, epsilon=1.0, delta=1e-6, alpha=1.0, readings_per_window=16, sigma=sigma)


def test_stiff_network_stays_within_its_stated_error() -> None:
    """Weights of 5.8e7 beside 1: residuals of conjugate gradients drift from the true ones. Against mpmath."""
    weights, tau = [5.8e7, 1.0, 5.8e7], 18.35
    path = nx.path_graph(4)
    nx.set_edge_attributes(path, {(k, k + 1): weight for k, weight in enumerate(weights)}, "weight")
    kernel = NetworkKernel.heat(nx.to_scipy_sparse_array(path), tau)
    with mpmath.workdps(50):
        L = mpmath.matrix(nx.laplacian_matrix(path).toarray().tolist())
        values, vectors = mpmath.eigsy(L)
        decay = mpmath.diag([mpmath.exp(-tau * value) for value in values])
        exact = np.array((vectors * decay * vectors.T).tolist(), dtype=float)
    assert kernel.rational
    assert np.linalg.norm(kernel.apply(np.eye(4)) - exact, axis=0).max() <= kernel.error
