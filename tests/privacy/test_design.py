"""Noise of least error: the same guarantee for every physics, checked by brute force, and the published gain."""

import math
from typing import Any

import networkx as nx
import numpy as np
import pytest

from cloakwork.accuracy import emd
from cloakwork.errors import CalibrationError
from cloakwork.physics import (
    Drift,
    Family,
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
    Timing,
    Tolerance,
)
from cloakwork.privacy import (
    Assumptions,
    Cloak,
    Scope,
    largest_mu,
    place_variances,
    tiled_design,
)
from cloakwork.privacy import design as search
from cloakwork.privacy.variance import LocationError
from tests.options import grouped

ROOMS = Rooms.from_walls((3, 2), cell=0.5, walls=[((1.5, 0), (1.5, 2))], doors=[((1.5, 0.5), (1.5, 1.5))])
SENSORS = [(0.6, 0.6), (1.2, 1.7), (2.4, 1.1), (1.6, 0.9), (0.3, 1.8), (2.9, 0.2)]
MODELS: dict[str, Physics] = {
    "line": HeatLine(n=12, m=5, T=0.02),
    "line anywhere": HeatLine(n=12, m=5, T=0.002, placement="anywhere"),
    "plane": HeatPlane(n=(4, 3), m=(3, 2), T=0.03),
    "graph": Graph(nx.karate_club_graph(), tau=0.4, sensors=[0, 5, 16, 33]),
    "steady": FloorPlan(ROOMS, SENSORS, Steady(0.8), footprint=0.3),
    "pulse": FloorPlan(ROOMS, SENSORS, Pulse(0.6)),
    "matrix": Matrix(
        np.random.default_rng(1).normal(size=(4, 6)), Space.path([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0], [4, 5]])
    ),
}
CLAIM: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "alpha": 0.3}
MU = largest_mu(2.0, 1e-5)


def designed(model: Physics, **options: Any) -> Cloak:
    return Cloak(model, **grouped(CLAIM | options), design="least-error")


def worst_shift(cloak: Cloak, rng: np.random.Generator, *, trials: int) -> float:
    """The largest shift of a frame, in standard deviations, over neighbour pairs and random moves of total alpha."""
    model, space = cloak.physics, cloak.physics.space
    i, j = space.pairs.T
    lengths = space.lengths
    share = np.minimum(1.0, cloak.alpha / lengths)
    pairs = np.sqrt((((model.matrix[:, i] - model.matrix[:, j]) * share / cloak.sigmas[:, None]) ** 2).sum(axis=0))
    worst = float(pairs.max())
    for _ in range(trials):
        f = rng.dirichlet(np.full(model.places, 0.3))
        moved, left = f.copy(), cloak.alpha
        for pair in rng.integers(len(i), size=5):  # several small moves along neighbour pairs
            weight = min(moved[i[pair]], left / lengths[pair])
            moved[i[pair]] -= weight
            moved[j[pair]] += weight
            left -= weight * lengths[pair]
        distance = emd(f, moved, space)
        assert distance <= cloak.alpha * (1 + 1e-9)
        worst = max(worst, float(np.linalg.norm(model.apply(moved - f) / cloak.sigmas)))
    return worst


@pytest.mark.parametrize("name", MODELS)
def test_brute_force_neighbours_never_exceed_the_guarantee(name: str, rng: np.random.Generator) -> None:
    cloak = designed(MODELS[name])
    rounding = float(np.linalg.norm(cloak.steps / cloak.sigmas))
    worst = worst_shift(cloak, rng, trials=60)
    assert worst + rounding <= cloak.frame_mu <= MU
    assert worst + rounding >= 0.3 * MU


@pytest.mark.parametrize("name", MODELS)
def test_the_guarantee_is_used_to_the_full_and_less_noise_is_refused(name: str) -> None:
    cloak = designed(MODELS[name])
    assert cloak.frame_mu == pytest.approx(MU, rel=1e-6)
    assert cloak.resolution_cost == pytest.approx(0.01, rel=1e-3)
    Cloak(MODELS[name], **CLAIM, sigma=cloak.sigmas * (1 + 1e-9))
    with pytest.raises(CalibrationError, match="sigma"):
        Cloak(MODELS[name], **CLAIM, sigma=0.99 * cloak.sigmas)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("scope", [Scope.NETWORK, Scope.SENSOR])
def test_the_error_is_never_above_that_of_equal_noise(name: str, scope: Scope) -> None:
    own, same = designed(MODELS[name], scope=scope), Cloak(MODELS[name], **CLAIM, scope=scope)
    report = own.design_report
    assert report.variance == pytest.approx(place_variances(MODELS[name], own.sigmas).mean())
    assert report.equal_variance == pytest.approx(place_variances(MODELS[name], same.sigma).mean())
    assert report.variance <= report.equal_variance * (1 + 1e-9)
    assert report.vicinity == pytest.approx(math.sqrt(np.median(place_variances(MODELS[name], own.sigmas))))
    assert 1 <= report.carrying <= MODELS[name].sensors


