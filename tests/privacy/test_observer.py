"""A claim about any t of the sensors: brute force over subsets never exceeds it, and it is no larger than needed."""

import itertools
import math
from typing import Any

import networkx as nx
import numpy as np
import pytest

import cloakwork as cw
from cloakwork.errors import CalibrationError, PhysicsError
from cloakwork.physics import Family, Physics, Tolerance, later_readings
from cloakwork.privacy import Scope

LINE = cw.HeatLine(n=12, m=6, T=0.01)
CHAIN = cw.Graph(nx.path_graph(8), tau=1.5)
CLAIM: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}


def brute(model: Physics, seen: int, sigma: Any = 1.0) -> float:
    """The largest shift, per distance, of any `seen` sensors by a move between any two places."""
    noise, largest = np.broadcast_to(sigma, (model.sensors,)), 0.0
    for i, j in itertools.combinations(range(model.places), 2):
        shift = (model.matrix[:, i] - model.matrix[:, j]) / noise
        for subset in itertools.combinations(range(model.sensors), seen):
            largest = max(largest, float(np.linalg.norm(shift[list(subset)]) / model.space.distances(i)[j]))
    return largest


@pytest.mark.parametrize("model", [LINE, CHAIN])
@pytest.mark.parametrize("seen", [1, 2, 3, 5])
def test_sensitivity_is_the_largest_over_all_subsets(model: Physics, seen: int) -> None:
    cloak = cw.Cloak(model, alpha=0.3, scope=seen, **CLAIM)
    assert cloak.observed == seen
    assert cloak.scope is (Scope.SENSOR if seen == 1 else Scope.SOME)
    assert cloak.sensitivity == pytest.approx(0.3 * brute(model, seen), rel=1e-9)
    assert cloak.sensitivity >= 0.3 * brute(model, seen) * (1 - 1e-14)
    assert cw.sensitivity(model, alpha=0.3, scope=seen) == cloak.sensitivity


@pytest.mark.parametrize("model", [LINE, CHAIN])
@pytest.mark.parametrize("seen", [2, 4])
def test_no_subset_tells_more_than_the_claim_with_unequal_noise_steps_and_several_sources(
    model: Physics, seen: int
) -> None:
    rng = np.random.default_rng(seen)
    shape, steps = rng.uniform(0.7, 1.6, model.sensors), rng.uniform(0.005, 0.02, model.sensors)
    least = cw.Cloak(model, alpha=0.3, scope=seen, resolution=steps, **CLAIM).sigma
    cloak = cw.Cloak(model, alpha=0.3, scope=seen, resolution=steps, sigma=2.0 * least * shape, **CLAIM)
    for _ in range(200):  # two sources that share the distance, and rounding in the worst direction
        pairs = rng.integers(0, model.places, (2, 2))
        away = np.array([model.space.distances(int(i))[j] for i, j in pairs])
        if (away == 0).any():
            continue
        weight = rng.dirichlet([1.0, 1.0]) * 0.3 / away
        shift = np.abs(
            sum(w * (model.matrix[:, i] - model.matrix[:, j]) for w, (i, j) in zip(weight, pairs, strict=True))
        )
        told = (shift + cloak.roundings) / cloak.sigmas
        assert math.sqrt(float(np.sort(told**2)[-seen:].sum())) <= cloak.frame_mu


def test_all_sensors_are_the_network_and_one_is_the_sensor_scope() -> None:
    def sigma(scope: Any) -> float:
        return float(cw.Cloak(LINE, alpha=0.05, scope=scope, **CLAIM).sigma)

    assert sigma(6) == sigma("network")
    assert sigma(1) == sigma("sensor")
    levels = [sigma(seen) for seen in range(1, 7)]
    assert levels == sorted(levels)


def test_later_times_and_other_models_are_covered() -> None:
    later = Family(LINE, Tolerance(later=True), observed=3).joint_slope().value
    times = [brute(cw.HeatLine(n=12, m=6, T=0.01 * factor), 3) for factor in (1.0, 1.3, 2.0, 4.0)]
    assert later >= max(times)
    declared = Family(CHAIN, Tolerance(gain=0.1, diffusion=0.2), observed=2).joint_slope().value
    for factor in (0.8, 0.93, 1.1, 1.2):
        assert declared >= 1.1 * brute(CHAIN.with_spread(factor), 2)


