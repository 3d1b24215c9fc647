"""Offsets of readings that change slowly, and known heat: what readings show besides the sources and the noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork._checks import FloatArray, IntArray, not_negative, positive, read_only
from cloakwork.errors import InputError, PhysicsError
from cloakwork.physics.base import Physics

HOUR = 3600.0
DOUBLINGS = 10  # of the frames from which offsets are learnt


@dataclass(frozen=True)
class Heat:
    """Heat at a known place, such as a radiator or a window: a source that stays, of unknown strength.

    Parameters
    ----------
    at
        Where it is: coordinates, or the label of a place.
    strength
        The most that it can have, in units of the physics, where 1 is the strongest source that is hidden. It may be
        negative as well, as that of a cold window is. Taken as two standard deviations.
    over
        How fast it changes: its time constant, in seconds.

    >>> from cloakwork.physics import HeatLine
    >>> radiator = Heat(at=0.5, strength=3.0, over=3600.0)
    >>> Drift(heat=[radiator]).on(HeatLine(n=50, m=25, T=0.05)).deviations.tolist()
    [1.5]
    """

    at: object
    strength: float
    over: float = 2 * HOUR

    def __post_init__(self) -> None:
        not_negative("strength", self.strength)
        positive("over", self.over, unit=" seconds")


@dataclass(frozen=True)
class Drift:
    """How readings wander without any source.

    Parameters
    ----------
    sensor, room, all
        Standard deviations of the offset of each sensor, of each room, and of all sensors together, in the unit of the
        readings. Rooms are those of a floor plan with its doors shut.
    over
        The time constant of the offsets, in seconds.
    heat
        Heat at known places.

    Notes
    -----
    Each offset is an Ornstein-Uhlenbeck process: Gaussian with mean 0 and the stated standard deviation s at any time,
    and with covariance s^2 exp(-t / over) between two times t apart. Where `over` is far shorter than the time between
    two frames, a frame says nothing about the offsets of the next, and following sources gains as little.

    >>> from cloakwork.physics import HeatLine
    >>> line = HeatLine(n=50, m=25, T=0.05)
    >>> Drift(sensor=0.1, all=2.0, heat=[Heat(0.5, 3.0)]).on(line).columns.shape
    (25, 27)
    """

    sensor: float = 0.0
    room: float = 0.0
    all: float = 0.0
    over: float = 6 * HOUR
    heat: Sequence[Heat] = ()

    def __post_init__(self) -> None:
        for name in ("sensor", "room", "all"):
            not_negative(name, getattr(self, name))
        positive("over", self.over, unit=" seconds")
        if not isinstance(self.heat, Sequence) or not all(isinstance(heat, Heat) for heat in self.heat):
            raise InputError(f"heat={self.heat!r}: give a list of Heat(at, strength).", heat=self.heat)
        object.__setattr__(self, "heat", tuple(self.heat))

    def on(self, physics: Physics) -> "Nuisance":
        """The offsets that this drift means for the sensors of a physics."""
        m = physics.sensors
        parts = [np.eye(m, m if self.sensor else 0), np.ones((m, 1 if self.all else 0))]
        if self.room:
            rooms = _room_of_each_sensor(physics, self.room)
            parts.append((rooms[:, None] == np.unique(rooms)).astype(np.float64))
        heated = [_place(number, heat, physics) for number, heat in enumerate(self.heat)]
        widths = [part.shape[1] for part in parts]
        deviations = np.repeat([self.sensor, self.all, self.room][: len(widths)], widths)
        parts.append(physics.matrix[:, heated] if heated else np.empty((m, 0)))  # a large floor has no matrix
        over = np.append(np.full(len(deviations), self.over), [heat.over for heat in self.heat])
        deviations = np.append(deviations, [heat.strength / 2 for heat in self.heat])
        known = deviations > 0
        return Nuisance(np.hstack(parts)[:, known], deviations[known], over[known])


@dataclass(frozen=True, eq=False)
class Nuisance:
    """Independent offsets u (k,) that readings have besides sources and noise: y = M f + columns u + noise.

    `columns` (m, k) is what each adds to the sensors, `deviations` (k,) are their standard deviations, and `over` (k,)
    their time constants in seconds; 0 if nothing of one frame is left in the next.
    """

    columns: FloatArray
    deviations: FloatArray
    over: FloatArray

    def rows(self, present: NDArray[np.bool_]) -> "Nuisance":
        """The same offsets, for some of the sensors."""
        return Nuisance(self.columns[present], self.deviations, self.over)

    def joined(self, other: "Nuisance | None") -> "Nuisance":
        """These offsets and others."""
        if other is None:
            return self
        parts = ((getattr(self, name), getattr(other, name)) for name in ("columns", "deviations", "over"))
        return Nuisance(*(np.concatenate(both, axis=-1) for both in parts))

    def simulate(self, times: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Draw what the offsets add to the readings at some times in seconds, in order: shape (times, m)."""
        moments = np.asarray(times, dtype=np.float64)
        fresh = rng.standard_normal((len(moments), len(self.over)))
        for k, fade in enumerate(np.exp(-np.diff(moments)[:, None] / self.over), start=1):
            fresh[k] = fade * fresh[k - 1] + np.sqrt(1 - fade**2) * fresh[k]
        return np.asarray(fresh @ self.factor.T)

    def learnt(self, sigma: FloatArray, seconds: float) -> "Nuisance":
        """The uncertainty of the offsets before a frame, once a thousand were seen with known sources.

        Frames are `seconds` apart, and `sigma` (m,) is the noise of each.

        Notes
        -----
        The stationary covariance of a Kalman filter, in units of the deviations: with F the fading from frame to frame
        and S = factor' diag(1/sigma^2) factor, it solves P = F P (I + S P)^-1 F + I - F^2. Each doubling of the frames
        takes one step.
        """
        one = np.eye(len(self.over))
        fade, seen = np.diag(np.exp(-seconds / self.over)), self.factor.T @ (self.factor / sigma[:, None] ** 2)
        left = one - fade**2
        for _ in range(DOUBLINGS):
            mixed = np.linalg.inv(one + left @ seen)
            seen, left = seen + fade @ seen @ mixed @ fade.T, left + fade.T @ mixed @ left @ fade
            fade = fade @ mixed.T @ fade
        sizes, directions = np.linalg.eigh((left + left.T) / 2)
        return Nuisance(self.factor @ directions, np.sqrt(np.maximum(sizes, 0.0)), np.zeros(len(sizes)))

    @cached_property
    def factor(self) -> FloatArray:
        """A matrix (m, k) such that factor factor' is the covariance of the offsets of all sensors in one frame."""
        return read_only(self.columns * self.deviations)


