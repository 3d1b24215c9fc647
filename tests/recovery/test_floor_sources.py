"""Many sources on a large floor: local moves sample the same posterior as the exact methods."""

from dataclasses import replace

import numpy as np
import pytest

from cloakwork._checks import FloatArray
from cloakwork.errors import InputError
from cloakwork.physics import FloorPlan, Rooms, Steady, floorplan, sources
from cloakwork.privacy import Cloak
from cloakwork.readings.frame_recovery import partial_cloak
from cloakwork.recovery import PointSources, recover
from cloakwork.recovery import floor_sources as sampler

PEOPLE = [(1.2, 1.2), (3.2, 2.2)]


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> tuple[FloorPlan, FloorPlan]:
    """Two rooms with all entries of M, and with those that matter."""
    rooms = Rooms.from_walls((10, 5), cell=0.5, walls=[((5, 0), (5, 5))], doors=[((5, 2), (5, 3))])
    dense = FloorPlan(rooms, [(x, y) for x in np.arange(0.6, 10, 1.25) for y in np.arange(0.5, 5)], Steady(1.0))
    assert dense.local is None
    monkeypatch.setattr(floorplan, "MOST_DENSE", 0)
    return dense, replace(dense)


@pytest.fixture
def readings(both: tuple[FloorPlan, FloorPlan]) -> FloatArray:
    noise = np.random.default_rng(2).standard_normal(both[0].sensors)
    return np.asarray(both[0].apply(sources(both[0], PEOPLE)) + 0.15 * noise)


def test_counts_and_places_agree_with_a_sum_over_all_placements(
    both: tuple[FloorPlan, FloorPlan], readings: FloatArray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "SWEEPS", 40)
    sampled = recover(readings, both[1], sigma=0.15, estimator=PointSources(1.0, most=2))
    columns, n = both[0].matrix / 0.15, both[0].places
    alone = readings / 0.15 @ columns - (columns**2).sum(axis=0) / 2
    one = np.exp(alone) / n
    two = np.exp(alone[:, None] + alone - columns.T @ columns) / n**2
    total = 1 + one.sum() + two.sum()
    assert sampled.counts == pytest.approx(np.array([1, one.sum(), two.sum()]) / total, abs=0.15)  # 80 draws
    assert np.abs(sampled.intensity - (one + 2 * two.sum(axis=0)) / total).sum() / 2 < 0.1


def test_a_result_depends_on_the_seed_alone(
    both: tuple[FloorPlan, FloorPlan], readings: FloatArray, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimator = PointSources(1.0, most=40)
    first = recover(readings, both[1], sigma=0.15, estimator=estimator)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    again = recover(readings, both[1], sigma=0.15, estimator=estimator)
    other = recover(readings, both[1], sigma=0.15, estimator=replace(estimator, seed=1))
    assert (first.intensity == again.intensity).all()
    assert (first.intensity != other.intensity).any()


def test_many_sources_and_unknown_strengths_are_refused_where_they_cannot_be_sampled(
    both: tuple[FloorPlan, FloorPlan], readings: FloatArray
) -> None:
    with pytest.raises(InputError) as refused:
        recover(readings, both[0], sigma=0.15, estimator=PointSources(1.0, most=40))
    assert refused.value.values["most"] == 40
    with pytest.raises(InputError) as refused:
        recover(readings, both[1], sigma=0.15, estimator=PointSources((0.2, 1.0), most=40))
    assert refused.value.values["places"] == both[1].places


def test_sensors_without_a_reading_do_not_count(both: tuple[FloorPlan, FloorPlan]) -> None:
    cloak = Cloak(both[1], epsilon=4.0, delta=1e-5, alpha=0.5, sigma=3.0)
    present = np.arange(cloak.physics.sensors) != 3
    part = partial_cloak(cloak, present)
    values = np.where(present, 0.0, 1e6)
    result = recover(values, part, estimator=PointSources(1.0, most=20))
    assert not result.fit.doubtful
    assert result.intensity.max() < 0.5
