"""The numerical range of a model: what its readings can tell at all."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from cloakwork._checks import FloatArray, read_only

RANK_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class NumericalRange:
    """M = basis @ reduced, without singular values below 1e-10 of the largest.

    `basis` (m, rank) has orthonormal columns; `reduced` = S V' (rank, n) is much smaller than M.
    """

    basis: FloatArray
    reduced: FloatArray

    @classmethod
    def of_matrix(cls, matrix: FloatArray) -> "NumericalRange":
        """Compute the range of a matrix; a matrix of zeros has rank 0."""
        left, values, right = linalg.svd(matrix, full_matrices=False, lapack_driver="gesdd")
        rank = int((values > RANK_TOLERANCE * values[0]).sum()) if values[0] > 0 else 0
        basis, reduced = left[:, :rank], values[:rank, None] * right[:rank]
        return cls(read_only(np.ascontiguousarray(basis)), read_only(np.ascontiguousarray(reduced)))

    @property
    def rank(self) -> int:
        """Number of singular values above 1e-10 of the largest."""
        return int(self.reduced.shape[0])
