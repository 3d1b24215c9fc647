"""Many sources on a large floor: local moves sample the same posterior as the exact methods."""

from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest

from cloakwork._checks import FloatArray
from cloakwork.demo import load_office
from cloakwork.errors import InputError
from cloakwork.physics import FloorPlan, Pulse, Rooms, Steady, floorplan, sources
from cloakwork.privacy import Cloak
from cloakwork.readings import Frame, FrameTracker
from cloakwork.readings.frame_recovery import partial_cloak
from cloakwork.recovery import BasisPursuit, FloorTracker, Motion, PointSources, Problem, recover
from cloakwork.recovery.floors import floor_sampler
from cloakwork.recovery.tracking.motion import MotionModel
from cloakwork.recovery.tracking.observation import Observer
from cloakwork.recovery.tracking.path_kernels import predict
from cloakwork.site import parse_site

PEOPLE = [(1.2, 1.2), (3.2, 2.2)]


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> tuple[FloorPlan, FloorPlan]:
    """Two rooms with all entries of M, and with those that matter."""
    rooms = Rooms.from_walls((10, 5), cell=0.5, walls=[((5, 0), (5, 5))], doors=[((5, 2), (5, 3))])
    dense = FloorPlan(rooms, [(x, y) for x in np.arange(0.6, 10, 1.25) for y in np.arange(0.5, 5)], Steady(1.0))
    assert dense.local is None
    monkeypatch.setattr(floorplan, "MAX_DENSE", 0)
    return dense, replace(dense)


@pytest.fixture
def readings(both: tuple[FloorPlan, FloorPlan]) -> FloatArray:
    noise = np.random.default_rng(2).standard_normal(both[0].sensors)
    return np.asarray(both[0].apply(sources(both[0], PEOPLE)) + 0.15 * noise)


