"""Point sources: accuracy, maps, vicinities, and the same interface as every other estimator."""

import networkx as nx
import numpy as np
import pytest
from scipy import optimize

from cloakwork._checks import FloatArray, IntArray
from cloakwork.accuracy import cramer_rao, emd
from cloakwork.errors import InputError
from cloakwork.physics import FloorPlan, Graph, HeatLine, HeatPlane, Matrix, Physics, Rooms, Space, Steady, sources
from cloakwork.privacy import Cloak
from cloakwork.recovery import Fit, PointSources, Problem, Recovery, Status, recover
from cloakwork.recovery.lattice import Lattice
from cloakwork.recovery.posterior import posterior, summarise
from cloakwork.recovery.sampling import Prior

LINE = HeatLine(n=100, m=50, T=0.05)
CLOAK = Cloak(LINE, epsilon=1.0, delta=0.1, alpha=0.01)


def flat(cell: float = 0.5) -> FloorPlan:
    rooms = Rooms.from_walls((5, 4), cell=cell, walls=[((2.5, 0), (2.5, 4))], doors=[((2.5, 1.5), (2.5, 2.5))])
    at = [(x, y) for x in np.arange(0.5, 5, 1.0) for y in np.arange(0.5, 4, 1.0)]
    return FloorPlan(rooms, at, Steady(1.0), footprint=0.5)


def frames(rng: np.random.Generator, number: int, k: int) -> FloatArray:
    truth = np.zeros((number, LINE.places))
    for row in truth:
        row[rng.choice(LINE.places, k, replace=False)] = 1.0
    return truth


def test_one_source_is_found_as_well_as_cramer_and_rao_allow() -> None:
    rng = np.random.default_rng(11)
    at = rng.uniform(0.2, 0.8, 150)
    noisy = CLOAK.simulate(LINE.columns_at(at[:, None]).T, rng=rng)
    found = recover(noisy, CLOAK, estimator=PointSources(strength=1.0))
    error = np.mean([abs(listed[0].at - x) for listed, x in zip(found.sources, at, strict=True)])
    limit = np.mean([cramer_rao(LINE, [x], CLOAK.sigma).expected_emd for x in at])
    assert error < 1.15 * limit


