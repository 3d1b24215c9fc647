"""Real shifts between near positions are compared with those that the model allows."""

import numpy as np
import pytest

from cloakwork.errors import InputError
from cloakwork.fitting import measured_shifts
from cloakwork.physics import HeatLine, Matrix, Metric, Space
from cloakwork.privacy import Cloak
from tests.fitting.radio import flat, office


def test_a_smooth_map_of_a_flat_does_not_cover_ten_centimetres() -> None:
    shifts = flat().shifts(0.1)
    assert 2.5 < shifts.cloak.sensitivity < 3.0
    assert not shifts.covers(0.1)
    assert 0.35 < shifts.alpha < 1.5
    assert shifts.covers(shifts.alpha * 1.001)


def test_a_smooth_map_of_an_office_does_not_cover_a_third_of_a_metre() -> None:
    shifts = office().shifts(0.35)
    assert not shifts.covers(0.35)
    assert shifts.alpha > 2


def line(n: int = 30) -> tuple[Cloak, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    model = HeatLine(n=300, m=6, T=0.05)
    cloak = Cloak(model, epsilon=2.0, delta=1e-5, alpha=0.1)
    return cloak, model.space.places[:: 300 // n]


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_readings_as_the_model_says_are_covered_as_soon_as_noise_leaves_it_known(noise: float) -> None:
    cloak, at = line()
    readings = cloak.physics.matrix.T[:: 300 // len(at)]
    noisy = readings + noise * np.random.default_rng(0).standard_normal(readings.shape)
    shifts = measured_shifts(cloak, at, noisy, variances=noise**2)
    assert shifts.covers(0.1) == (noise == 0)
    assert shifts.covers(0.5)
    assert shifts.alpha >= shifts.distances[0]


def test_limits_hold_as_often_as_they_say() -> None:
    cloak, at = line(12)
    rng, held = np.random.default_rng(1), 0
    true = cloak.physics.matrix.T[:: 300 // len(at)] + rng.standard_normal((len(at), 6))
    exact = measured_shifts(cloak, at, true)
    largest = exact.squares.max() ** 0.5
    for _ in range(200):
        noisy = true + 0.3 * rng.standard_normal(true.shape)
        found = measured_shifts(cloak, at, noisy, variances=0.3**2)
        held += found.sensitivity(9.9) >= largest
    assert held >= 190


def test_the_shift_of_one_sensor_counts_where_each_is_hidden_alone() -> None:
    model, at = Matrix(np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 0.0]]), Space.line(3)), np.array([[1 / 3], [2 / 3], [1.0]])
    cloak = Cloak(model, epsilon=2.0, delta=1e-5, alpha=1 / 3, scope="sensor")
    together = Cloak(model, epsilon=2.0, delta=1e-5, alpha=1 / 3)
    readings = np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0]])
    assert measured_shifts(cloak, at, readings).sensitivity(1 / 3) == pytest.approx(4.0)
    assert measured_shifts(together, at, readings).sensitivity(1 / 3) == pytest.approx(5.0)


def test_a_wall_between_two_positions_keeps_them_apart() -> None:
    places = np.array([[0.5, 0.5], [0.5, 1.5], [1.5, 1.5], [1.5, 0.5]])
    space = Space(places, np.array([[0, 1], [1, 2], [2, 3]]), np.ones(3), Metric.PATH)
    cloak = Cloak(Matrix(np.arange(4.0)[None], space), epsilon=2.0, delta=1e-5, alpha=1.0)
    shifts = measured_shifts(cloak, places, np.arange(4.0)[:, None])
    apart = dict(zip(map(tuple, shifts.ends.tolist()), shifts.distances.tolist(), strict=True))
    assert apart[0, 1] == 1
    assert 2 < apart[0, 3] <= 3


@pytest.mark.parametrize(
    ("positions", "readings", "variances"),
    [
        (np.zeros((3, 2)), np.zeros((3, 6)), 0.0),
        (np.zeros((3, 1)), np.zeros((3, 5)), 0.0),
        (np.zeros((1, 1)), np.zeros((1, 6)), 0.0),
        (np.zeros((3, 1)), np.zeros((3, 6)), np.inf),
    ],
)
def test_measurements_that_do_not_fit_the_model_are_refused(
    positions: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    readings: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    variances: float,
) -> None:
    with pytest.raises(InputError):
        measured_shifts(line()[0], positions, readings, variances=variances)