@pytest.mark.parametrize("name", ["line", "plane", "graph", "steady"])
def test_noise_that_knows_the_drift_locates_better_at_the_same_guarantee(name: str, rng: np.random.Generator) -> None:
    model, drift = MODELS[name], Drift(sensor=0.1, all=2.0)
    knowing, plain = designed(model, drift=drift), designed(model)
    aware, blind = (place_variances(model, cloak.sigmas, drift=drift).mean() for cloak in (knowing, plain))
    report = knowing.design_report
    assert aware <= blind * (1 + 1e-3)
    assert report.variance == pytest.approx(aware)
    assert (knowing.sensitivity, knowing.allowance.mu) == (plain.sensitivity, plain.allowance.mu)
    rounding = float(np.linalg.norm(knowing.steps / knowing.sigmas))
    assert worst_shift(knowing, rng, trials=30) + rounding <= knowing.frame_mu <= MU
    with pytest.raises(CalibrationError, match="sigma"):
        Cloak(model, **CLAIM, sigma=0.99 * knowing.sigmas, assumptions=Assumptions(drift=drift))


@pytest.mark.parametrize("regime", ["pulse", "steady"])
def test_the_walled_flat_is_located_with_a_third_of_the_variance(
    regime: str, flats: dict[str, FloorPlan], rng: np.random.Generator
) -> None:
    """10 m x 8 m, three rooms, 80 sensors: 1.07 m^2 against 4.44 for a pulse, 1.53 against 5.85 for a steady source."""
    flat = flats[regime]
    cloak, same = designed(flat), Cloak(flat, **CLAIM)
    report = cloak.design_report
    assert report.gain > 3
    plain = [place_variances(flat, noise, known_within=math.inf).mean() for noise in (same.sigma, cloak.sigmas)]
    assert plain[0] > 3 * plain[1]
    assert plain == pytest.approx({"pulse": [4.440, 1.073], "steady": [5.848, 1.528]}[regime], rel=0.01)
    assert worst_shift(cloak, rng, trials=10) + float(np.linalg.norm(cloak.steps / cloak.sigmas)) <= MU
    with pytest.raises(CalibrationError):
        Cloak(flat, **CLAIM, sigma=0.99 * cloak.sigmas)
    assert len(np.unique((cloak.sigmas / cloak.steps).round(6))) == 1  # one noise table for all


def test_in_sensor_scope_each_sensor_has_the_noise_it_needs_alone() -> None:
    model = MODELS["steady"]
    cloak = designed(model, scope="sensor")
    assert cloak.sigmas == pytest.approx(1.01 * 0.3 * model.moves().each / MU, rel=1e-4)
    coarse = designed(model, scope="sensor", step=0.02)
    assert coarse.sigmas == pytest.approx((0.3 * model.moves().each + 0.02) / MU, rel=1e-5)


@pytest.mark.parametrize("step", [1e-4, 0.01, 0.3])
def test_given_steps_share_the_budget_with_moves(step: float, rng: np.random.Generator) -> None:
    cloak = designed(MODELS["steady"], step=step)
    assert cloak.step == step
    assert worst_shift(cloak, rng, trials=15) + float(np.linalg.norm(step / cloak.sigmas)) <= MU
    assert cloak.frame_mu == pytest.approx(MU, rel=1e-9)
    best = cloak.design_report
    assert best.variance <= best.equal_variance
    # no split of the budget does better by more than the few ratios cost
    for share in np.linspace(0.05, 0.95, 10):
        problem = cloak.allowance.search()
        bounds = problem.bounds(search.steepest(problem.family, np.ones(6))[0], np.array([share, 1 - share]))
        optimum = search.best_weights(LocationError.of(problem.family.physics), bounds, np.arange(6))
        assert best.variance <= 1.05 * optimum.value


@pytest.mark.parametrize(
    "changed", [{}, {"resolution": 0.01, "noise_floor": 0.008}, {"timing": Timing(spread=0.2, speed=1.0)}], ids=str
)
def test_noise_for_rooms_that_remember_meets_the_sum_over_ages_and_none_nearby_is_better(
    changed: dict[str, Any], rng: np.random.Generator
) -> None:
    flat = MODELS["steady"]
    assert isinstance(flat, FloorPlan)
    cloak = designed(flat, tolerance=Tolerance(memory=True), **changed)
    shift = 0.0
    for share, part in flat.ages:
        moves = np.concatenate(list(part.steps().rows()))
        shift += share * 0.3 * float(np.linalg.norm(moves / cloak.sigmas, axis=1).max())
    assert shift <= cloak.frame_mu <= MU
    best = cloak.design_report
    plain = designed(flat, **changed)
    assert best.variance < cloak.allowance.variance(cloak.allowance.scaled(plain.sigmas).sigma)
    assert best.variance < best.equal_variance
    for size in (0.05, 0.5):
        for _ in range(10):
            other = cloak.allowance.scaled(cloak.sigmas * np.exp(size * rng.standard_normal(6)))
            assert cloak.allowance.variance(other.sigma) >= 0.98 * best.variance