@pytest.mark.parametrize("strength", [0.8, (0.0, 1.0), None], ids=["known", "free", "common"])
@pytest.mark.parametrize(
    "physics",
    [
        LINE,
        HeatPlane(n=(10, 8), m=(5, 4), T=0.02),
        flat(),
        Graph(nx.path_graph(12), tau=1.0),
        Matrix(np.eye(6), Space.line(6)),
    ],
    ids=lambda physics: type(physics).__name__,
)
def test_every_physics_and_every_strength_recovers_two_clear_sources(
    physics: Physics, strength: float | tuple[float, float] | None
) -> None:
    truth = np.zeros(physics.places)
    truth[[physics.places // 4, physics.places - 2]] = 0.8
    readings = physics.apply(truth)
    sigma = 0.01 * float(np.linalg.norm(readings)) / np.sqrt(physics.sensors)
    found = recover(readings, physics, sigma=sigma, estimator=PointSources(strength=strength))
    assert emd(found.map, truth, physics.space) < 0.7 * float(physics.space.lengths.max())
    assert found.map.sum() == pytest.approx(1.6, rel=0.05)
    assert not found.fit.doubtful
    if strength == 0.8:
        assert found.counts[2] > 0.999
        assert sorted(s.place for s in found.sources) == np.flatnonzero(truth).tolist()


def expected_error(found: FloatArray, draws: FloatArray, space: Space) -> float:
    return float(np.mean([emd(found, f, space) for f in draws]))


def drawn_maps(lattice: Lattice, data: FloatArray, prior: Prior, number: int) -> tuple[FloatArray, FloatArray]:
    """Maps of single draws, and the map that is reported."""
    found = posterior(lattice, data, prior, np.random.default_rng(1), None)
    maps = np.zeros((number, len(lattice.space)))
    for row, one in zip(np.linspace(0, len(found.draws.counts) - 1, number).astype(int), maps, strict=True):
        k = found.draws.counts[row]
        np.add.at(one, lattice.place[found.draws.at[row, :k]], found.draws.strength[row, :k])
    return maps, summarise(found, lattice, 0.9, Fit(1.0, 0.0, 0)).map


def test_the_map_on_a_line_has_the_least_expected_error_of_all_maps() -> None:
    lattice = Lattice(Problem.with_noise(LINE, 0.4), 1.0)
    data = lattice.coarse[[30, 37]].sum(axis=0) + np.random.default_rng(3).standard_normal(LINE.range().rank)
    maps, reported = drawn_maps(lattice, data, Prior(0.0, 1.0, False, 1, 3), 400)
    cumulative = np.cumsum(maps / maps.sum(axis=1, keepdims=True), axis=1)
    best = np.abs(cumulative - np.median(cumulative, axis=0)).mean(axis=0).sum() * 0.01
    assert expected_error(reported, maps, LINE.space) <= 1.02 * best


def test_the_map_on_a_plan_is_no_worse_than_the_best_draw_and_far_from_twice_the_best() -> None:
    plan = flat()
    lattice = Lattice(Problem.with_noise(plan, 0.03), 1.0)
    rng = np.random.default_rng(6)
    data = lattice.fine[[10, 60]].sum(axis=0) + rng.standard_normal(lattice.fine.shape[1])
    maps, reported = drawn_maps(lattice, data, Prior(1.0, 1.0, False, 1, 3), 60)
    errors = [expected_error(one, maps, plan.space) for one in maps[:30]]
    assert expected_error(reported, maps, plan.space) <= min(errors) * 1.02
    assert expected_error(reported, maps, plan.space) < 0.85 * np.mean(errors)


def held(found: Recovery, truth: list[IntArray], space: Space) -> float:
    number = total = 0
    for listed, places in zip(found.sources, truth, strict=True):
        apart = np.array([space.distances(s.place)[places] for s in listed]).reshape(len(listed), len(places))
        for i, j in zip(*optimize.linear_sum_assignment(apart), strict=True):
            number += int(places[j] in listed[i].vicinity)
        total += len(places)
    return number / total


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_vicinities_hold_their_source_as_often_as_they_say(level: float) -> None:
    rng = np.random.default_rng(8)
    truth = [rng.integers(0, 100, rng.integers(1, 4)) for _ in range(150)]
    noisy = CLOAK.simulate(np.stack([LINE.matrix[:, places].sum(axis=1) for places in truth]), rng=rng)
    found = recover(noisy, CLOAK, estimator=PointSources(strength=1.0, confidence=level))
    assert held(found, truth, LINE.space) == pytest.approx(level, abs=0.06)


def test_vicinities_of_free_strengths_on_a_plan_hold_their_source_as_often_as_they_say() -> None:
    plan = flat()
    rng = np.random.default_rng(9)
    truth = [rng.integers(0, plan.places, rng.integers(1, 4)) for _ in range(50)]
    readings = np.stack([plan.matrix[:, places] @ rng.uniform(0, 1, len(places)) for places in truth])
    noisy = readings + 0.02 * rng.standard_normal(readings.shape)
    found = recover(noisy, plan, sigma=0.02, estimator=PointSources(strength=(0.0, 1.0), max_sources=3, min_sources=1))
    assert held(found, truth, plan.space) == pytest.approx(0.9, abs=0.07)


def test_the_radius_reaches_the_farthest_place_of_the_vicinity() -> None:
    plan = flat(0.25)
    noisy = plan.apply(sources(plan, [(1.0, 1.0), (4.0, 3.0)])) + 0.02 * np.random.default_rng(2).standard_normal(20)
    found = recover(noisy, plan, sigma=0.02, estimator=PointSources())
    assert found.sources
    for source in found.sources:
        assert source.radius == pytest.approx(plan.space.distances(source.place)[source.vicinity].max(), rel=1e-6)
        assert 0 < source.probability <= 1


def test_an_empty_room_is_called_empty() -> None:
    found = recover(CLOAK.simulate(np.zeros((5, 50)), rng=np.random.default_rng(0)), CLOAK, estimator=PointSources())
    assert found.sources == ((),) * 5
    assert set(found.status) == {Status.NOBODY}
    assert (found.counts[:, 0] > 0.99).all()


def test_the_same_readings_give_the_same_answer_and_another_seed_nearly_the_same() -> None:
    noisy = CLOAK.simulate(LINE.apply(sources(LINE, [0.3, 0.5], [0.7, 0.7])), rng=np.random.default_rng(1))
    first, again, other = (recover(noisy, CLOAK, estimator=PointSources((0.0, 1.0), seed=seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.map, again.map)
    assert emd(first.map, other.map, LINE.space) < 0.02 + first.gap + other.gap


def test_a_batch_gives_what_single_frames_give() -> None:
    noisy = CLOAK.simulate(LINE.apply(frames(np.random.default_rng(4), 3, 2)), rng=np.random.default_rng(5))
    together = recover(noisy, CLOAK, estimator=PointSources())
    alone = [recover(one, CLOAK, estimator=PointSources()) for one in noisy]
    for batch_map, one in zip(together.map, alone, strict=True):
        assert emd(batch_map, one.map, LINE.space) < 0.005
    assert len(recover(noisy[:0], CLOAK, estimator=PointSources())) == 0


@pytest.mark.parametrize(
    "options",
    [
        {"strength": -1.0},
        {"strength": (1.0, 0.5)},
        {"strength": "strong"},
        {"strength": "1"},
        {"strength": True},
        {"strength": (0.0, 0.0)},
        {"max_sources": 0},
        {"max_sources": 10_001},
        {"min_sources": 5},
        {"confidence": 1.0},
    ],
)
def test_bad_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError) as problem:
        PointSources(**options)  # type: ignore[arg-type]
    assert problem.value.values == options


def test_too_many_places_along_paths_are_refused() -> None:
    graph = Graph(nx.path_graph(6_001), tau=1.0, sensors=[0, 3_000])
    with pytest.raises(InputError) as problem:
        recover(np.zeros(2), graph, sigma=1.0, estimator=PointSources())
    assert problem.value.places == 6_001


@pytest.mark.parametrize("sigma", [1e-5, 1e-7])
def test_noise_below_what_candidates_resolve_is_not_blamed_on_the_model(sigma: float) -> None:
    rng = np.random.default_rng(2)
    noisy = LINE.columns_at(rng.uniform(0.1, 0.9, (2, 1))).T + sigma * rng.standard_normal((2, 50))
    found = recover(noisy, LINE, sigma=sigma, estimator=PointSources())
    assert not any(fit.doubtful for fit in found.fit)
    assert (found.counts[:, 1] > 0.99).all()


def test_the_number_of_cores_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = CLOAK.simulate(LINE.apply(frames(np.random.default_rng(4), 10, 2)) * 0.6, rng=np.random.default_rng(5))
    maps = []
    for cores in (1, 7):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        maps.append(recover(noisy, CLOAK, estimator=PointSources((0.0, 1.0))).map)
    np.testing.assert_array_equal(maps[0], maps[1])


@pytest.mark.parametrize("strength", [1.0, (0.0, 1.0), None])
@pytest.mark.parametrize(
    "physics",
    [
        HeatLine(n=1, m=5, T=0.1),
        HeatPlane(n=(1, 8), m=(3, 3), T=0.05),
        Matrix(np.zeros((3, 4)), Space.line(4)),
        HeatLine(n=2, m=1, T=0.1),
    ],
    ids=["one place", "a row of places", "nothing seen", "one sensor"],
)
def test_small_and_blind_models_answer(physics: Physics, strength: float | tuple[float, float] | None) -> None:
    found = recover(np.full(physics.sensors, 0.1), physics, sigma=0.1, estimator=PointSources(strength))
    assert np.isclose(found.counts.sum(), 1)
    if not physics.matrix.any():
        np.testing.assert_allclose(found.counts, 0.2, atol=0.12)
