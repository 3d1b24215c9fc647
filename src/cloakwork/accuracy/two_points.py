"""One place against every other: limits that need no derivatives."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray, IntArray
from cloakwork.accuracy.normal import SHARE
from cloakwork.accuracy.whitening import CHUNK, Whitened

UNSURE = 2 * float(special.ndtri(SHARE))  # 2.563: closer readings than this are mixed up more often than 10 %
NOTHING = 1e-9  # readings this close, in units of the noise, are the same
MOST_WORK = 40_000_000  # numbers gone through when a sample of the places is taken


@dataclass(frozen=True, eq=False)
class Comparison:
    """How far every other place is, and how far its readings are from those of one place.

    Parameters
    ----------
    distances
        Along the space, shape (n,); infinite where no path leads.
    separations
        ||(s M_i - t M_j) / sigma||, rounded up, shape (n,).
    """

    distances: FloatArray
    separations: FloatArray

    @property
    def std(self) -> float:
        """Least standard deviation of an unbiased estimate of how far the source is from the place.

        Notes
        -----
        sup over j of d(i, j) / sqrt(exp(separation^2) - 1), the bound of Hammersley and of Chapman and Robbins: the
        chi-square divergence of two normal laws is exp(separation^2) - 1. Infinite where another place reads the same.
        """
        others = np.isfinite(self.distances) & (self.distances > 0)
        separations = np.where(self.separations[others] > NOTHING, self.separations[others], 0.0)
        with np.errstate(over="ignore", divide="ignore"):
            bounds = self.distances[others] / np.sqrt(np.expm1(separations**2))
        return float(bounds.max(initial=0.0))

    @property
    def radius(self) -> float:
        """No method finds the source to within less than this nine times in ten, both here and at the other place.

        Notes
        -----
        To be within d/2 of the truth at i and at j is to tell i from j, and the best test errs with Phi(-separation/2).
        """
        mixed = np.isfinite(self.distances) & (self.separations < UNSURE)
        return float(self.distances[mixed].max(initial=0.0) / 2)

    @property
    def mean_error(self) -> float:
        """No method has a smaller mean distance to the truth both here and at the other place (Le Cam)."""
        return float(two_point_errors(self.distances, self.separations).max(initial=0.0))


def two_point_errors(distances: FloatArray, separations: FloatArray) -> FloatArray:
    """D Phi(-separation / 2), and 0 where no path leads."""
    return np.where(np.isfinite(distances), distances, 0.0) * special.ndtr(-separations / 2)


def compare(whitened: Whitened, place: int, *, strength: float = 1.0, strengths_known: bool = True) -> Comparison:
    """One place against all; an unknown strength may differ at the other place, which makes it harder to tell."""
    here, columns = whitened.columns[place], whitened.columns
    others = np.ones(len(columns))
    if not strengths_known:
        others = np.maximum(columns @ here, 0.0) / np.where(whitened.squares > 0, whitened.squares, 1.0)
    found = np.empty(len(columns))
    step = max(1, CHUNK // len(here))
    for start in range(0, len(columns), step):
        piece = slice(start, start + step)
        apart = here - others[piece, None] * columns[piece]
        found[piece] = np.einsum("ij,ij->i", apart, apart)
    rounded = (np.sqrt(found) + np.hypot(1, others) * whitened.error) * (1 + 1e-12)
    return Comparison(whitened.space.distances(place), strength * rounded)


def spread_places(n: int, most: int) -> IntArray:
    """Up to `most` of n places, spread evenly: multiples of the golden ratio hit no row or column of a grid twice."""
    if n <= most:
        return np.arange(n)
    golden = (np.sqrt(5) - 1) / 2
    return np.unique((n * ((np.arange(most) * golden) % 1)).astype(np.int64))


def sample_size(whitened: Whitened) -> int:
    """How many places can be compared with all others in a moment."""
    return int(np.clip(MOST_WORK // whitened.columns.size, 12, 256))
