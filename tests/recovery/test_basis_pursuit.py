"""Exactness against Clarabel on the unprojected problem, and the certificate against both."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from benchmarks.rivals import Clarabel
from cloakwork.errors import InputError, ReadingError
from cloakwork.physics import (
    FloorPlan,
    Graph,
    HeatLine,
    HeatPlane,
    Matrix,
    Physics,
    Pulse,
    Rooms,
    Space,
    Steady,
    sources,
)
from cloakwork.recovery import BasisPursuit, Recovery, Status, recover
from papers.calibration import PapersPursuit

ROOMS = Rooms.from_walls((4, 3), cell=0.5, walls=[((2, 0), (2, 3))], doors=[((2, 1), (2, 2))])
GRID = [(x, y) for x in (0.6, 1.6, 2.6, 3.6) for y in (0.6, 1.6, 2.6)]
random = np.random.default_rng(5)
MODELS: dict[str, Physics] = {
    "line": HeatLine(n=100, m=50, T=0.05),
    "sharp line": HeatLine(n=60, m=40, T=0.0005),
    "few sensors": HeatLine(n=80, m=4, T=0.01),
    "plane": HeatPlane(n=(9, 8), m=(5, 4), T=0.02),
    "graph": Graph(nx.karate_club_graph(), tau=0.3),
    "graph, some sensors": Graph(
        nx.connected_watts_strogatz_graph(60, 4, 0.2, seed=1), tau=1.0, sensors=list(range(0, 60, 4))
    ),
    "steady": FloorPlan(ROOMS, GRID, Steady(0.7), footprint=0.3),
    "pulse": FloorPlan(ROOMS, GRID, Pulse(0.5)),
    "tall matrix": Matrix(random.normal(size=(40, 12)), Space.line(12)),
    "wide matrix": Matrix(random.normal(size=(10, 50)), Space.line(50)),
    "same columns": Matrix(np.repeat(random.normal(size=(8, 10)), 3, axis=1), Space.line(30)),
}


def draw(model: Physics, rng: np.random.Generator) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], float, float]:
    """Readings of up to four random sources, their noise, and a radius that is sometimes generous, sometimes tight."""
    f = np.zeros(model.places)
    f[rng.choice(model.places, rng.integers(1, 5), replace=False)] = rng.choice([1.0, rng.uniform(0.2, 1)])
    clean = model.apply(f)
    sigma = float(rng.choice([0.01, 0.05, 0.2]) * np.abs(clean).max())
    radius = float(sigma * np.sqrt(model.sensors) * rng.choice([0.9, 1.1, 1.5]))
    return clean + sigma * rng.standard_normal(model.sensors), sigma, radius


def solved_alone(model: Physics, y: np.ndarray[tuple[int], np.dtype[np.float64]], radius: float) -> Recovery:
    return recover(y, model, sigma=1.0, estimator=BasisPursuit(radius=radius))


@pytest.mark.parametrize("name", MODELS)
def test_the_objective_is_clarabels_on_10_instances_that_it_solves(name: str) -> None:
    model = MODELS[name]
    rng = np.random.default_rng(sum(name.encode()))
    rival = Clarabel(model.matrix)
    compared = 0
    for _ in range(30):
        if compared == 10:
            break
        y, _, radius = draw(model, rng)
        found = solved_alone(model, y, radius)
        theirs = rival.solve(y, radius)
        if not theirs.solved:
            continue
        compared += 1
        misfit = float(np.linalg.norm(model.apply(found.map) - y))
        assert found.status in {Status.SOLVED, Status.EMPTY}
        assert found.map.sum() == pytest.approx(theirs.objective, rel=1e-6, abs=1e-7)
        assert misfit <= radius * (1 + 1e-9)
        assert found.map.min() >= 0
        assert found.map.max() <= 1
        assert found.gap <= 1e-7 * max(1.0, found.map.sum())
        # a truthful gap: the total is never further above the optimum than it says
        assert found.map.sum() - theirs.objective <= found.gap + 1e-6 * max(1.0, theirs.objective)
    assert compared == 10


@pytest.mark.parametrize("name", MODELS)
def test_where_nothing_fits_the_best_fit_is_returned_with_its_status(name: str) -> None:
    model = MODELS[name]
    rng = np.random.default_rng(7)
    y = model.apply(rng.uniform(0, 0.05, model.places)) - 3 * np.abs(model.matrix).max()
    found = solved_alone(model, y, 1e-3 * float(np.linalg.norm(y)))
    best = optimize.lsq_linear(model.matrix, y, bounds=(0, 1), tol=1e-14, method="bvls")
    least = float(np.linalg.norm(model.apply(best.x) - y))
    assert least > 1e-3 * np.linalg.norm(y)
    assert found.status is Status.BEST_FIT
    assert np.linalg.norm(model.apply(found.map) - y) == pytest.approx(least, rel=1e-7)
    assert found.gap <= 1e-6 * least
    assert found.violation > 0


def test_caps_at_one_are_respected_and_optimal() -> None:
    line = HeatLine(n=40, m=30, T=0.002)
    y = 3.0 * line.apply(sources(line, [0.5]))
    radius = 0.2 * float(np.linalg.norm(y))
    found = solved_alone(line, y, radius)
    theirs = Clarabel(line.matrix).solve(y, radius)
    assert (found.map > 1 - 1e-9).sum() >= 1
    assert found.map.sum() == pytest.approx(theirs.objective, rel=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 6),
    n=st.integers(1, 8),
    share=st.floats(0.02, 1.2),
    whole=st.booleans(),
)
def test_small_and_degenerate_problems_agree_with_clarabel(
    seed: int, m: int, n: int, share: float, whole: bool
) -> None:
    """One place, one sensor, more sensors than places, equal and zero columns, ties."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-2, 3, size=(m, n)).astype(float) if whole else rng.normal(size=(m, n))
    y = matrix @ rng.choice([0.0, 0.5, 1.0], size=n) + (0 if whole else 0.1 * rng.normal(size=m))
    radius = max(share * float(np.linalg.norm(y)), 1e-3)
    model = Matrix(matrix, Space.line(n))
    found = solved_alone(model, y, radius)
    theirs = Clarabel(matrix).solve(y, radius)
    misfit = float(np.linalg.norm(matrix @ found.map - y))
    assert found.status is not Status.STOPPED
    if theirs.solved:
        assert found.map.sum() == pytest.approx(theirs.objective, abs=2e-6)
        assert misfit <= radius + 1e-9
    if found.status is Status.SOLVED:
        assert found.gap <= 1e-7