def test_counts_and_places_agree_with_a_sum_over_all_placements(
    both: tuple[FloorPlan, FloorPlan], readings: FloatArray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(floor_sampler, "SWEEPS", 100)
    sampled = recover(readings, both[1], sigma=0.15, estimator=PointSources(1.0, max_sources=2))
    columns, n = both[0].matrix / 0.15, both[0].places
    alone = readings / 0.15 @ columns - (columns**2).sum(axis=0) / 2
    one = np.exp(alone) / n  # a Poisson process with one expected source
    two = np.exp(alone[:, None] + alone - columns.T @ columns) / n**2 / 2
    total = 1 + one.sum() + two.sum()
    assert sampled.counts == pytest.approx(np.array([1, one.sum(), two.sum()]) / total, abs=0.05)
    assert np.abs(sampled.intensity - (one + 2 * two.sum(axis=0)) / total).sum() / 2 < 0.05


def test_one_source_is_followed_as_by_the_exact_filter(both: tuple[FloorPlan, FloorPlan]) -> None:
    motion = Motion(mean_sit_s=30.0, mean_walk_s=10.0, speed=0.1, mean_present_s=300.0, mean_absent_s=300.0)
    plan, sigma, rng = both[1], 0.12, np.random.default_rng(3)
    tracker = FloorTracker(plan, sigma=sigma, max_sources=1, motion=motion)
    model = Observer(Problem.with_noise(both[0], sigma), 1.0)
    moves = MotionModel(motion, model.distances, model.spacing)
    # with at most one source, the Poisson process has weight 1/2 to 1 of none to one before the first frame
    law = np.append(moves.first / 2, 1.0).astype(np.float64)
    columns, apart = both[0].matrix / sigma, []
    for frame, at in enumerate([25, 25, 25, 26, 27, 27, 47, 47]):
        readings = both[0].apply(np.eye(plan.places)[at]) + sigma * rng.standard_normal(plan.sensors)
        if frame:
            after = np.empty((1, len(law)), dtype=np.float32)
            predict(moves.over(5.0), law[None].astype(np.float32), after)
            law = after[0].astype(np.float64)
        gain = np.exp(readings / sigma @ columns - (columns**2).sum(axis=0) / 2)
        law *= np.append(np.tile(gain, 2), 1.0)
        law /= law.sum()
        now = tracker.step(readings, 5.0 * frame)
        apart.append(np.abs(now.intensity - law[:-1].reshape(2, -1).sum(axis=0)).sum() / 2)
    assert max(apart) < 0.06


def test_many_sources_and_unknown_strengths_are_refused_where_they_cannot_be_sampled(
    both: tuple[FloorPlan, FloorPlan], readings: FloatArray
) -> None:
    pulse = replace(both[0], regime=Pulse(0.5))
    with pytest.raises(InputError) as refused:
        recover(readings, pulse, sigma=0.15, estimator=PointSources(1.0, max_sources=40))
    assert refused.value.values["max_sources"] == 40
    with pytest.raises(InputError) as refused:
        recover(readings, both[1], sigma=0.15, estimator=PointSources((0.2, 1.0), max_sources=40))
    assert refused.value.values["places"] == both[1].places
    with pytest.raises(InputError) as refused:
        FloorTracker(both[0], sigma=0.15, max_sources=12)
    assert refused.value.values["places"] == both[0].places


def test_sensors_without_a_reading_do_not_count(both: tuple[FloorPlan, FloorPlan]) -> None:
    cloak = Cloak(both[1], epsilon=4.0, delta=1e-5, alpha=0.5, sigma=3.0)
    present = np.arange(cloak.physics.sensors) != 3
    part = partial_cloak(cloak, present)
    values = np.where(present, 0.0, 1e6)
    result = recover(values, part, estimator=PointSources(1.0, max_sources=20))
    assert not result.fit.doubtful
    assert result.intensity.max() < 0.5


def test_people_are_followed_under_their_labels_and_a_broken_sensor_is_set_aside(
    both: tuple[FloorPlan, FloorPlan],
) -> None:
    plan, sigma, rng = both[1], 0.08, np.random.default_rng(5)
    tracker = FloorTracker(plan, sigma=sigma, max_sources=20)
    people = [(1.2, 1.2), (3.2, 3.2), (8.2, 2.2)]
    for frame in range(6):
        readings = plan.apply(sources(plan, people)) + sigma * rng.standard_normal(plan.sensors)
        readings[1] = np.nan
        if frame == 4:
            readings[7] += 20.0
        now = tracker.step(readings, 10.0 * frame)
        assert now.fit.set_aside == ((7,) if frame == 4 else ())
        if frame == 2:
            known = set(now.labels)
    assert set(now.labels) == known
    assert len(known) == 3
    where = {source.place for source in now.sources}
    assert all(any(np.linalg.norm(plan.space.places[k] - at) < 0.8 for k in where) for at in people)
    assert now.anyone(np.flatnonzero(plan.space.places[:, 0] > 5)) > 0.99
    with pytest.raises(InputError, match="too late"):
        tracker.step(readings, 10.0)
    last = {track.label: track.places[-1] for track in now.tracks}
    tracker.resume({10 + label: place for label, place in last.items()}, 40)
    again = tracker.step(readings, 50.0, again=True)
    assert set(again.labels) == {10 + label for label in known}


def test_following_depends_on_the_seed_alone(
    both: tuple[FloorPlan, FloorPlan], readings: FloatArray, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []
    for cores in (2, 1):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        tracker = FloorTracker(both[1], sigma=0.15, max_sources=20, seed=3)
        runs.append([tracker.step(readings, 10.0 * frame).intensity for frame in range(3)])
    assert (np.array(runs[0]) == runs[1]).all()


def test_chains_start_again_where_what_they_drew_has_become_impossible(both: tuple[FloorPlan, FloorPlan]) -> None:
    plan = both[1]
    readings = plan.apply(sources(plan, [(1.2, 1.2)]))
    tracker = FloorTracker(plan, sigma=0.05, max_sources=20, motion=Motion.still())
    tracker.step(readings, 0.0)
    assert len(tracker.belief.tracks) == 1
    far = tuple((np.array([plan.places - 1]), others) for _, others in tracker.belief.placements)
    tracker.belief = replace(tracker.belief, placements=far)
    now = tracker.step(readings, 10.0)
    assert [source.at for source in now.sources] == [(1.25, 1.25)]


@pytest.mark.parametrize("more", ["drift = {all = 1.0}\n", "strength"])
def test_many_people_whose_readings_drift_or_whose_strength_is_unknown_are_recovered_frame_by_frame(more: str) -> None:
    text = files("cloakwork.demo").joinpath("office.toml").read_text(encoding="utf-8").partition("[motion]")[0]
    unknown = text.replace("strength = 5.0", "strength = [1.0, 5.0]")
    floor = parse_site(unknown if more == "strength" else more + text)
    assert not floor.follows
    assert not floor.samples_locally
    assert isinstance(floor.estimator().estimator, BasisPursuit)


def test_more_than_twelve_people_are_followed_on_a_small_floor() -> None:
    floor, rng = load_office()[0], np.random.default_rng(4)
    assert floor.follows
    assert floor.samples_locally
    cloak, plan = floor.cloak(), floor.physics
    tracker, rooms = FrameTracker(floor, cloak), [zone.places for zone in floor.zones]
    people = rng.choice(plan.places, 16, replace=False)
    true = [np.isin(people, places).sum() for places in rooms]
    clean = plan.apply(np.bincount(people, minlength=plan.places) * 1.0) + floor.baselines
    present, wrong = np.ones(plan.sensors, dtype=np.bool_), []
    present[7] = False  # a device that is away
    for minute in range(12):
        steps = cloak.to_steps(cloak.simulate(clean, rng=rng))
        found = tracker.step(Frame(60_000 * (minute + 1), steps, present))
        wrong.append(np.abs([found.shown[places].sum() for places in rooms] - np.array(true)).mean())
    assert np.mean(wrong[-4:]) < 0.35
