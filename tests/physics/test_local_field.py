"""The steady field of a large floor keeps what matters, and bounds the rest."""

from dataclasses import replace

import numpy as np
import pytest

from cloakwork.physics import Family, FloorPlan, Rooms, Steady, Timing, floorplan


@pytest.fixture(params=[0.0, 0.25])
def both(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[FloorPlan, FloorPlan]:
    """The same six rooms with all entries, and with those that matter."""
    walls = [((x, 0), (x, 10)) for x in (5, 10)] + [((0, 5), (15, 5))]
    doors = [((x, y), (x, y + 1)) for x in (5, 10) for y in (2, 7)] + [((x, 5), (x + 1, 5)) for x in (2, 12)]
    rooms = Rooms.from_walls((15, 10), cell=0.5, walls=walls, doors=doors)
    sensors = [(x, y) for x in np.arange(0.6, 15, 1.25) for y in np.arange(0.5, 10)]
    dense = FloorPlan(rooms, sensors, Steady(1.0), footprint=request.param)
    assert dense.local is None
    monkeypatch.setattr(floorplan, "MAX_DENSE", 0)
    monkeypatch.setattr("cloakwork.physics.local_field.TILE", 7)
    monkeypatch.setattr("cloakwork.physics.local_field.WINDOW", 1e-2)  # so that windows end within the floor
    local = replace(dense)
    assert local.local is not None
    return dense, local


def test_dropped_entries_and_windows_stay_within_their_bounds(both: tuple[FloorPlan, FloorPlan]) -> None:
    dense, local = both
    assert local.local is not None
    missing = dense.matrix - local.local.columns.toarray()
    assert local.local.columns.nnz < 0.7 * dense.matrix.size
    kept = local.local.columns.toarray() != 0
    assert np.linalg.norm(np.where(kept, missing, 0.0), 2) <= local.local.error
    assert (np.linalg.norm(missing, axis=0) <= local.local.dropped + local.local.error).all()
    i, j = dense.space.pairs.T
    assert np.linalg.norm(missing[:, i] - missing[:, j], axis=0).max() <= local.move_error


def test_slopes_are_at_least_the_exact_ones_and_hardly_more(both: tuple[FloorPlan, FloorPlan]) -> None:
    dense, local = both
    error = local.move_error / 0.5
    weights = np.random.default_rng(0).uniform(0.5, 2.0, dense.sensors)
    exact, bound = dense.moves().steepest(weights), local.moves().steepest(weights)
    assert exact.value <= bound.value <= exact.value + 2 * 2 * error
    assert (dense.moves().each <= local.moves().each).all()
    moving = Timing(spread=0.3, speed=1.5)
    exact_frame, frame = (Family(each, timing=moving).steepest(weights).value for each in (dense, local))
    assert exact_frame <= frame <= exact_frame * (1 + 40 * error / exact.value)


def test_readings_and_their_adjoint_agree_with_all_entries(both: tuple[FloorPlan, FloorPlan]) -> None:
    dense, local = both
    rng = np.random.default_rng(1)
    people, readings = rng.random((2, 3, dense.places)), rng.random((4, dense.sensors))
    assert np.abs(local.apply(people) - dense.apply(people)).max() < 0.05 * dense.apply(people).max()
    inner = (local.apply(people) * readings[0]).sum(-1), (people * local.adjoint(readings[0])).sum(-1)
    assert inner[0] == pytest.approx(inner[1], rel=1e-12)
