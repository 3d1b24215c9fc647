"""Singular values of a model: its numerical range, and their meaning for privacy and recovery."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import linalg

from cloakwork._checks import FloatArray, read_only, rounded_down, rounded_up
from cloakwork.physics.space import Space

RANK_TOLERANCE = 1e-10
COHERENCE_PLACES = 4_000  # above this the n x n table of inner products takes too much memory


@dataclass(frozen=True, eq=False)
class NumericalRange:
    """M = basis @ reduced, without singular values below 1e-10 of the largest.

    `basis` (m, rank) has orthonormal columns; `reduced` = S V' (rank, n) is much smaller than M.
    """

    basis: FloatArray
    reduced: FloatArray
    singular_values: FloatArray

    @classmethod
    def of_matrix(cls, matrix: FloatArray) -> "NumericalRange":
        """Compute the range of a matrix; a matrix of zeros has rank 0."""
        left, values, right = linalg.svd(matrix, full_matrices=False, lapack_driver="gesdd")
        rank = int((values > RANK_TOLERANCE * values[0]).sum()) if values[0] > 0 else 0
        return cls(
            read_only(np.ascontiguousarray(left[:, :rank])),
            read_only(np.ascontiguousarray(values[:rank, None] * right[:rank])),
            read_only(values),
        )

    @property
    def rank(self) -> int:
        """Number of singular values above 1e-10 of the largest."""
        return int(self.reduced.shape[0])


class Side(StrEnum):
    """Which side a bound is on."""

    LOWER = "at least"
    UPPER = "at most"


@dataclass(frozen=True)
class SpectralBound:
    """A bound on the steepest slope (the sensitivity for alpha = 1) from the spectrum."""

    name: str
    side: Side
    value: float

    def __str__(self) -> str:
        shown = (rounded_up if self.side is Side.UPPER else rounded_down)(self.value, 6)
        return f"{self.side} {shown} ({self.name})"


@dataclass(frozen=True, eq=False)
class Description:
    """Key figures of a model for planning.

    `slope` is the sensitivity for alpha = 1. `condition` is infinite unless M has full rank. `coherence` is the
    largest cosine between the readings of two places (NaN for more than 4,000 places).
    """

    places: int
    sensors: int
    rank: int
    slope: float
    condition: float
    coherence: float
    singular_values: FloatArray
    bounds: tuple[SpectralBound, ...]

    def __str__(self) -> str:
        lines = [
            f"{self.places} places seen by {self.sensors} sensors; numerical rank {self.rank}",
            "a unit source that moves by one unit of distance shifts the readings by at most "
            f"{rounded_up(self.slope, 6)}",
            f"condition number {self.condition:.3g}; coherence {self.coherence:.6g}",
        ]
        lines += [f"slope {bound}" for bound in self.bounds]
        return "\n".join(lines)


def describe(
    matrix: FloatArray, space: Space, slope: float, spectrum: NumericalRange, extra: tuple[SpectralBound, ...]
) -> Description:
    """Compute a `Description`.

    With full column rank, every ||M(e_i - e_j)|| is at least sqrt(2) s_min (the sound part of Gilbert and McMillan,
    Lemma 6). Lemma 7 bounds the sum of all singular values but the largest by
    (sqrt(min(m, n)) + 1) sqrt(n - 1) diameter x slope, and so the slope from below.
    """
    values = spectrum.singular_values
    m, n = matrix.shape
    smallest = float(values[-1])
    full = smallest > np.finfo(float).eps * max(m, n) * float(values[0])
    bounds = list(extra)
    if full and n <= m and len(space.pairs):
        shortest = float(space.lengths.min())
        bounds.append(SpectralBound("smallest singular value", Side.LOWER, np.sqrt(2) * smallest / shortest))
    if n > 1 and len(space.pairs):
        spread = float(values[1:].sum()) / ((np.sqrt(min(m, n)) + 1) * np.sqrt(n - 1) * _diameter_bound(space))
        bounds.append(SpectralBound("spectrum beyond the largest value", Side.LOWER, spread))
    return Description(
        places=n,
        sensors=m,
        rank=spectrum.rank,
        slope=slope,
        condition=float(values[0]) / smallest if full else float("inf"),
        coherence=_coherence(matrix),
        singular_values=values,
        bounds=tuple(bounds),
    )


def _diameter_bound(space: Space) -> float:
    """An upper bound: twice the largest distance from one place, by the triangle inequality."""
    farthest = space.distances(0)
    return float(2 * farthest[np.isfinite(farthest)].max())


def _coherence(matrix: FloatArray) -> float:
    norms = np.sqrt((matrix**2).sum(axis=0))
    columns = matrix[:, norms > 0] / norms[norms > 0]
    if columns.shape[1] < 2 or columns.shape[1] > COHERENCE_PLACES:
        return float("nan")
    products = np.abs(columns.T @ columns)
    np.fill_diagonal(products, 0.0)
    return float(min(1.0, products.max()))
