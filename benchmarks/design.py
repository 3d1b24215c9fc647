"""Noise of least error on a walled flat: how much better it locates a source, and its run time, against a rival."""

import math
import time

import numpy as np
from rich.table import Table
from scipy import optimize

from cloakwork._checks import FloatArray
from cloakwork.physics import FloorPlan, Physics, Pulse, Rooms, Steady
from cloakwork.privacy import Cloak, place_variances

BETTER = 3.0
SECONDS = 10.0
FEWER = 35  # of the 80 sensors, on a lattice
EPSILON, DELTA, ALPHA = 2.0, 1e-5, 0.3
REGIMES: dict[str, tuple[Pulse | Steady, float]] = {
    "pulse, 1 m": (Pulse(1.0), 0.0),
    "steady, 1 m, footprint 0.5 m": (Steady(1.0), 0.5),
}
COLUMNS = ("sensors and noise", "mean variance", "median std", "equal / this", "time", "goal")


def run() -> tuple[Table, bool]:
    """The table, and whether the goals are met."""
    table = Table(title="A lone source in a flat of 10 m x 8 m, hidden within 0.3 m at (2, 1e-5): Cramer-Rao, one axis")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == COLUMNS[0] else "right")
    good = [_Rows(table, name).add() for name in REGIMES]
    return table, all(good)


class _Rows:
    """The rows of one regime, compared with the first row, which has equal noise."""

    def __init__(self, table: Table, name: str) -> None:
        self.table, self.name = table, name
        self.flat = flat_of(name)
        self.equal = 0.0
        self.started = 0.0

    def add(self) -> bool:
        """Add all rows; returns whether the goal is met."""
        self.table.add_section()
        self.start()
        equal = _cloak(self.flat, "equal")
        self.row("80, equal", self.flat, equal.sigmas)
        self.start()
        own = _cloak(self.flat, "least-error")
        seconds = time.perf_counter() - self.started
        ratio = self.equal / _variances(self.flat, own.sigmas).mean()
        met = bool(ratio >= BETTER and seconds <= SECONDS)
        goal = f"{BETTER:g} in {SECONDS:g} s: {'met' if met else 'MISSED'}"
        self.row("80, least error", self.flat, own.sigmas, goal=goal)
        self.start()
        self.row("80, 8 reweighted linear programs (HiGHS)", self.flat, _reweighted(self.flat, own))
        lattice = flat_of(self.name, apart=6)
        for how in ("equal", "least-error"):
            self.start()
            cloak = _cloak(lattice, how)
            label = f"{FEWER} on a lattice, {how.replace('-', ' ')}"
            self.row(label, lattice, cloak.sigmas)
        return met

    def start(self) -> None:
        """Start the clock of the next row."""
        self.started = time.perf_counter()

    def row(self, what: str, flat: Physics, sigma: FloatArray, *, goal: str = "-") -> None:
        """Add one row, with the time since `start`."""
        seconds = time.perf_counter() - self.started
        variances = _variances(flat, sigma)
        mean, median = float(variances.mean()), math.sqrt(float(np.median(variances)))
        self.equal = self.equal or mean
        values = (f"{mean:.2f} m^2", f"{median:.2f} m", f"{self.equal / mean:.2f}", f"{seconds:.2f} s", goal)
        self.table.add_row(f"{self.name}: {what}", *values)


def _cloak(flat: FloorPlan, how: str) -> Cloak:
    return Cloak(flat, epsilon=EPSILON, delta=DELTA, alpha=ALPHA, design=how)


def _variances(flat: Physics, sigma: FloatArray) -> FloatArray:
    return place_variances(flat, sigma, known_within=math.inf)


def flat_of(name: str, *, apart: int = 4) -> FloorPlan:
    """The walled flat in one of the regimes; `apart` is the distance between sensors, in cells of 0.25 m."""
    rooms = Rooms.from_walls(
        (10, 8),
        cell=0.25,
        walls=[((5, 0), (5, 8)), ((0, 4), (5, 4))],
        doors=[((5, 3.5), (5, 4.5)), ((2, 4), (2.75, 4))],
    )
    columns, rows = range(apart // 2, 40, apart), range(apart // 2, 32, apart)
    regime, footprint = REGIMES[name]
    at = [(0.25 * i + 0.125, 0.25 * j + 0.125) for i in columns for j in rows]
    return FloorPlan(rooms, at, regime, footprint=footprint)


def _reweighted(flat: FloorPlan, own: Cloak) -> FloatArray:
    """Eight linear programs, each with more weight on the moves that the last solution showed least."""
    slopes = np.concatenate(list(flat.steps().rows())).T ** 2
    weights = np.full(flat.sensors, 1 / slopes.sum(axis=0).max())
    for _ in range(8):
        value = slopes @ np.maximum(weights @ slopes, 1e-12) ** -1.5
        program = optimize.linprog(-value / value.max(), A_ub=slopes.T, b_ub=np.ones(slopes.shape[1]))
        weights = 0.5 * weights + 0.5 * np.asarray(program.x)
        weights /= (weights @ slopes).max()
    sigma = 1 / np.sqrt(np.maximum(weights, 1e-6 * weights.max()))
    rounding = float(np.linalg.norm(own.steps / own.sigmas))
    return np.asarray(sigma * own.allowance.cost(sigma, np.zeros_like(sigma)) / (own.frame_mu - rounding))
