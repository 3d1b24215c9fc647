"""Notice that the physics has changed: sequential tests on released readings with a bounded rate of false alarms."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from cloakwork._checks import FloatArray, positive
from cloakwork.errors import InputError, PhysicsError
from cloakwork.physics import Physics
from cloakwork.recovery.tracking.observation import DrawnSources, Observer

YEAR_S = 365.25 * 86_400
MAX_ELSEWHERE = 64  # positions at which a moved sensor is tried
DRAWS = 24  # the newest; older ones of a new tracker are not from the posterior yet
CAUTION = 0.8  # power of the evidence: its expectation is then below 1 even where predictions are slightly too sure
MAX_EVIDENCE = 4.0  # logarithm of the most that one frame counts: no frame raises an alarm alone


class FaultKind(StrEnum):
    """How a sensor, or the physics of all sensors, differs from the model."""

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


# a faulty sensor reads gain * prediction + offset + scale * noise; offsets are in standard deviations of the noise
SENSOR_FAULTS = [
    *((FaultKind.DEAD, 0.0, offset, 1.0) for offset in (0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0)),
    *((FaultKind.HIGH, 1.0, offset, 1.0) for offset in (0.5, 1.0, 3.0)),
    *((FaultKind.LOW, 1.0, -offset, 1.0) for offset in (0.5, 1.0, 3.0)),
    *((FaultKind.WEAK, 0.5, 0.0, 1.0), (FaultKind.STRONG, 2.0, 0.0, 1.0)),
    *((FaultKind.QUIET, 1.0, 0.0, 0.7), (FaultKind.NOISY, 1.0, 0.0, 1.5)),
]
STRENGTHS, REACHES = (0.7, 1.4), (0.8, 1.25)  # of all sources, and of their heat


@dataclass(frozen=True)
class Fault:
    """A change that the readings show.

    `sensor` is the number of the sensor, None if all are concerned. `other` is the sensor at whose position a moved one
    seems to be, or the door that seems to be shut.
    """

    kind: FaultKind
    sensor: int | None = None
    other: int | None = None


class FaultDetector:
    """Tests after each step of a tracker whether the readings still follow the model.

    Parameters
    ----------
    observer
        That of the tracker, whose model is tested.
    period
        Seconds between frames.
    per_year
        Expected number of false alarms a year, over all sensors and faults.

    Notes
    -----
    Let f be the sources of a frame y, drawn from their posterior given y and all frames before. For a fault q, the
    evidence e of the frame is the mean of q(y | f) / p(y | f) over the draws. While the model p holds, its expectation
    given the past is 1, because it estimates q(y | past) / p(y | past) without bias. For a fault of one sensor only the
    sensor's own reading counts.

    The statistic R <- e (R + r) of Shiryaev and Roberts then has expectation r times the number of frames, so it
    reaches 1, the alarm, at a rate of at most r. The rates r of all faults add up to `per_year`. Pass the sensors found
    faulty to the tracker, as `tracker.step(..., ignored=detector.sensors)`.

    >>> from cloakwork.physics import HeatLine, sources
    >>> from cloakwork.recovery import Tracker
    >>> line = HeatLine(n=50, m=10, T=0.01)
    >>> tracker, readings = Tracker(line, sigma=0.3, max_sources=1), line.apply(sources(line, [0.3]))
    >>> detector = FaultDetector(tracker.observer, period=60.0)
    >>> readings[7] -= 1.0
    >>> for minute in range(10):
    ...     now = tracker.step(readings, 60.0 * minute, ignored=detector.sensors)
    ...     faults = detector.step(readings, now.draws)
    >>> [(fault.kind.value, fault.sensor) for fault in faults]
    [('low', 7)]
    """

    def __init__(self, observer: Observer, *, period: float, per_year: float = 1.0) -> None:
        positive("period", period)
        positive("per_year", per_year)
        self._observer, physics = observer, observer.problem.physics
        self._sigma = observer.problem.effective_sigma * observer.lattice.blur
        self._columns = self._whitened(physics)
        sensors = physics.sensors
        self._elsewhere = np.unique(np.linspace(0, sensors - 1, min(sensors, MAX_ELSEWHERE)).round().astype(np.int64))
        own = [(kind, None) for kind, *_ in SENSOR_FAULTS]
        own += [(FaultKind.MOVED, other) for other in self._elsewhere.tolist()]
        common = list(self._common_faults(physics))
        self._changed = [columns for _, columns in common]
        self._faults = [[Fault(kind, sensor, other) for kind, other in own] for sensor in range(sensors)]
        self._faults.append([fault for fault, _ in common])
        rate = per_year * period / YEAR_S / len(self._faults)
        self._rates = np.full((len(self._faults), max(map(len, self._faults))), -np.inf)
        for row, faults in zip(self._rates, self._faults, strict=True):
            kinds = [fault.kind for fault in faults]
            row[: len(kinds)] = [np.log(rate / len(set(kinds)) / kinds.count(kind)) for kind in kinds]
        self.restart()

    def restart(self) -> None:
        self.state = np.column_stack([np.full_like(self._rates, -np.inf), np.full(len(self._rates), -1)])

    @property
    def active(self) -> tuple[Fault, ...]:
        """The faults that the readings show now: at most one of each sensor and one of all."""
        return tuple(self._faults[row][self._found[row]] for row in np.flatnonzero(self._found >= 0))

    @property
    def sensors(self) -> frozenset[int]:
        """The sensors with a fault of their own."""
        return frozenset(np.flatnonzero(self._found[:-1] >= 0).tolist())

    @property
    def state(self) -> FloatArray:
        """Everything that another detector of the same model needs to continue."""
        return np.column_stack([self._statistics, self._found])

    @state.setter
    def state(self, state: FloatArray) -> None:
        rows, columns = self._rates.shape
        if state.shape != (rows, columns + 1):
            raise InputError(f"a state of shape {state.shape} is not that of this model.", shape=state.shape)
        self._statistics = state[:, :-1].copy()  # logarithms: a row for each sensor and one for all
        self._found = state[:, -1].astype(np.int64)  # columns of active faults, -1 if none

    def step(self, readings: ArrayLike, draws: DrawnSources) -> tuple[Fault, ...]:
        """Take the readings of a frame, NaN for missing ones, and its draws; returns the active faults."""
        active, half = self._found >= 0, -logsumexp(self._rates, axis=1) / 2
        evidence = self.evidence(np.asarray(readings, dtype=np.float64), draws.newest(DRAWS))
        evidence[~active] = np.minimum(CAUTION * evidence[~active], MAX_EVIDENCE)
        evidence[-1] = np.minimum(evidence[-1], MAX_EVIDENCE / 2)  # one wild sensor is that sensor's fault
        before = logsumexp(self._statistics, axis=1)
        self._statistics = np.logaddexp(self._statistics, self._rates) + evidence
        free = logsumexp(self._statistics, axis=1)
        totals = np.where(active, np.clip(free, before - MAX_EVIDENCE, half), free)
        self._statistics += (totals - free)[:, None]
        ended = active & (totals < -half)
        self._found[ended] = -1
        worst = int(np.where(active, -np.inf, totals).argmax())
        # a change of all sensors may explain that of one
        begins = not active[worst] and totals[worst] >= max(0.0, totals[-1] if self._found[-1] >= 0 else 0.0)
        if begins:
            self._found[-1], self._found[worst] = -1, int(self._statistics[worst].argmax())
        if ended.any() or (begins and worst < len(self._sigma)):  # the tracker now ignores other sensors
            self._statistics[self._found < 0] = -np.inf
        for row in np.flatnonzero(self._found >= 0):  # rename faults that clearly look like another by now
            best, name = self._statistics[row].argmax(), self._found[row]
            if self._statistics[row, best] > self._statistics[row, name] + MAX_EVIDENCE:
                self._found[row] = best
        return self.active

    def evidence(self, readings: FloatArray, draws: DrawnSources) -> FloatArray:
        """The logarithm of the evidence of a frame: a row for each sensor, one for all."""
        white = readings / self._sigma
        known = ~np.isnan(white)
        seen = np.where(known, white, 0.0) - draws.offsets
        model = draws.explained(self._columns)
        squares = (seen - model) ** 2 / 2
        gains, offsets, scales = np.array([row[1:] for row in SENSOR_FAULTS]).T
        wrong = ((seen[:, :, None] - gains * model[:, :, None] - offsets) / scales) ** 2 / 2 + np.log(scales)
        elsewhere = (model * self._sigma)[:, None, self._elsewhere] / self._sigma[:, None]
        own = np.concatenate([wrong, (seen[:, :, None] - elsewhere) ** 2 / 2], axis=2)
        evidence = np.full_like(self._statistics, -np.inf)
        evidence[:-1, : own.shape[2]] = _log_mean(squares[:, :, None] - own)
        faulty = sorted(self.sensors)  # the draws do not depend on their readings
        evidence[faulty, : own.shape[2]] = _log_mean(-own[:, faulty]) - _log_mean(-squares[:, faulty, None])
        evidence[:-1][~known] = 0.0
        known[faulty] = False
        for column, columns in enumerate(self._changed):
            changed = (seen - draws.explained(columns)) ** 2 / 2
            evidence[-1, column] = _log_mean((squares - changed)[:, known].sum(axis=1))
        return evidence

    def _whitened(self, physics: Physics) -> FloatArray:
        """The readings of a unit source in each cell, divided by the noise, (n, m)."""
        columns = physics.columns_near(self._observer.positions, self._observer.place)
        return np.ascontiguousarray(columns.T / self._sigma)

    def _common_faults(self, physics: Physics) -> Iterator[tuple[Fault, FloatArray]]:
        """Yield the faults of all sensors, each with the readings of a unit source."""
        for strength in STRENGTHS:
            yield Fault(FaultKind.STRENGTH), strength * self._columns
        with suppress(PhysicsError):  # a matrix has no reach
            for reach in REACHES:
                yield Fault(FaultKind.REACH), self._whitened(physics.with_spread(reach**2))
        for door in range(0 if physics.floor is None else physics.floor.doors):
            yield Fault(FaultKind.DOOR, other=door), self._whitened(physics.with_doors_shut([door]))


def _log_mean(logarithms: FloatArray) -> FloatArray:
    """Return the logarithm of the mean over the draws, the first axis."""
    return np.asarray(logsumexp(logarithms, axis=0) - np.log(len(logarithms)))
