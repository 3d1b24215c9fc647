"""The cloak: its noise, its budget, its refusals; brute force finds no larger shift than it covers."""

import copy
import math
import os
import pickle
import threading
from unittest import mock

import networkx as nx
import numpy as np
import pytest

from cloakwork.accuracy import emd
from cloakwork.errors import BudgetError, CalibrationError, ReadingError
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
)
from cloakwork.privacy import (
    Assumptions,
    Cloak,
    Hardware,
    Profile,
    Scope,
    sensitivity,
)
from cloakwork.privacy.noise_table import DEVICE_TABLES
from tests.forking import error_in_fork, needs_fork
from tests.options import grouped

ROOMS = Rooms.from_walls((3, 2), cell=0.5, walls=[((1.5, 0), (1.5, 2))], doors=[((1.5, 0.5), (1.5, 1.5))])
SENSORS = [(0.6, 0.6), (1.2, 1.7), (2.4, 1.1), (1.6, 0.9)]
MODELS: dict[str, Physics] = {
    "line": HeatLine(n=12, m=5, T=0.02),
    "line anywhere": HeatLine(n=12, m=5, T=0.02, placement="anywhere"),
    "plane": HeatPlane(n=(4, 3), m=(3, 2), T=0.03),
    "graph": Graph(nx.karate_club_graph(), tau=0.4, sensors=[0, 5, 16, 33]),
    "steady": FloorPlan(ROOMS, SENSORS, Steady(0.8), footprint=0.3),
    "pulse": FloorPlan(ROOMS, SENSORS, Pulse(0.6)),
    "matrix": Matrix(
        np.random.default_rng(1).normal(size=(4, 6)), Space.path([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0], [4, 5]])
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_brute_force_neighbours_never_exceed_the_sensitivity(name: str, rng: np.random.Generator) -> None:
    model = MODELS[name]
    alpha = 0.37
    worst = {Scope.NETWORK: 0.0, Scope.SENSOR: 0.0}
    for trial in range(120):
        f = rng.dirichlet(np.full(model.places, 0.3))
        g = rng.dirichlet(np.full(model.places, 0.3))
        if trial % 2:  # a unit source that moves along one neighbour pair
            i, j = model.space.pairs[rng.integers(len(model.space.pairs))]
            f, g = np.eye(model.places)[[i, j]]
        distance = emd(f, g, model.space)
        share = min(1.0, alpha / distance)
        shift = np.abs(model.apply(share * (g - f)))
        worst[Scope.NETWORK] = max(worst[Scope.NETWORK], float(np.linalg.norm(shift)))
        worst[Scope.SENSOR] = max(worst[Scope.SENSOR], float(shift.max()))
    for scope, shifted in worst.items():
        assert 0.5 <= shifted / sensitivity(model, alpha=alpha, scope=scope) <= 1 + 1e-12


def test_sensitivity_has_the_published_value(line: HeatLine) -> None:
    assert sensitivity(line, alpha=0.01) == pytest.approx(0.135897, abs=5e-7)
    anywhere = HeatLine(n=100, m=50, T=0.05, placement="anywhere")
    assert sensitivity(anywhere, alpha=0.01) == pytest.approx(0.135917, abs=5e-7)


def test_sigma_includes_one_percent_for_resolution(line: HeatLine) -> None:
    cloak = Cloak(line, epsilon=1.0, delta=1e-6, alpha=0.01)
    assert cloak.sigma == pytest.approx(1.01 * 4.224679 * cloak.sensitivity, rel=1e-5)
    assert cloak.sigma / cloak.step == pytest.approx(3017, abs=1)
    assert cloak.resolution_cost == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("k", [1, 2, 60, 5000])
def test_a_window_of_k_frames_meets_the_claim_exactly(line: HeatLine, k: int) -> None:
    cloak = Cloak(line, epsilon=1, delta=1e-6, alpha=0.01, readings_per_window=k)
    assert cloak.profile.delta(1.0) <= 1e-6
    assert cloak.profile.delta(1.0) >= 0.999e-6
    assert cloak.profile == Profile(cloak.frame_mu).compose(k)
    assert cloak.resolution_cost == pytest.approx(0.01, rel=1e-3)


def test_the_factor_in_the_refusal_is_enough(line: HeatLine) -> None:
    sigma = 0.3 * np.linspace(0.8, 1.3, 50)
    with pytest.raises(CalibrationError) as caught:
        Cloak(line, epsilon=1, delta=1e-6, alpha=0.01, sigma=sigma)
    factor = caught.value.factor
    assert isinstance(factor, float)
    Cloak(line, epsilon=1, delta=1e-6, alpha=0.01, sigma=sigma * factor * 1.0001)
    with pytest.raises(CalibrationError):
        Cloak(line, epsilon=1, delta=1e-6, alpha=0.01, sigma=sigma * factor * 0.9999)


def test_the_error_of_the_map_widens_what_recovery_assumes_and_leaves_noise_and_guarantee_alone(line: HeatLine) -> None:
    plain, errors = Cloak(line, epsilon=1, delta=1e-6, alpha=0.01), np.linspace(0.0, 2.0, 50)
    wrong = Cloak(line, epsilon=1, delta=1e-6, alpha=0.01, assumptions=Assumptions(map_error=errors))
    assert np.array_equal(wrong.sigmas, plain.sigmas)
    assert str(wrong.explain()) == str(plain.explain())
    assert wrong.total_sigmas == pytest.approx(np.hypot(plain.total_sigmas, errors))
    for bad in (-0.1, [0.1, 0.2], np.inf):
        with pytest.raises(CalibrationError, match="map_error"):
            Cloak(line, epsilon=1, delta=1e-6, alpha=0.01, assumptions=Assumptions(map_error=bad))


def test_frames_are_counted_and_more_are_refused_with_nothing_spent(line: HeatLine) -> None:
    cloak = Cloak(line, epsilon=1, delta=1e-6, alpha=0.01, readings_per_window=5)
    cloak.release(np.zeros((3, 50)), exact=True)
    assert cloak.spent == 3
    with pytest.raises(BudgetError) as refused:
        cloak.release(np.zeros((3, 50)), exact=True)
    assert refused.value.values == {"asked": 3, "left": 2, "allowed": 5}
    assert cloak.spent == 3
    cloak.release(np.zeros((2, 50)), exact=True)
    with pytest.raises(BudgetError) as refused:
        cloak.release(np.zeros(50), exact=True)
    assert refused.value.left == 0
    cloak.simulate(np.zeros((100, 50)), rng=np.random.default_rng(0))
    assert cloak.spent == 5


def test_a_bad_reading_spends_nothing_and_is_not_shown(line: HeatLine) -> None:
    cloak = Cloak(line, epsilon=1, delta=1e-6, alpha=0.01)
    for bad, named in (
        (np.nan, {"where": (7,), "entries": 1}),
        (np.inf, {"where": (7,), "entries": 1}),
        (12345.678e9, {"sensor": 7}),
    ):
        readings = np.zeros(50)
        readings[7] = bad
        with pytest.raises(ReadingError) as caught:
            cloak.release(readings)
        assert caught.value.values == named
        assert "12345" not in str(caught.value)
        assert "12345" not in repr(caught.value.values)
    for shape in ((49,), (2, 3, 50), ()):
        with pytest.raises(ReadingError):
            cloak.release(np.zeros(shape), exact=True)
    assert cloak.spent == 0


def test_many_threads_cannot_overspend(line: HeatLine) -> None:
    cloak = Cloak(line, epsilon=1, delta=1e-6, alpha=0.01, readings_per_window=50, hardware=Hardware(step=0.5))
    done: list[int] = []

    def work() -> None:
        for _ in range(20):
            try:
                cloak.release(np.zeros(50), exact=True)
            except BudgetError:
                return
            done.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == cloak.spent == 50


def test_a_copy_has_nothing_left_to_spend(line: HeatLine) -> None:
    cloak = Cloak(line, epsilon=1, delta=1e-6, alpha=0.01)
    for twin in (pickle.loads(pickle.dumps(cloak)), copy.deepcopy(cloak)):  # noqa: S301 - our own
        with pytest.raises(BudgetError) as refused:
            twin.release(np.zeros(50), exact=True)
        assert refused.value.left == 0
        first, second = (each.simulate(np.zeros(50), rng=np.random.default_rng(1)) for each in (cloak, twin))
        np.testing.assert_array_equal(first, second)
    twin = copy.copy(cloak)
    twin.release(np.zeros(50), exact=True)
    assert cloak.spent == 1


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_cannot_spend_the_budget_again_when_its_number_is_the_same(line: HeatLine) -> None:
    """Systems use the numbers of processes that have ended again."""
    cloak, number = Cloak(line, epsilon=1, delta=1e-6, alpha=0.01), os.getpid()

    def reused() -> None:
        with mock.patch("os.getpid", return_value=number):
            cloak.release(np.zeros(50), exact=True)

    assert error_in_fork(reused) == "BudgetError"
    cloak.release(np.zeros(50), exact=True)


@pytest.mark.parametrize(
    ("change", "values"),
    [
        *(
            (change, change)
            for change in (
                {"alpha": 0},
                {"alpha": math.nan},
                {"epsilon": -1},
                {"delta": 0},
                {"scope": "world"},
                {"readings_per_window": 0},
                {"readings_per_window": 2.5},
                {"epsilon": 400.0, "delta": 1e-9},
            )
        ),
        ({"resolution": -1}, {"resolution": -1}),
        ({"step": 0}, {"step": 0}),
        ({"step": 1e-9}, {"step": 1e-9}),
        ({"resolution": [1, 2]}, {"resolution": [1, 2], "sensors": 50}),
        ({"sigma": math.inf}, {"sigma": math.inf}),
        ({"noise_floor": 0.04}, {"noise_floor": 0.04}),  # of hardware without a step
        *(({"noise_floor": no, "resolution": 0.0625}, {"noise_floor": no}) for no in (-0.04, math.inf, 1000.0)),
    ],
)
def test_bad_arguments_are_refused(line: HeatLine, change: dict[str, object], values: dict[str, object]) -> None:
    arguments: dict[str, object] = {"epsilon": 1.0, "delta": 1e-6, "alpha": 0.01}
    with pytest.raises(CalibrationError) as refused:
        Cloak(line, **grouped(arguments | change))
    assert refused.value.values == values


def test_readings_that_no_move_changes_need_no_cloak() -> None:
    same = Matrix(np.array([[1.0, 1.0]]) / np.sqrt(2), Space.line(2))
    with pytest.raises(CalibrationError, match="nothing to hide"):
        Cloak(same, epsilon=1, delta=1e-6, alpha=0.1)


def test_a_cloak_is_immutable(line: HeatLine) -> None:
    cloak = Cloak(line, epsilon=1, delta=1e-6, alpha=0.01)
    for name in ("epsilon", "delta", "alpha", "scope", "sigma", "physics", "_sigma"):
        with pytest.raises(AttributeError):
            setattr(cloak, name, 0.001)
    with pytest.raises(ValueError, match="read-only"):
        cloak.sigmas[0] = 0.0


def test_an_unreadable_reading_is_not_kept_in_the_error(line: HeatLine) -> None:
    cloak = Cloak(line, epsilon=1, delta=1e-6, alpha=0.01)
    for bad in (["21.7 secret"] * 50, [10**400] * 50):
        with pytest.raises(ReadingError) as caught:
            cloak.release(bad)
        chain: BaseException | None = caught.value
        while chain is not None:
            assert "21.7" not in repr(chain)
            chain = chain.__context__
    assert cloak.spent == 0


def test_the_default_step_costs_more_only_where_the_tables_end(line: HeatLine) -> None:
    cloak = Cloak(line, epsilon=1e-3, delta=1e-9, alpha=0.01, readings_per_window=10_000)
    assert 0.01 < cloak.resolution_cost < 1
    assert 0.99 * DEVICE_TABLES.ratio < cloak.ratios.max() <= DEVICE_TABLES.ratio
    assert cloak.release(np.zeros(50), exact=True).shape == (50,)


@pytest.mark.parametrize("scope", [Scope.NETWORK, Scope.SENSOR])
def test_the_error_of_the_tables_is_taken_off_delta(line: HeatLine, scope: Scope) -> None:
    """At a large epsilon it is most of a tiny delta; perfect noise would meet the rest."""
    draws = 50 if scope is Scope.NETWORK else 1
    loss = (1 + math.exp(30.0)) * draws * DEVICE_TABLES.error
    cloak = Cloak(line, epsilon=30.0, delta=2 * loss, alpha=0.01, scope=scope)
    assert cloak.profile.delta(30.0) == pytest.approx(loss, rel=1e-6)
    with pytest.raises(CalibrationError) as refused:
        Cloak(line, epsilon=30.0, delta=0.99 * loss, alpha=0.01, scope=scope)
    assert refused.value.values == {"epsilon": 30.0, "delta": 0.99 * loss}


def test_ratios_are_never_less_than_sigma_over_step(line: HeatLine) -> None:
    cloak = Cloak(
        line, epsilon=1, delta=1e-6, alpha=0.01, sigma=np.linspace(0.6, 1.2, 50), hardware=Hardware(step=0.001)
    )
    assert (cloak.ratios >= cloak.sigmas / cloak.steps).all()
    assert cloak.ratios == pytest.approx(cloak.sigmas / cloak.steps, rel=1e-11)
    with pytest.raises(ValueError, match="read-only"):
        cloak.ratios[0] = 0.0