def test_models_of_later_times_that_are_not_kept_are_not_mistaken_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new model may lie where a discarded one was in memory."""
    edges = [(k, k + 1, {"length": 5.0 if k < 4 else 0.1}) for k in range(7)]
    chain = cw.Graph(nx.Graph(edges), tau=0.3, sensors=[0, 1, 2], lengths="length")
    monkeypatch.setattr(later_readings, "MOST_KEPT", 0)
    declared = Family(chain, Tolerance(later=True, position=0.05), observed=2).joint_slope().value
    assert declared >= max(brute(chain.with_spread(factor), 2) for factor in np.geomspace(1, 40, 20))


@pytest.mark.parametrize("moved", [0.0, 0.03])
@pytest.mark.parametrize("seen", [2, 3])
def test_sources_anywhere_and_sensors_elsewhere_are_covered(seen: int, moved: float) -> None:
    """Slopes of the heat kernel on a fine grid, each sensor at its worst within `moved`."""
    line = cw.HeatLine(n=12, m=6, T=0.002, placement="anywhere")
    plane = cw.HeatPlane(n=(6, 6), m=(3, 3), T=0.01)
    shifts, fine = np.linspace(-moved, moved, 9), np.linspace(0, 1, 2001)
    away = (fine[None, :, None] - line.sensor_positions[:, None, None] - shifts).clip(-1, 1)
    steepest = np.abs(away / (2 * 0.002) * np.exp(-(away**2) / 0.008) / math.sqrt(0.008 * math.pi)).max(axis=2)
    needed = float(np.sqrt(np.sort(steepest**2, axis=0)[-seen:].sum(axis=0)).max())
    declared = Family(line, Tolerance(position=moved), observed=seen).joint_slope().value
    assert needed <= declared <= 1.05 * needed
    whole = Family(plane, Tolerance(position=moved), observed=seen).joint_slope().value
    for k in range(plane.sensors - seen + 1):  # a claim about all of fewer sensors
        few = cw.HeatPlane(n=(6, 6), m=plane.sensor_positions[k : k + seen].tolist(), T=0.01)
        assert few.joint_slope().value <= whole


def test_sources_that_move_between_the_readings_of_a_frame_are_covered() -> None:
    """Two sources side by side walk along the chain while one sensor after another reads, in any order."""
    timing = cw.Timing(spread=1.0, speed=2.0)
    declared = Family(CHAIN, timing=timing, observed=2).frame_slope()
    assert declared <= Family(CHAIN, timing=timing).frame_slope()
    assert declared >= Family(CHAIN, observed=2).frame_slope()
    worst, steps = 0.0, (-1, 0, 1)
    for start, (k, one), (j, other) in itertools.product(
        range(2, 5), itertools.product(range(8), steps), itertools.product(range(8), steps)
    ):
        if k != j:
            shifts = [CHAIN.matrix[s, start + at] - CHAIN.matrix[s, start + at + 1] for s, at in ((k, one), (j, other))]
            worst = max(worst, float(np.linalg.norm(shifts)))
    assert declared >= worst
    any_speed = Family(CHAIN, timing=cw.Timing(1.0, "any"), observed=2).frame_slope()
    assert any_speed == pytest.approx(float(np.linalg.norm(np.sort(CHAIN.sensor_slopes())[-2:])))


def test_explanation_names_who_may_look_and_who_may_not() -> None:
    cloak = cw.Cloak(LINE, alpha=0.05, scope=3, **CLAIM)
    told = cloak.explain()
    assert "scope=3" in repr(cloak)
    assert any("same instant" in line for line in told.hidden)
    assert "any 3 sensors, and no others" in told.hidden[0]
    assert any("more than 3 sensors" in line for line in told.not_hidden)


def test_where_it_is_not_known_it_is_refused() -> None:
    large = cw.Graph(nx.path_graph(20_000), tau=1.0)
    with pytest.raises(PhysicsError):
        cw.Cloak(large, alpha=0.05, scope=3, **CLAIM)
    refused: list[dict[str, Any]] = [
        {"scope": 0},
        {"scope": 7},
        {"scope": True},
        {"scope": "some"},
        {"scope": 3, "design": "least-error"},
        {"scope": 3, "noise": "laplace"},
    ]
    for more in refused:
        with pytest.raises(CalibrationError):
            cw.Cloak(LINE, alpha=0.05, **CLAIM, **more)
    assert cw.Cloak(LINE, alpha=0.05, scope=1, noise="laplace", **CLAIM).scope is Scope.SENSOR
