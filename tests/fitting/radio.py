"""Recorded Bluetooth signals at known positions, and smooth maps that were fitted to them."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from cloakwork.fitting import MeasuredShifts, measured_shifts
from cloakwork.physics import Matrix, Metric, Space
from cloakwork.privacy import Cloak

FOLDER = Path(__file__).parent / "recordings"
FLAT_NOISE = np.array([3.63, 3.44, 3.40, 3.33, 3.39, 3.07])  # dB, of one reading of each receiver
FLAT_FREEDOM = 352


class Recording(NamedTuple):
    """Mean readings (S, m) with their variances at positions (S, 2), and the map that claims to explain them."""

    model: Matrix
    positions: NDArray[np.float64]
    readings: NDArray[np.float64]
    variances: NDArray[np.float64]
    freedom: float

    def shifts(self, alpha: float) -> MeasuredShifts:
        cloak = Cloak(self.model, epsilon=2.0, delta=1e-5, alpha=alpha)
        return measured_shifts(cloak, self.positions, self.readings, variances=self.variances, freedom=self.freedom)

    def half(self, which: int) -> "Recording":
        """Every other position."""
        kept = slice(which, None, 2)
        at, readings, variances = self.positions[kept], self.readings[kept], self.variances[kept]
        return self._replace(positions=at, readings=readings, variances=variances)


def table(name: str) -> NDArray[np.float64]:
    return np.loadtxt(FOLDER / name, delimiter=",", skiprows=1)


def fitted_map(name: str, cell: float) -> Matrix:
    rows = table(name)
    pairs = KDTree(rows[:, :2]).query_pairs(1.01 * cell, output_type="ndarray")
    return Matrix(rows[:, 2:].T, Space(rows[:, :2], pairs, np.full(len(pairs), cell), Metric.PATH))


def flat() -> Recording:
    rows = table("ble_flat_stops.csv")
    variances = FLAT_NOISE**2 / rows[:, 2:3]
    return Recording(fitted_map("ble_flat_map.csv", 0.5), rows[:, :2], rows[:, 3:], variances, FLAT_FREEDOM)


def office() -> Recording:
    rows = table("ble_office_points.csv")
    variances = np.full(rows[:, 3:].shape, 0.07**2)
    return Recording(fitted_map("ble_office_map.csv", 1.0), rows[:, 1:3], rows[:, 3:], variances, np.inf)
