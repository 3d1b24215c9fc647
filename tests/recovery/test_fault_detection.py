"""Faults of sensors and of the physics, noticed in released readings."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
import pytest

from cloakwork._checks import FloatArray
from cloakwork.errors import InputError
from cloakwork.physics import FloorPlan, Rooms, Steady
from cloakwork.recovery import DrawnSources, Fault, FaultDetector, FaultKind, Tracker
from cloakwork.recovery.tracking.fault_detection import YEAR_S

SIGMA = 0.1
PERIOD = 60.0


@dataclass
class Enumerated:
    """In place of a tracker: draws of one source, present half of the time, from their exact posterior."""

    tracker: Tracker
    rng: np.random.Generator
    sigma: float = SIGMA
    draws: int = 24
    distrusted: frozenset[int] = frozenset()
    drawn: DrawnSources = field(init=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tracker, name)

    @cached_property
    def columns(self) -> FloatArray:
        """Readings without a source, and with one at each place."""
        return np.vstack([np.zeros(self.tracker.problem.physics.sensors), self.tracker.problem.physics.matrix.T])

    def frame(self) -> FloatArray:
        """True readings of a source drawn from the prior."""
        places = len(self.columns) - 1
        return np.asarray(self.columns[self.rng.integers(1, places + 1) if self.rng.random() < 0.5 else 0])

    def step(self, readings: FloatArray) -> None:
        used = ~np.isnan(readings)
        used[list(self.distrusted)] = False
        misfit = (((readings - self.columns) / self.sigma)[:, used] ** 2).sum(axis=1) / 2
        law = np.exp(misfit.min() - misfit) * np.append(len(misfit) - 1, np.ones(len(misfit) - 1))
        chosen = self.rng.choice(len(law), self.draws, p=law / law.sum())
        self.drawn = DrawnSources(np.asarray(chosen - 1)[:, None], np.ones((self.draws, 1)), np.zeros((self.draws, 1)))


def enumerated(seed: int, sigma: float = SIGMA) -> Enumerated:
    rooms = Rooms.from_walls((4, 2), cell=0.5, walls=[((2, 0), (2, 2))], doors=[((2, 0.5), (2, 1.5))])
    at = [(x, y) for x in (0.25, 1.25, 2.75, 3.75) for y in (0.75, 1.75)]
    tracker = Tracker(FloorPlan(rooms, at, Steady(1.0)), sigma=sigma, max_sources=1)
    return Enumerated(tracker, np.random.default_rng(seed), sigma)


def noisy(source: Enumerated, true: FloatArray) -> FloatArray:
    return true + source.sigma * source.rng.standard_normal(len(true))


def detector(source: Enumerated, per_year: float = 1.0) -> FaultDetector:
    return FaultDetector(source.tracker.observer, period=PERIOD, per_year=per_year)


def test_the_evidence_of_a_healthy_frame_has_expectation_one() -> None:
    source = enumerated(1, sigma=0.4)
    tests = detector(source)
    total, square, frames = np.zeros(()), np.zeros(()), 1000
    for _ in range(frames):
        readings = noisy(source, source.frame())
        source.distrusted = tests.sensors
        source.step(readings)
        evidence = np.exp(tests.evidence(readings, source.drawn))
        total, square = total + evidence, square + evidence**2
    mean = total / frames
    error = np.sqrt(square / frames - mean**2) / np.sqrt(frames)
    real = error > 0
    assert real.sum() > 150
    sharp = real & (error < 0.04)  # the others have rare large values, of which a simulation sees too few
    assert sharp.sum() > 0.7 * real.sum()
    assert (np.abs(mean - 1) < 5 * error + 1e-9)[sharp].all()


def test_false_alarms_are_no_more_frequent_than_stated() -> None:
    source, frames, allowed = enumerated(2), 1500, 20
    tests = detector(source, per_year=allowed / (frames * PERIOD / YEAR_S))
    alarms, known = 0, 0
    for _ in range(frames):
        readings = noisy(source, source.frame())
        source.distrusted = tests.sensors
        source.step(readings)
        now = len(tests.step(readings, source.drawn))
        alarms, known = alarms + max(0, now - known), now
    assert alarms <= allowed


@pytest.mark.parametrize(
    ("kind", "spoil"),
    [
        (FaultKind.DEAD, lambda true, _: 0.0 * true),
        (FaultKind.HIGH, lambda true, _: true + 0.1),
        (FaultKind.LOW, lambda true, _: true - 0.1),
        (FaultKind.NOISY, lambda true, rng: true + 0.15 * rng.standard_normal()),
        (FaultKind.MOVED, None),
    ],
)
def test_a_fault_of_a_sensor_is_named_and_ends_when_it_is_mended(kind: FaultKind, spoil: Any) -> None:
    source = enumerated(3)
    tests = detector(source)
    sensors: list[set[int | None]] = [set()]
    for number in range(650):
        true = source.frame()
        spoilt = true.copy()
        if number < 300:
            spoilt[2] = true[7] if spoil is None else spoil(true[2], source.rng)
        readings = noisy(source, spoilt)
        source.distrusted = tests.sensors
        source.step(readings)
        faults = tests.step(readings, source.drawn)
        if number == 299:
            assert [fault.kind for fault in faults] == [kind]
            assert kind is not FaultKind.MOVED or faults[0].other in (4, 5, 6, 7)  # the other room
        if sensors[-1] != {fault.sensor for fault in faults}:
            sensors.append({fault.sensor for fault in faults})
    assert sensors == [set(), {2}, set()]  # one alarm, and its end


def test_a_door_that_became_a_wall_is_named() -> None:
    source = enumerated(4)
    tests = detector(source)
    shut = cast(FloorPlan, source.tracker.problem.physics).with_doors_shut([0]).matrix
    for _ in range(400):
        readings = noisy(source, shut[:, source.rng.integers(shut.shape[1])])
        source.distrusted = tests.sensors
        source.step(readings)
        faults = tests.step(readings, source.drawn)
    assert faults == (Fault(FaultKind.DOOR, other=0),)


def test_one_sensor_with_a_wrong_unit_is_not_taken_for_changed_rooms() -> None:
    source = enumerated(6)
    tests = detector(source)
    raised: set[Fault] = set()
    for _ in range(30):
        true = source.frame()
        readings = noisy(source, np.where(np.arange(8) == 2, 1.8 * (true + 20.0) + 12.0, true))
        source.distrusted = tests.sensors
        source.step(readings)
        raised |= set(tests.step(readings, source.drawn))
    assert {fault.sensor for fault in raised} == {2}


def test_a_detector_goes_on_from_the_state_of_another() -> None:
    source = enumerated(5)
    first, second = detector(source), detector(source)
    for number in range(120):
        readings = noisy(source, source.frame()) + np.array([0, 0, 0.15, 0, 0, 0, 0, 0])
        readings[4] = np.nan
        source.distrusted = first.sensors
        source.step(readings)
        if number >= 60:
            second.step(readings, source.drawn)
        first.step(readings, source.drawn)
        if number == 59:
            second.state = first.state
    np.testing.assert_array_equal(first.state, second.state)
    assert first.active == second.active != ()
    with pytest.raises(InputError) as caught:
        first.state = first.state[:-1]
    assert caught.value.values["shape"] == (8, first.state.shape[1])
