"""Heat on a line: the kernel, its laws, the values of the papers, what is refused."""

from typing import Any

import numpy as np
import pytest

from cloakwork.errors import PhysicsError
from cloakwork.physics import HeatLine, Placement


def test_entries_are_the_heat_kernel() -> None:
    line = HeatLine(n=4, m=[0.0, 1.0], T=0.5, length=2.0, gain=3.0)
    x = np.array([0.5, 1.0, 1.5, 2.0])
    for row, sensor in enumerate((0.0, 1.0)):
        expected = 3.0 * np.exp(-((x - sensor) ** 2) / 2.0) / np.sqrt(2.0 * np.pi)
        assert line.matrix[row] == pytest.approx(expected, rel=1e-14)


def test_places_and_sensors_end_at_the_end_of_the_line() -> None:
    line = HeatLine(n=4, m=2, T=0.1, length=2.0)
    assert line.space.places[:, 0].tolist() == [0.5, 1.0, 1.5, 2.0]
    assert line.sensor_positions.tolist() == [1.0, 2.0]


def test_sensors_on_the_places_make_a_symmetric_matrix() -> None:
    matrix = HeatLine(n=20, m=20, T=0.03).matrix
    assert np.array_equal(matrix, matrix.T)


def test_two_short_times_are_one_long_time() -> None:
    """In the continuum g_S * g_T = g_(S+T); a sum over a fine grid far from the ends is the integral."""
    n, length = 400, 10.0
    middle = [4.0, 5.0, 6.1]
    first = HeatLine(n=n, m=middle, T=0.1, length=length).matrix
    second = HeatLine(n=n, m=n, T=0.2, length=length).matrix
    both = HeatLine(n=n, m=middle, T=0.3, length=length).matrix
    interior = slice(120, 280)
    assert np.allclose((first @ second * length / n)[:, interior], both[:, interior], atol=1e-12)


def test_all_heat_is_somewhere() -> None:
    line = HeatLine(n=50, m=1000, T=0.01, length=5.0)
    interior = slice(10, 40)
    assert np.allclose(line.matrix[:, interior].sum(axis=0) * 5.0 / 1000, 1.0, atol=1e-9)


@pytest.mark.parametrize(
    ("placement", "expected"), [(Placement.GRID, 0.135897), (Placement.ANYWHERE, 0.135917), ("anywhere", 0.135917)]
)
def test_the_papers_line_has_the_checked_sensitivity(placement: Any, expected: float) -> None:
    line = HeatLine(n=100, m=50, T=0.05, placement=placement)
    assert 0.01 * line.joint_slope().value == pytest.approx(expected, abs=5e-7)


def test_largest_difference_of_neighbours_is_the_slope_on_the_grid() -> None:
    line = HeatLine(n=100, m=50, T=0.05)
    norms = np.linalg.norm(np.diff(line.matrix, axis=1), axis=0)
    slope = line.joint_slope()
    assert slope.value == pytest.approx(100 * norms.max(), rel=1e-11)
    assert slope.value >= 100 * norms.max()
    assert slope.pair == (int(norms.argmax()), int(norms.argmax()) + 1)


def test_sources_between_coarse_places_are_a_third_easier_to_see() -> None:
    grid = HeatLine(n=10, m=50, T=0.001).joint_slope().value
    anywhere = HeatLine(n=10, m=50, T=0.001, placement=Placement.ANYWHERE).joint_slope().value
    assert anywhere / grid == pytest.approx(1.32, abs=0.005)


@pytest.mark.parametrize(("n", "m", "T", "rank"), [(100, 50, 0.05, 11), (500, 100, 0.05, 12), (1000, 500, 0.01, 20)])
def test_numerical_rank_is_small(n: int, m: int, T: float, rank: int) -> None:
    assert HeatLine(n=n, m=m, T=T).range().rank == rank


def test_gain_scales_readings_and_slopes() -> None:
    one, three = (HeatLine(n=30, m=8, T=0.02, gain=gain, placement=Placement.ANYWHERE) for gain in (1.0, 3.0))
    assert three.matrix == pytest.approx(3 * one.matrix, rel=1e-14)
    assert three.joint_slope().value == pytest.approx(3 * one.joint_slope().value, rel=1e-12)
    assert three.sensor_slopes() == pytest.approx(3 * one.sensor_slopes(), rel=1e-12)


def test_the_unit_of_length_does_not_matter() -> None:
    """In units k times smaller, T grows by k^2, readings shrink by k and slopes by k^2."""
    metres = HeatLine(n=40, m=9, T=0.02, length=1.0)
    decimetres = HeatLine(n=40, m=9, T=2.0, length=10.0)
    assert decimetres.matrix == pytest.approx(metres.matrix / 10, rel=1e-12)
    assert decimetres.joint_slope().value == pytest.approx(metres.joint_slope().value / 100, rel=1e-11)


def test_one_place_has_nothing_to_hide() -> None:
    line = HeatLine(n=1, m=3, T=0.1)
    assert line.joint_slope().value == 0.0
    assert (line.sensor_slopes() <= 1e-12).all()


def test_a_spread_factor_multiplies_the_diffusion() -> None:
    assert HeatLine(n=9, m=3, T=0.1).with_spread(0.5).T == 0.05


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": 0},
        {"n": 2.5},
        {"n": True},
        {"m": 0},
        {"m": []},
        {"m": "three"},
        {"m": [[0.1, 0.2]]},
        {"m": [0.5, 1.5]},
        {"m": [-0.1]},
        {"m": [0.5, float("nan")]},
        {"T": 0},
        {"T": -1.0},
        {"T": float("nan")},
        {"T": float("inf")},
        {"T": "0.05"},
        {"length": 0.0},
        {"gain": -2.0},
        {"placement": "nowhere"},
    ],
)
def test_impossible_lines_are_refused(wrong: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {"n": 10, "m": 5, "T": 0.05} | wrong
    with pytest.raises(PhysicsError) as problem:
        HeatLine(**arguments)
    assert problem.value.values.keys() & {*wrong, "sensor"}


def test_an_early_reading_of_a_pulse_is_more_revealing() -> None:
    """A pulse's slope holds only for readings taken at least T after it: 2.2 times at 0.4 T, 6.2 times at T/10."""
    late = HeatLine(n=100, m=50, T=0.05)
    for share, factor in ((0.4, 2.2), (0.1, 6.2)):
        assert late.with_spread(share).joint_slope().value / late.joint_slope().value == pytest.approx(factor, abs=0.06)


@pytest.mark.parametrize("T", [0.002, 0.005, 0.01])
def test_at_short_times_the_slope_scales_as_known(T: float) -> None:
    for n, m in ((200, 50), (400, 100)):
        per_step = HeatLine(n=n, m=m, T=T).joint_slope().value / n
        assert per_step == pytest.approx(0.2233 * np.sqrt(m) * T**-0.75 / n, rel=0.02)
