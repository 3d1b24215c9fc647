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
from cloakwork.physics import Physics
from cloakwork.recovery.tracker import Tracker

YEAR_S = 365.25 * 86_400
PER_YEAR = 1.0  # false alarms
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


# a faulty sensor reads gain * prediction + offset + scale * noise; offsets are in standard deviations of the noise
OWN = [
    *((FaultKind.DEAD, 0.0, offset, 1.0) for offset in (0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0)),
    *((FaultKind.HIGH, 1.0, offset, 1.0) for offset in (0.5, 1.0, 3.0)),
    *((FaultKind.LOW, 1.0, -offset, 1.0) for offset in (0.5, 1.0, 3.0)),
    *((FaultKind.WEAK, 0.5, 0.0, 1.0), (FaultKind.STRONG, 2.0, 0.0, 1.0)),
    *((FaultKind.QUIET, 1.0, 0.0, 0.7), (FaultKind.NOISY, 1.0, 0.0, 1.5)),
]
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

    The statistic R <- e (R + r) of Shiryaev and Roberts then has expectation r times the number of frames, so R reaches
    1 at most r times a frame on average (Shin, Ramdas and Rinaldo), and less often with the power of e that is used.
    The rates r of all faults add up to `per_year`. While a fault is active, R is kept below 1 / sqrt(r), with the rate
    r of all faults of that sensor. The fault ends at sqrt(r), so its end takes as much evidence as its beginning.

    >>> from cloakwork.physics import HeatLine, sources
    >>> line = HeatLine(n=50, m=10, T=0.01)
    >>> tracker, readings = Tracker(line, sigma=0.3, max_sources=1), line.apply(sources(line, [0.3]))
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
        self._tracker, physics = tracker, tracker.problem.physics
        self._sigma = tracker.problem.effective_sigma * tracker.observer.lattice.blur
        self._columns = self._whitened(physics)
        sensors = physics.sensors
        self._elsewhere = np.unique(np.linspace(0, sensors - 1, min(sensors, ELSEWHERE)).round().astype(np.int64))
        moved = [(FaultKind.MOVED, other) for other in self._elsewhere.tolist()]
        own = [*((kind, None) for kind, *_ in OWN), *moved]
        common = list(self._common(physics))
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
        """Forget all frames and faults."""
        self.state = np.column_stack([np.full_like(self._rates, -np.inf), np.full(len(self._rates), -1)])

    def follow(self, tracker: Tracker) -> None:
        """Test the frames of another tracker of the same model from now on."""
        self._tracker, tracker.distrusted = tracker, self._distrusted

    @property
    def active(self) -> tuple[Fault, ...]:
        """The faults that the readings show now: at most one of each sensor and one of all, as it looks by now."""
        return tuple(self._faults[row][self._found[row]] for row in np.flatnonzero(self._found >= 0))

    @property
    def state(self) -> FloatArray:
        """Everything that another detector of the same model needs to go on."""
        return np.column_stack([self._statistics, self._found])

    @state.setter
    def state(self, state: FloatArray) -> None:
        rows, columns = self._rates.shape
        if state.shape != (rows, columns + 1):
            raise InputError(f"a state of shape {state.shape} is not that of this model.", shape=state.shape)
        self._statistics = state[:, :-1].copy()  # logarithms: a row for each sensor and one for all
        self._found = state[:, -1].astype(np.int64)  # columns of active faults, -1 if none
        self._tracker.distrusted = self._distrusted

    @property
    def _distrusted(self) -> frozenset[int]:
        return frozenset(np.flatnonzero(self._found[:-1] >= 0).tolist())

    def step(self, readings: ArrayLike) -> tuple[Fault, ...]:
        """Take the readings of the tracker's last frame, NaN for missing ones; returns the faults that are active."""
        active, half = self._found >= 0, -logsumexp(self._rates, axis=1) / 2
        evidence = self.evidence(readings)
        evidence[~active] = np.minimum(CAUTION * evidence[~active], LARGEST)
        evidence[-1] = np.minimum(evidence[-1], LARGEST / 2)  # one wild sensor is that sensor's fault
        before = logsumexp(self._statistics, axis=1)
        self._statistics = np.logaddexp(self._statistics, self._rates) + evidence
        free = logsumexp(self._statistics, axis=1)
        totals = np.where(active, np.clip(free, before - LARGEST, half), free)
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
        for row in np.flatnonzero(self._found >= 0):  # rename those that clearly look like another by now
            best, name = self._statistics[row].argmax(), self._found[row]
            self._found[row] = best if self._statistics[row, best] > self._statistics[row, name] + LARGEST else name
        self._tracker.distrusted = self._distrusted
        return self.active

    def evidence(self, readings: ArrayLike) -> FloatArray:
        """The logarithm of the evidence of the tracker's last frame: a row for each sensor, one for all."""
        white = np.asarray(readings, dtype=np.float64) / self._sigma
        there = ~np.isnan(white)
        seen = np.where(there, white, 0.0) - self._drawn[2]  # less the drawn offsets that drift
        model = self._predicted(self._columns)
        rest = seen - model
        gains, offsets, scales = np.array([row[1:] for row in OWN]).T
        wrong = ((seen[:, :, None] - gains * model[:, :, None] - offsets) / scales) ** 2 / 2 + np.log(scales)
        elsewhere = (model * self._sigma)[:, None, self._elsewhere] / self._sigma[:, None]
        own = np.concatenate([wrong, (seen[:, :, None] - elsewhere) ** 2 / 2], axis=2)
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

    def _common(self, physics: Physics) -> Iterator[tuple[Fault, FloatArray]]:
        """The faults of all sensors, each with the readings of a unit source."""
        for strength in STRENGTHS:
            yield Fault(FaultKind.STRENGTH), strength * self._columns
        with suppress(PhysicsError):  # a matrix has no reach
            for reach in REACHES:
                yield Fault(FaultKind.REACH), self._whitened(physics.with_spread(reach**2))
        for door in range(0 if physics.floor is None else physics.floor.doors):
            yield Fault(FaultKind.DOOR, other=door), self._whitened(physics.with_doors_shut([door]))


def _log_mean(logarithms: FloatArray) -> FloatArray:
    """The logarithm of the mean over the draws, the first axis."""
    return np.asarray(logsumexp(logarithms, axis=0) - np.log(len(logarithms)))
