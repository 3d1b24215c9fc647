"""Notice that the physics has changed: sequential tests on released readings, with a stated rate of false alarms."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from cloakwork._checks import FloatArray, IntArray, positive
from cloakwork.errors import InputError, PhysicsError
from cloakwork.physics import FloorPlan, Physics
from cloakwork.recovery.tracker import Tracker

YEAR_S = 365.25 * 86_400
PER_YEAR = 1.0  # false alarms
OFFSETS = (0.5, 1.0, 3.0)  # in standard deviations of the noise
STUCK = (0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0)  # where a dead sensor may stay
ELSEWHERE = 64  # most positions at which a moved sensor is tried
DRAWS = 24  # of the sources; those before, of a new tracker, are not from the posterior yet
CAUTION = 0.8  # power of the evidence: its expectation is then below 1, also where predictions are a little too sure
LARGEST = 4.0  # logarithm of the most that one frame may say: none raises an alarm alone


class FaultKind(StrEnum):
    """How a sensor, or the physics of all of them, differs from the model."""

    DEAD = "dead"
    WEAK = "weak"
    STRONG = "strong"
    HIGH = "high"
    LOW = "low"
    QUIET = "quiet"
    NOISY = "noisy"
    MOVED = "moved"
    STRENGTH = "strength"
    REACH = "reach"
    DOOR = "door"


GAINS = {FaultKind.WEAK: 0.5, FaultKind.STRONG: 2.0}
SCALES = {FaultKind.QUIET: 0.7, FaultKind.NOISY: 1.5}  # of the noise
STRENGTHS, REACHES = (0.7, 1.4), (0.8, 1.25)  # of all sources, and of their warmth


@dataclass(frozen=True)
class Fault:
    """A change that the readings show.

    `sensor` is the number of the sensor, None where all are concerned. `other` is the number of the sensor at whose
    position a moved one seems to be, or that of the door which seems to be shut.
    """

    kind: FaultKind
    sensor: int | None = None
    other: int | None = None


class FaultDetector:
    """Tests after each step of a tracker whether the readings still follow the model.

    Parameters
    ----------
    tracker
        Follows the sources; its model is the one that is tested. It ignores the sensors that are found faulty.
    period
        Seconds between frames.
    per_year
        Expected number of false alarms a year, over all sensors and faults.

    Notes
    -----
    Let f be the sources of a frame y, drawn by the tracker from their posterior given y and all frames before. For a
    fault q, the evidence e of the frame is the mean of q(y | f) / p(y | f) over the draws. While the model p holds, its
    expectation given the past is 1, because it estimates q(y | past) / p(y | past) without bias. For a fault of one
    sensor only its own reading enters: the past and the other sensors predict it.

    The statistic R = e (R + r) of Shiryaev and Roberts then has expectation r times the number of frames, so R reaches
    1 at most r times a frame on average (Shin, Ramdas and Rinaldo), and less often with the power of e that is used.
    The rates r of all faults add up to `per_year`. A fault ends by the same test with the two hypotheses exchanged.

    >>> from cloakwork.physics import HeatLine, sources
    >>> line = HeatLine(n=50, m=10, T=0.01)
    >>> tracker, readings = Tracker(line, sigma=0.3, most=1), line.apply(sources(line, [0.3]))
    >>> detector = FaultDetector(tracker, period=60.0)
    >>> readings[7] -= 1.0
    >>> for minute in range(10):
    ...     _ = tracker.step(readings, 60.0 * minute)
    ...     faults = detector.step(readings)
    >>> [(fault.kind.value, fault.sensor) for fault in faults]
    [('low', 7)]
    """

    def __init__(self, tracker: Tracker, *, period: float, per_year: float = PER_YEAR) -> None:
        positive("period", period)
        positive("per_year", per_year)
        self._tracker = tracker
        physics = tracker.problem.physics
        self._sigma = tracker.problem.effective_sigma * tracker.observer.lattice.blur
        self._columns = self._whitened(physics)
        sensors = physics.sensors
        self._elsewhere = np.unique(np.linspace(0, sensors - 1, min(sensors, ELSEWHERE)).round().astype(np.int64))
        common = list(self._common(physics))
        self._changed = [columns for _, columns in common]
        self._faults = [[*self._own(sensor)] for sensor in range(sensors)] + [[fault for fault, _ in common]]
        rate = per_year * period / YEAR_S / len(self._faults)
        self._rates = np.full((len(self._faults), max(map(len, self._faults))), -np.inf)
        for row, faults in zip(self._rates, self._faults, strict=True):
            kinds = [fault.kind for fault in faults]
            row[: len(kinds)] = [np.log(rate / len(set(kinds)) / kinds.count(kind)) for kind in kinds]
        self.restart()

    def restart(self) -> None:
        """Forget all frames and faults."""
        self._statistics = np.full_like(self._rates, -np.inf)  # a row for each sensor and one for all; logarithms
        self._ends = np.full(len(self._rates), -np.inf)  # statistics for the end of active faults
        self._found = np.full(len(self._rates), -1)  # columns of active faults
        self._tracker.distrusted = frozenset()

    @property
    def tracker(self) -> Tracker:
        """The tracker whose frames are tested; another one must have the same model."""
        return self._tracker

    @tracker.setter
    def tracker(self, tracker: Tracker) -> None:
        self._tracker = tracker
        tracker.distrusted = self._distrusted

    @property
    def active(self) -> tuple[Fault, ...]:
        """The faults that the readings show now: at most one of each sensor and one of all, as it looks by now."""
        return tuple(self._faults[row][self._found[row]] for row in np.flatnonzero(self._found >= 0))

    @property
    def state(self) -> FloatArray:
        """Everything that another detector of the same model needs to go on."""
        return np.column_stack([self._statistics, self._ends, self._found])

    @state.setter
    def state(self, state: FloatArray) -> None:
        rows, columns = self._statistics.shape
        if state.shape != (rows, columns + 2):
            raise InputError(f"a state of shape {state.shape} is not that of this model.", shape=state.shape)
        self._statistics, self._ends = state[:, :-2].copy(), state[:, -2].copy()
        self._found = state[:, -1].astype(np.int64)
        self._tracker.distrusted = self._distrusted

    @property
    def _distrusted(self) -> frozenset[int]:
        return frozenset(np.flatnonzero(self._found[:-1] >= 0).tolist())

    def step(self, readings: ArrayLike) -> tuple[Fault, ...]:
        """Take the readings of the tracker's last frame, NaN for missing ones; returns the faults that are active."""
        idle, active = self._found < 0, self._found >= 0
        evidence = self.evidence(readings)
        evidence[idle] = np.minimum(CAUTION * evidence[idle], LARGEST)
        self._statistics[idle] = np.logaddexp(self._statistics[idle], self._rates[idle])
        before = logsumexp(self._statistics[active], axis=1)
        self._statistics += evidence
        any_fault = np.maximum(logsumexp(self._statistics[active], axis=1) - before, -LARGEST)
        self._ends[active] = np.logaddexp(self._ends[active], logsumexp(self._rates[active], axis=1)) - any_fault
        ended = active & (self._ends >= 0)
        self._found[ended] = -1
        totals = logsumexp(self._statistics, axis=1)
        common = totals[-1] if self._found[-1] >= 0 else 0.0  # a change of all sensors may explain that of one
        worst = int(np.where(active, -np.inf, totals).argmax())
        begins = idle[worst] and totals[worst] >= max(0.0, common)
        if begins:
            self._found[-1], self._found[worst] = -1, int(self._statistics[worst].argmax())
            self._ends[worst], self._statistics[worst] = -np.inf, self._rates[worst]  # from now on to name it
        if ended.any() or (begins and worst < len(self._sigma)):  # the tracker now ignores other sensors
            self._statistics[self._found < 0] = -np.inf
        self._name()
        self._tracker.distrusted = self._distrusted
        return self.active

    def _name(self) -> None:
        """Rename faults that clearly look like another by now."""
        for row in np.flatnonzero(self._found >= 0):
            best = int(self._statistics[row].argmax())
            if self._statistics[row, best] > self._statistics[row, self._found[row]] + LARGEST:
                self._found[row] = best

    def evidence(self, readings: ArrayLike) -> FloatArray:
        """The logarithm of the evidence of the tracker's last frame: a row for each sensor, one for all."""
        white = np.asarray(readings, dtype=np.float64) / self._sigma
        there = ~np.isnan(white)
        seen = np.where(there, white, 0.0) - self._drawn[2]  # less the drawn offsets that drift
        model = self._predicted(self._columns)
        rest = seen - model
        gains = [(seen - gain * model) ** 2 / 2 for gain in GAINS.values()]
        offsets = [(rest - sign * offset) ** 2 / 2 for sign in (1, -1) for offset in OFFSETS]
        scales = [rest**2 / (2 * scale**2) + np.log(scale) for scale in SCALES.values()]
        elsewhere = (model * self._sigma)[:, None, self._elsewhere] / self._sigma[:, None]
        stuck = [(seen - value) ** 2 / 2 for value in STUCK]
        own = np.concatenate(
            [np.stack([*stuck, *gains, *offsets, *scales], axis=2), (seen[:, :, None] - elsewhere) ** 2 / 2], axis=2
        )
        squares = rest**2 / 2
        evidence = np.full_like(self._statistics, -np.inf)
        evidence[:-1, : own.shape[2]] = _log_mean(squares[:, :, None] - own)
        apart = sorted(self._distrusted)  # the draws do not depend on these readings
        evidence[apart, : own.shape[2]] = _log_mean(-own[:, apart]) - _log_mean(-squares[:, apart, None])
        evidence[:-1][~there] = 0.0
        there[apart] = False
        for column, columns in enumerate(self._changed):
            changed = (seen - self._predicted(columns)) ** 2 / 2
            evidence[-1, column] = _log_mean((squares - changed)[:, there].sum(axis=1))
        return evidence

    @property
    def _drawn(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """The last draws of candidates and strengths of the sources, and of offsets."""
        if self._tracker.drawn is None:
            raise InputError("the tracker has no frame yet: let it take the frame first.")
        candidates, strengths, offsets = self._tracker.drawn
        return candidates[-DRAWS:], strengths[-DRAWS:], offsets[-DRAWS:]

    def _predicted(self, columns: FloatArray) -> FloatArray:
        """The readings that each draw of the sources predicts, divided by the noise, shape (draws, m)."""
        candidates, strengths, _ = self._drawn
        weights = np.where(candidates < 0, 0.0, strengths)
        return np.asarray(np.einsum("ds,dsm->dm", weights, columns[candidates]))

    def _whitened(self, physics: Physics) -> FloatArray:
        """The readings of a unit source at each candidate, divided by the noise, shape (candidates, m)."""
        observer = self._tracker.observer
        columns = physics.columns_at(observer.positions)
        matrix = physics.matrix[:, observer.place] if columns is None else columns
        return np.ascontiguousarray(matrix.T / self._sigma)

    def _own(self, sensor: int) -> Iterator[Fault]:
        """The faults of one sensor, in the order of the evidence."""
        offsets = [kind for kind in (FaultKind.HIGH, FaultKind.LOW) for _ in OFFSETS]
        for kind in (*(FaultKind.DEAD for _ in STUCK), *GAINS, *offsets, *SCALES):
            yield Fault(kind, sensor)
        for other in self._elsewhere.tolist():
            yield Fault(FaultKind.MOVED, sensor, other)

    def _common(self, physics: Physics) -> Iterator[tuple[Fault, FloatArray]]:
        """The faults of all sensors, each with the readings of a unit source."""
        for strength in STRENGTHS:
            yield Fault(FaultKind.STRENGTH), strength * self._columns
        with suppress(PhysicsError):  # a matrix has no reach
            for reach in REACHES:
                yield Fault(FaultKind.REACH), self._whitened(physics.with_spread(reach**2))
        if not isinstance(physics, FloorPlan):
            return
        for door in range(physics.rooms.doors):
            yield Fault(FaultKind.DOOR, other=door), self._whitened(physics.with_doors_shut([door]))


def _log_mean(logarithms: FloatArray) -> FloatArray:
    """The logarithm of the mean over the draws, the first axis."""
    return np.asarray(logsumexp(logarithms, axis=0) - np.log(len(logarithms)))
