"""Certified maxima over a continuum: never below what brute force finds, and hardly above it."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

from cloakwork.physics import HeatLine, HeatPlane, Placement

Floats = NDArray[np.float64]


def line_slopes(x: Floats, sensors: Floats, T: float, weights: Floats) -> Floats:
    """||weights g'(x - sensors)|| at each x."""
    off = x[:, None] - sensors
    slopes = -off / (2 * T) * np.exp(-(off**2) / (4 * T)) / np.sqrt(4 * np.pi * T)
    return np.asarray(np.linalg.norm(weights * slopes, axis=1))


def plane_slope(at: Floats, sensors: Floats, T: float, weights: Floats) -> float:
    """Largest singular value of the Jacobian of all readings at one point."""
    off = at - sensors
    heat = np.exp(-(off**2).sum(axis=1) / (4 * T)) / (4 * np.pi * T)
    return float(np.linalg.norm((weights * heat)[:, None] * off / (2 * T), 2))


def line_maximum(line: HeatLine, weights: Floats) -> float:
    x = np.linspace(0, line.length, 20001)
    return float(line_slopes(x, line.sensor_positions[:, 0], line.T, weights).max())


def plane_maximum(plane: HeatPlane, weights: Floats) -> float:
    """A coarse grid, then a search from its five best points that stays inside the rectangle."""
    axes = [np.linspace(0, side, 31) for side in plane.size]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    values = np.array([plane_slope(at, plane.sensor_positions, plane.T, weights) for at in grid])
    best = float(values.max())

    def downhill(at: Floats) -> float:
        return -plane_slope(at, plane.sensor_positions, plane.T, weights)

    for start in grid[np.argsort(values)[-5:]]:
        found = optimize.minimize(
            downhill,
            start,
            method="Nelder-Mead",
            bounds=optimize.Bounds((0.0, 0.0), plane.size),
        )
        best = max(best, -float(found.fun))
    return best


@pytest.mark.parametrize(
    ("m", "T", "length"), [(50, 0.05, 1.0), (7, 0.001, 1.0), (3, 0.2, 1.0), (1, 0.0001, 1.0), (12, 0.5, 7.0)]
)
@pytest.mark.parametrize("equal", [True, False])
def test_line_supremum_is_certified_and_tight(m: int, T: float, length: float, equal: bool) -> None:
    line = HeatLine(n=20, m=m, T=T, length=length, placement=Placement.ANYWHERE)
    weights = np.ones(m) if equal else np.random.default_rng(m).uniform(0.05, 3.0, m)
    certified = line.moves().steepest(None if equal else weights).value
    seen = line_maximum(line, weights)
    assert seen <= certified <= 1.001 * seen


@pytest.mark.parametrize(
    ("m", "T", "size"),
    [((4, 3), 0.02, (1.0, 1.0)), ((2, 2), 0.005, (1.0, 0.5)), ((3, 5), 0.3, (2.0, 3.0)), ((1, 1), 0.05, (1.0, 1.0))],
)
@pytest.mark.parametrize("equal", [True, False])
def test_plane_supremum_is_certified_and_tight(
    m: tuple[int, int], T: float, size: tuple[float, float], equal: bool
) -> None:
    plane = HeatPlane(n=(5, 5), m=m, T=T, size=size)
    weights = np.ones(plane.sensors) if equal else np.random.default_rng(m[0]).uniform(0.05, 3.0, plane.sensors)
    certified = plane.moves().steepest(None if equal else weights).value
    seen = plane_maximum(plane, weights)
    assert seen <= certified <= 1.005 * seen


@pytest.mark.parametrize("T", [0.002, 0.05])
@pytest.mark.parametrize("displacement", [0.003, 0.05])
def test_displaced_sensors_of_a_line_stay_below_the_declared_slope(T: float, displacement: float) -> None:
    rng = np.random.default_rng(8)
    for placement in Placement:
        line = HeatLine(n=30, m=[0.2, 0.5, 0.55, 0.9], T=T, placement=placement)
        weights = rng.uniform(0.2, 2.0, 4)
        joint = line.moves(position=displacement).steepest().value
        weighted = line.moves(position=displacement).steepest(weights).value
        alone = line.moves(position=displacement).each
        for _ in range(20):
            shift = rng.choice([-1.0, 1.0], 4) * displacement * rng.choice([0.5, 1.0], 4)
            moved = HeatLine(n=30, m=(line.sensor_positions[:, 0] + shift).tolist(), T=T, placement=placement)
            i, j = moved.space.pairs.T
            columns = (moved.matrix[:, i] - moved.matrix[:, j]) / moved.space.lengths
            assert np.linalg.norm(columns, axis=0).max() <= joint
            assert np.linalg.norm(weights[:, None] * columns, axis=0).max() <= weighted
            assert (np.abs(columns).max(axis=1) <= alone).all()
        assert joint > line.moves().steepest().value


def test_displaced_sensors_of_a_plane_stay_below_the_declared_slope() -> None:
    rng = np.random.default_rng(9)
    plane = HeatPlane(n=(5, 5), m=[(0.3, 0.3), (0.5, 0.6), (0.7, 0.2)], T=0.01)
    joint, alone = plane.moves(position=0.04).steepest().value, plane.moves(position=0.04).each
    for _ in range(8):
        turn = rng.uniform(0, 2 * np.pi, 3)
        moved = plane.sensor_positions + 0.04 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
        there = HeatPlane(n=(5, 5), m=[(float(x), float(y)) for x, y in moved], T=0.01)
        assert plane_maximum(there, np.ones(3)) <= joint
        assert (there.moves().each <= alone).all()