def test_a_batch_is_its_frames_one_by_one(line: HeatLine, rng: np.random.Generator) -> None:
    y = line.apply(sources(line, [0.24, 0.76])) + 0.1 * rng.standard_normal((300, 50))
    calls: list[tuple[int, int]] = []
    together = recover(y, line, sigma=0.1, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (300, 300)
    assert together.map.shape == (300, 100)
    for k in (0, 255, 256, 299):
        alone = recover(y[k], line, sigma=0.1)
        assert alone.map == pytest.approx(together.map[k], abs=1e-9)
        assert alone.status is together.status[k]
        assert [s.place for s in alone.sources] == [s.place for s in together.sources[k]]


def test_the_papers_radius_is_infeasible_in_a_third_of_frames_and_ours_is_not(
    line: HeatLine, rng: np.random.Generator
) -> None:
    y = line.apply(sources(line, [0.24, 0.76])) + 0.1 * rng.standard_normal((1500, 50))
    paper = recover(y, line, sigma=0.1, estimator=PapersPursuit())
    ours = recover(y, line, sigma=0.1)
    assert 0.25 <= np.mean([status is Status.BEST_FIT for status in paper.status]) <= 0.37
    assert np.mean([status is Status.BEST_FIT for status in ours.status]) < 0.03


def test_unequal_noise_is_whitened(line: HeatLine, rng: np.random.Generator) -> None:
    sigma = np.linspace(0.02, 2.0, 50)
    y = line.apply(sources(line, [0.3])) + sigma * rng.standard_normal(50)
    found = recover(y, line, sigma=sigma)
    scaled = line.matrix / sigma[:, None]
    theirs = Clarabel(scaled).solve(y / sigma, float(np.sqrt(found.radius**2 + _outside(scaled, y / sigma))))
    assert theirs.solved
    assert found.map.sum() == pytest.approx(theirs.objective, rel=1e-6)


def _outside(
    matrix: np.ndarray[tuple[int, int], np.dtype[np.float64]], y: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> float:
    left, values, _ = np.linalg.svd(matrix, full_matrices=False)
    basis = left[:, values > 1e-10 * values[0]]
    return float(((y - basis @ (basis.T @ y)) ** 2).sum())


def test_a_large_floor_plan_is_recovered() -> None:
    rooms = Rooms.from_walls((10, 10), cell=0.2, walls=[((5, 0), (5, 10))], doors=[((5, 4), (5, 6))])
    grid = [(x, y) for x in np.arange(0.35, 10, 0.7) for y in np.arange(0.35, 10, 0.7)]
    plan = FloorPlan(rooms, grid, Steady(1.0), footprint=0.5)
    truth = sources(plan, [(2.5, 2.5), (7.5, 8.0)])
    found = recover(plan.apply(truth), plan, sigma=0.002)
    assert found.status is Status.SOLVED
    assert found.gap < 1e-7
    assert [s.radius < 1.0 for s in found.sources[:2]] == [True, True]
    heaviest = sorted(s.at for s in found.sources[:2])
    assert np.abs(np.array(heaviest) - [(2.5, 2.5), (7.5, 8.0)]).max() < 0.3


@pytest.mark.parametrize(
    ("readings", "options", "attribute"),
    [
        (np.zeros(49), {"sigma": 0.1}, "width"),
        (np.full(50, np.nan), {"sigma": 0.1}, "where"),
        (np.zeros((2, 2, 50)), {"sigma": 0.1}, "shape"),
        (np.zeros(50), {}, "sigma"),
        (np.zeros(50), {"sigma": 0}, "sigma"),
        (np.zeros(50), {"sigma": [1, 2]}, "sensors"),
    ],
)
def test_bad_readings_and_noise_are_refused(
    line: HeatLine, readings: np.ndarray[tuple[int, ...], np.dtype[np.float64]], options: dict[str, Any], attribute: str
) -> None:
    with pytest.raises(InputError) as problem:
        recover(readings, line, **options)
    assert attribute in problem.value.values
    assert isinstance(problem.value, ReadingError) == (attribute in {"width", "where", "shape"})


@pytest.mark.parametrize("estimator", [{"radius": -1.0}, {"radius": float("nan")}])
def test_a_meaningless_radius_is_refused(estimator: dict[str, float]) -> None:
    with pytest.raises(InputError):
        BasisPursuit(**estimator)