def test_few_ratios_need_few_tables() -> None:
    sigma = np.geomspace(0.5, 50.0, 500)
    ratios = search.few_ratios(sigma, np.full(500, 0.01)) / 0.01
    assert len(np.unique(ratios.round(9))) <= 55
    assert ratios == pytest.approx(sigma / 0.01, rel=2 ** (1 / 16) - 1 + 1e-9)


@pytest.mark.parametrize(
    "tolerance",
    [Tolerance(diffusion=0.2, gain=0.05), Tolerance(doors=True), Tolerance(position=0.5)],
    ids=["diffusion and gain", "doors", "position"],
)
def test_the_guarantee_covers_the_declared_set(tolerance: Tolerance) -> None:
    model = MODELS["steady"]
    cloak = designed(model, tolerance=tolerance)
    rounding = float(np.linalg.norm(cloak.steps / cloak.sigmas))
    certified = 0.3 * Family(model, tolerance).steepest(1 / cloak.sigmas).value
    assert certified + rounding <= MU
    report = cloak.design_report
    assert report.variance < report.equal_variance


def test_moves_left_out_at_first_are_added_when_they_bind(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = designed(MODELS["steady"])
    monkeypatch.setattr(search, "MAX_BOUNDS", 6 * 8)
    monkeypatch.setattr(search, "MAX_SLOPES", 200)
    _, complete = search.steepest(Family(MODELS["steady"]), np.ones(6))
    assert not complete
    part = designed(MODELS["steady"])
    assert part.frame_mu <= MU
    assert part.design_report.variance == pytest.approx(whole.design_report.variance, rel=0.1)


def test_a_sensor_that_sees_nothing_gets_finite_noise(rng: np.random.Generator) -> None:
    values = rng.normal(size=(4, 10))
    values[2] = 0.0
    values[1] *= 1e-4
    for scope in (Scope.NETWORK, Scope.SENSOR):
        cloak = designed(Matrix(values, Space.line(10)), scope=scope)
        assert np.isfinite(cloak.sigmas).all()
        assert cloak.sigmas[1] < 0.01 * cloak.sigmas[0]
        assert cloak.frame_mu <= MU


@pytest.mark.parametrize("change", [{"sigma": 1.0, "design": "least-error"}, {"design": "best"}])
def test_bad_designs_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(CalibrationError) as refused:
        Cloak(MODELS["line"], **grouped(CLAIM | change))
    assert refused.value.values == {"design": change["design"]}


def test_too_many_sensors_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_SENSORS", 3)
    with pytest.raises(CalibrationError, match="least-error") as refused:
        designed(MODELS["line"])
    assert refused.value.values == {"sensors": 5, "most": 3}


@pytest.mark.parametrize("timing", [Timing(), Timing(spread=0.2, speed=1.0)], ids=["at once", "one after another"])
def test_tiles_of_a_large_floor_come_near_the_search_for_the_whole(
    timing: Timing, monkeypatch: pytest.MonkeyPatch
) -> None:
    walls = [((8.0, 0.0), (8.0, 10.0)), ((0.0, 5.0), (16.0, 5.0))]
    doors = [((8.0, 2.0), (8.0, 3.0)), ((8.0, 7.0), (8.0, 8.0)), ((3.0, 5.0), (4.0, 5.0))]
    rooms = Rooms.from_walls((16, 10), cell=0.5, walls=walls, doors=doors)
    at = [(x + 0.5, y + 0.5) for x in range(16) for y in range(10)]
    whole = designed(FloorPlan(rooms, at, Steady(0.7), footprint=0.5), timing=timing)
    monkeypatch.setattr("cloakwork.physics.floorplan.MAX_DENSE", 0)
    monkeypatch.setattr(tiled_design, "MAX_TOGETHER", 50)
    monkeypatch.setattr(tiled_design, "IN_A_TILE", 45)
    tiled = designed(FloorPlan(rooms, at, Steady(0.7), footprint=0.5), timing=timing)
    assert tiled.frame_mu <= tiled.allowance.mu
    report = tiled.design_report
    assert report.variance <= 1.04 * whole.design_report.variance
    assert report.variance < 0.9 * report.equal_variance
    at_any_speed = designed(tiled.physics, timing=Timing(1.0, "any"))
    assert at_any_speed.frame_mu <= at_any_speed.allowance.mu
    with pytest.raises(CalibrationError):
        designed(tiled.physics, tolerance=Tolerance(position=0.5))
