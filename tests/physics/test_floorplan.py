"""Rooms with walls and doors: laws of heat, kernels of open floors, size."""

import numpy as np
import pytest
from scipy import special

from cloakwork.errors import PhysicsError
from cloakwork.physics import FloorPlan, HeatPlane, Pulse, Rooms, Steady

FLAT = Rooms.from_text("########\n#...#..#\n#...+..#\n#...#..#\n########", cell=0.5)
REGIMES: list[Pulse | Steady] = [Pulse(length=0.8), Steady(reach=0.8)]


def everywhere(rooms: Rooms) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in rooms.space.places]


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("footprint", [0.0, 0.6])
def test_no_heat_is_lost(regime: Pulse | Steady, footprint: float) -> None:
    """Summed over the floor in square metres, a unit source reads its gain."""
    plan = FloorPlan(FLAT, everywhere(FLAT), regime, footprint=footprint, gain=3.0)
    assert plan.matrix.sum(axis=0) * 0.5**2 == pytest.approx(np.full(plan.places, 3.0), rel=1e-10)


def test_readings_that_lag_are_those_of_the_same_field() -> None:
    """Only simulations know the lag: matrix and ages are those of a plan without it. A pulse has its time."""
    late, at_once = (FloorPlan(FLAT, [(1, 1)], Steady(reach=0.8), lag=lag) for lag in (180.0, 0.0))
    assert (late.matrix == at_once.matrix).all()
    assert [share for share, _ in late.ages] == [share for share, _ in at_once.ages]
    with pytest.raises(PhysicsError, match="pulse"):
        FloorPlan(FLAT, [(1, 1)], Pulse(length=0.8), lag=180.0)


def test_a_footprint_is_a_pulse_more() -> None:
    """Lengths add like standard deviations."""
    seen = FloorPlan(FLAT, everywhere(FLAT), Pulse(length=0.4), footprint=0.3).matrix
    assert np.allclose(seen, FloorPlan(FLAT, everywhere(FLAT), Pulse(length=0.5)).matrix, atol=1e-12)


def test_a_pulse_on_an_open_floor_is_the_plane() -> None:
    """Standard deviation `length` along each axis is T = length^2 / 2; no wall within five of them."""
    rooms = Rooms.from_walls((8, 8), cell=0.1)
    floor = FloorPlan(rooms, [(4.05, 4.05)], Pulse(length=0.8)).matrix[0].reshape(80, 80)
    x = rooms.space.places[:80, 0]
    plane = HeatPlane(n=(80, 80), m=[(4.1, 4.1)], T=0.32, size=(8, 8)).matrix[0].reshape(80, 80)
    assert x[40] == pytest.approx(4.05)
    assert np.abs(floor - plane).max() < 0.01 * plane.max()


def test_a_steady_source_on_an_open_floor_is_a_bessel_function() -> None:
    rooms = Rooms.from_walls((8, 8), cell=0.1)
    plan = FloorPlan(rooms, [(4.05, 4.05)], Steady(reach=0.6))
    r = np.linalg.norm(rooms.space.places - [4.05, 4.05], axis=1)
    ring = (r > 0.5) & (r < 2.0)
    exact = special.k0(r[ring] / 0.6) / (2 * np.pi * 0.6**2)
    assert plan.matrix[0, ring] == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("footprint", [0.0, 0.6])
def test_heat_passes_a_door_but_no_wall(regime: Pulse | Steady, footprint: float) -> None:
    rooms = Rooms.from_walls((4, 3), cell=0.5, walls=[((2, 0), (2, 3))], doors=[((2, 1), (2, 2))])
    plan = FloorPlan(rooms, [(1.75, 1.25)], regime, footprint=footprint)
    shut = plan.with_doors_shut([0])
    across, here = rooms.cell_at(2.25, 1.25), rooms.cell_at(1.75, 1.25)
    other_room = rooms.space.places[:, 0] > 2
    assert plan.matrix[0, across] > 0.1 * plan.matrix[0, here]
    assert np.array_equal(shut.matrix[0, other_room], np.zeros(other_room.sum()))
    assert shut.matrix[0, ~other_room].sum() * 0.25 == pytest.approx(1.0, rel=1e-10)


@pytest.mark.parametrize("regime", REGIMES)
def test_sensors_moved_within_the_displacement_never_exceed_its_slope(regime: Pulse | Steady) -> None:
    rng = np.random.default_rng(4)
    at = np.array([[0.95, 1.2], [2.6, 1.05], [1.45, 0.6]])
    stated = FloorPlan(FLAT, [(float(x), float(y)) for x, y in at], regime)
    weights = np.array([1.0, 0.3, 2.0])
    for distance in (0.1, 0.3, 0.75):
        slope, alone = stated.moves(position=distance).steepest().value, stated.moves(position=distance).each
        weighted = stated.moves(position=distance).steepest(weights).value
        for _ in range(25):
            turn, far = rng.uniform(0, 2 * np.pi, 3), distance * np.sqrt(rng.uniform(0, 1, 3))
            moved = at + far[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
            try:
                there = FloorPlan(FLAT, [(float(x), float(y)) for x, y in moved], regime)
            except PhysicsError:
                continue  # moved into a wall, where no sensor can be
            assert there.steps().norms().max() <= slope
            assert there.steps().norms(weights).max() <= weighted
            i, j = there.space.pairs.T
            columns = np.abs(there.matrix[:, i] - there.matrix[:, j]) / there.space.lengths
            assert (columns.max(axis=1) <= alone).all()


def test_the_slope_covers_a_source_as_wide_as_a_cell_that_slides_through_a_doorway() -> None:
    """On a grid five times finer, a source that fills one coarse cell moves across the edge of a doorway.

    A point would change the readings more and more steeply there as cells shrink; a source as large as a cell
    does not.
    """
    layout = {"walls": [((2.0, 0.0), (2.0, 3.0))], "doors": [((2.0, 1.0), (2.0, 2.0))]}
    at = [(x, y) for x in (0.6, 1.4, 2.6, 3.4) for y in (0.6, 1.4, 2.4)]
    coarse = FloorPlan(Rooms.from_walls((4, 3), cell=0.25, **layout), at, Steady(1.0), footprint=0.5)
    fine_rooms = Rooms.from_walls((4, 3), cell=0.05, **layout)
    fine = FloorPlan(fine_rooms, [tuple(p) for p in coarse.sensor_positions], Steady(1.0), footprint=0.5)
    field = fine.matrix.reshape(fine.sensors, *fine_rooms.grid.shape)
    through = field[:, 20:25, 20:60]  # the lowest 25 cm of the doorway
    boxes = np.stack([through[:, :, k : k + 5].mean(axis=(1, 2)) for k in range(36)])
    slopes = np.linalg.norm(np.diff(boxes, axis=0), axis=1) / 0.05
    assert slopes.max() <= coarse.moves().steepest().value
    assert slopes.max() >= 0.6 * coarse.moves().steepest().value
    points = np.linalg.norm(np.diff(through[:, 0], axis=1), axis=0) / 0.05
    assert points.max() > coarse.moves().steepest().value