def whitener(sigma: FloatArray, factor: FloatArray) -> FloatArray:
    """A matrix W (m, m) with W' W = (diag(sigma^2) + factor factor')^-1; a sensor of infinite sigma does not count.

    Notes
    -----
    W = (I + N N')^-1/2 diag(1/sigma) with N = factor / sigma, so that without offsets W divides by sigma.

    >>> C = np.diag([1.0, 4.0]) + np.ones((2, 2))
    >>> W = whitener(np.array([1.0, 2.0]), np.ones((2, 1)))
    >>> bool(np.allclose(W @ C @ W.T, np.eye(2)))
    True
    """
    left, values, _ = np.linalg.svd(factor / sigma[:, None], full_matrices=False)
    root = np.eye(len(sigma)) - (left * (1 - 1 / np.sqrt(1 + values**2))) @ left.T
    return np.asarray(root / sigma)


def _room_of_each_sensor(physics: Physics, room: float) -> IntArray:
    if physics.floor is None or physics.sensor_places is None:
        raise PhysicsError(f"room={room:g}: a {type(physics).__name__} has no rooms. Leave room out.", room=room)
    shut = physics.floor.shut(range(physics.floor.doors))
    return np.asarray(shut.space.components()[physics.sensor_places])


def _place(number: int, heat: Heat, physics: Physics) -> int:
    try:
        return physics.place_at(heat.at)
    except (InputError, TypeError, ValueError) as problem:
        raise PhysicsError(f"heat {number + 1}: {problem}", heat=number, at=heat.at) from None
