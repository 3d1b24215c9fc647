"""Attacks: sources between the places, on a line and on a plane.

Claim: with `placement="anywhere"`, and always on a plane, the noise covers moves between any two positions.
"""

from collections.abc import Sequence
from itertools import islice

import mpmath as mp
import numpy as np

import cloakwork as cw
from tests.attacks.conftest import Attack
from tests.attacks.neighbours import Floats, attack_positions
from tests.attacks.test_neighbours import cloaks


def kernel(sensors: Floats, positions: Floats, T: float) -> Floats:
    """The heat kernel; in double precision, since there are many positions."""
    return np.asarray(np.exp(-((sensors[:, None] - positions) ** 2) / (4 * T)) / np.sqrt(4 * np.pi * T))


def test_anywhere_on_a_line(attack: Attack, rng: np.random.Generator) -> None:
    """Sources anywhere on a line, moved by any distance; at the steepest place the slope with 50 digits."""
    for n, T, sensors in ((10, 0.001, np.array([0.1, 0.35, 0.4, 0.8])), (30, 0.02, np.arange(1, 13) / 12)):
        line = cw.HeatLine(n=n, m=tuple(sensors), T=T, placement="anywhere")

        def columns(positions: Floats, sensors: Floats = sensors, T: float = T) -> Floats:
            return kernel(sensors, positions[:, 0], T)

        for cloak in islice(cloaks(line, alpha=0.02), attack.size(2, 4)):
            where = attack_positions(attack, cloak, columns, (1.0,), rng, attack.size(10_000, 400_000))
            if cloak.scope == cw.Scope.NETWORK:
                attack.compare(_steepest(cloak, [(s,) for s in sensors], (1.0,), where, T), cloak.frame_mu)


def test_anywhere_on_a_plane(attack: Attack, rng: np.random.Generator) -> None:
    """Sources anywhere on a plane, moved in any direction; at the steepest place the slope with 50 digits."""
    size, T = (2.0, 1.5), 0.03
    at = [(0.2, 0.3), (0.9, 0.4), (1.0, 1.1), (1.9, 1.4), (1.5, 0.7)]
    plane = cw.HeatPlane(n=(8, 6), m=at, T=T, size=size)
    sensors = np.array(at)

    def columns(positions: Floats) -> Floats:
        return kernel(sensors[:, 0], positions[:, 0], T) * kernel(sensors[:, 1], positions[:, 1], T)

    for cloak in islice(cloaks(plane, alpha=0.1), attack.size(2, 4)):
        where = attack_positions(attack, cloak, columns, size, rng, attack.size(10_000, 500_000))
        if cloak.scope == cw.Scope.NETWORK:
            attack.compare(_steepest(cloak, at, size, where, T), cloak.frame_mu)


def _steepest(
    cloak: cw.Cloak, sensors: Sequence[tuple[float, ...]], size: tuple[float, ...], where: Floats, T: float
) -> float:
    """The mu of the steepest infinitesimal move near a position, without rounding to steps: a search with 50 digits."""
    with mp.workdps(50):
        peak = 1 / mp.sqrt(4 * mp.pi * T) ** len(size)

        def slope(position: list[mp.mpf]) -> mp.mpf:
            """The largest singular value of the derivative: of J'J = ((a, c), (c, b)) the root of the larger one."""
            a, b, c = mp.mpf(0), mp.mpf(0), mp.mpf(0)
            for sigma, sensor in zip(cloak.sigmas, sensors, strict=True):
                apart = [x - mp.mpf(s) for x, s in zip(position, sensor, strict=True)]
                factor = peak * mp.exp(-sum(x**2 for x in apart) / (4 * T)) / (2 * T * mp.mpf(sigma))
                dx, dy = ([factor * x for x in apart] + [mp.mpf(0)])[:2]
                a, b, c = a + dx**2, b + dy**2, c + dx * dy
            return mp.sqrt((a + b) / 2 + mp.sqrt(((a - b) / 2) ** 2 + c**2))

        position, step = [mp.mpf(value) for value in where], mp.mpf("0.01")
        while step > mp.mpf("1e-6"):
            trials = [position]
            for k, side in enumerate(size):
                for sign in (-1, 1):
                    moved = list(position)
                    moved[k] = min(max(moved[k] + sign * step, mp.mpf(0)), mp.mpf(side))
                    trials.append(moved)
            top = max(trials, key=slope)
            position, step = top, step / 2 if top is position else step
        return float(cloak.alpha * slope(position))
