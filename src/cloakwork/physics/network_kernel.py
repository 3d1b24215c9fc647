"""exp(-tau L) of a network, applied without forming the matrix, with a certified error."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cloakwork._checks import FloatArray
from cloakwork._compile import compiled_in_order, prefetch
from cloakwork.errors import PhysicsError
from cloakwork.physics.diffusion import TRUNCATION, chebyshev_coefficients

MAX_TERMS = 200  # of a Chebyshev sum; a rational sum is faster where more are needed
SMALL = 20_000  # entries of L below which a second thread costs more than it saves
MAX_ROUNDS = 400  # of conjugate gradients
SOLVED = 7e-10  # error of a rational sum that conjugate gradients may leave, relative to the input

# Poles and residues of the best rational approximation of exp(-x) on x >= 0 with ten poles, by the method of
# Caratheodory and Fejer; the other five are conjugate. It is off by at most RATIONAL everywhere.
POLES = np.array(
    [
        4.027732478906466 + 1.1938560664241105j,
        3.283752894860073 + 3.5943867720280616j,
        1.7154060274469842 + 6.038934924301571j,
        -0.8944046908490129 + 8.58275689613844j,
        -5.161191264219114 + 11.375156248714765j,
    ]
)
RESIDUES = np.array(
    [
        4.818382047344698 + 21.054597476630654j,
        -7.11716518812555 - 8.81953325612645j,
        2.565584985316946 + 1.2163857177800166j,
        -0.27258698329231495 - 0.014211726647309752j,
        0.005784903904922829 - 0.0006858507316227295j,
    ]
)
RATIONAL = 2.8e-10
SYSTEMS = 5
CACHE_LINE = 64  # bytes
BLOCK = 16  # columns that a Chebyshev sum takes at once
AHEAD = np.uint64(32)  # entries between the one in hand and the one whose row is fetched
ONE = np.uint64(1)  # in compiled code an unsigned number plus a plain 1 is a float

ComplexArray = NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class NetworkKernel:
    """exp(-tau L) for L = diag(diagonal) - W, symmetric, with eigenvalues from 0 to `bound`.

    Notes
    -----
    With c = tau bound / 2, exp(-tau L) = e^-c I_0(c) + 2 sum_k e^-c I_k(c) (-1)^k T_k(2 L / bound - 1). The
    coefficients are positive and sum to 1, so the truncated tail bounds the error in the spectral norm. The sum needs
    about 6 sqrt(c) terms. Where hubs make that many, exp(-tau L) is taken as 2 Re sum_j r_j (tau L + z_j)^-1 b
    instead, with five systems that conjugate gradients solve together. A residual of norm e leaves an error of at most
    e over the distance of -z_j from the positive numbers.
    """

    W: sparse.csr_array
    diagonal: FloatArray
    bound: float
    tau: float
    truncation: float = TRUNCATION

    @classmethod
    def heat(cls, W: sparse.csr_array, tau: float) -> "NetworkKernel":
        """The kernel of L = D - W.

        Notes
        -----
        The largest eigenvalue is at most max(d_i + sum_j w_ij d_j / d_i), a row sum of D^-1 (D + W) D.
        """
        degrees = np.asarray(W.sum(axis=1), dtype=np.float64).ravel()
        beyond = np.divide(W @ degrees, degrees, out=np.zeros_like(degrees), where=degrees > 0)
        return cls(W, degrees, float((degrees + beyond).max(initial=0.0)) * (1 + 1e-12), tau)

    @classmethod
    def walk(cls, W: sparse.csr_array, tau: float) -> "NetworkKernel":
        """The kernel of I - D^-1/2 W D^-1/2, similar to that of a random walk."""
        roots = np.sqrt(np.asarray(W.sum(axis=1)).ravel())
        inverse = sparse.diags_array(np.divide(1, roots, out=np.zeros_like(roots), where=roots > 0))
        return cls(sparse.csr_array(inverse @ W @ inverse), (roots > 0).astype(np.float64), 2.0 + 1e-12, tau)

    def at(self, tau: float) -> "NetworkKernel":
        """The same network after another time."""
        return replace(self, tau=tau)

    def rougher(self, error: float) -> "NetworkKernel":
        """The same kernel by a Chebyshev sum with this error at most, a fixed polynomial of L."""
        return replace(self, truncation=max(error, 2 * TRUNCATION))

    @property
    def error(self) -> float:
        """Bound on the error of `apply` relative to its input, in the l2 norm."""
        if self.tau == 0 or self.bound == 0:
            return 0.0
        if self.rational:
            drift = 8 * float(np.finfo(float).eps) * self.tau * self.bound  # of the residuals, as they are updated
            return RATIONAL + SOLVED + 1e-12 + drift
        return self.truncation + float(np.finfo(float).eps) * (8 + len(self.coefficients) ** 2)

    @cached_property
    def rational(self) -> bool:
        """Whether a rational sum is cheaper than a Chebyshev sum."""
        return self.truncation == TRUNCATION and len(self.coefficients) > MAX_TERMS

    @cached_property
    def coefficients(self) -> FloatArray:
        terms = chebyshev_coefficients(self.tau * self.bound / 2, self.truncation)
        if not np.isfinite(terms).all():
            raise PhysicsError(
                f"tau={self.tau:g} is too long for weights as large as these: reduce tau or the weights.", tau=self.tau
            )
        return terms

    def apply(self, columns: FloatArray) -> FloatArray:
        """exp(-tau L) times each column, shape (n,) or (n, k).

        A block takes less time than its columns one by one.
        """
        if self.tau == 0 or self.bound == 0:
            return columns.copy()
        once = self._rational if self.rational else self._chebyshev
        if columns.ndim == 1:
            return once(columns)
        result = np.empty(columns.shape)
        width = 1 if self.rational else BLOCK
        for first in range(0, columns.shape[1], width):
            part = columns[:, first : first + width]
            if part.shape[1] < BLOCK:
                for k in range(part.shape[1]):
                    result[:, first + k] = once(part[:, k])
            else:
                result[:, first : first + width] = once(part)
        return result

    @cached_property
    def _csr(self) -> Any:
        # unsigned, because compiled code need not ask whether they count from the end
        return self.W.indptr.astype(np.uint64), self.W.indices.astype(np.uint32), self.W.data.astype(np.float64)

    @cached_property
    def _cuts(self) -> list[Any]:
        """Ranges of rows that have about as many entries each, one per core."""
        starts, n = self._csr[0], len(self.diagonal)
        cores = (os.cpu_count() or 1) if self.W.nnz > SMALL else 1
        ends = np.searchsorted(starts + np.arange(n + 1, dtype=np.uint64), np.linspace(0, self.W.nnz + n, cores + 1))
        return list(pairwise(ends.astype(np.uint64)))

    @contextmanager
    def _over_rows(self) -> Iterator[Callable[..., list[Any]]]:
        """Threads, one per core, that call a function with arrays and their own range of rows."""
        if len(self._cuts) == 1:
            yield lambda work, *arrays: [work(*arrays, *self._cuts[0])]
            return
        with ThreadPoolExecutor(len(self._cuts)) as pool:
            yield lambda work, *arrays: list(pool.map(lambda cut: work(*arrays, *cut), self._cuts))

    def _chebyshev(self, columns: FloatArray) -> FloatArray:
        coefficients, scale = self.coefficients, 2 / self.bound
        step = vector_step if columns.ndim == 1 else block_step
        previous, current, total = (aligned(columns.shape) for _ in range(3))
        previous[:], current[:], total[:] = columns, 0.0, coefficients[0] * columns
        with self._over_rows() as over_rows:
            for k, coefficient in enumerate(coefficients[1:]):
                factors = (scale, 1.0 if k == 0 else 2.0, coefficient)
                if k == 0:  # T_1 b = -(2 L / bound - 1) b: the step with a previous vector of zero
                    current, previous = previous, current
                over_rows(step, self._csr, self.diagonal, factors, (current, previous, total))
                previous, current = current, previous
        return np.asarray(total)

    def _rational(self, column: FloatArray) -> FloatArray:
        size = float(np.linalg.norm(column))
        if size == 0:
            return column.copy()
        shifted = self.tau * self.diagonal[:, None] + POLES
        inverse = 1 / shifted
        rest = np.repeat(column[:, None] / size, len(POLES), axis=1).astype(np.complex128)
        direction, image = rest * inverse, np.empty_like(rest)
        result = np.zeros(len(column))
        along = _sums([np.einsum("ij,ij->j", rest, direction)])
        with self._over_rows() as over_rows:
            for _ in range(MAX_ROUNDS):
                vectors = (direction, direction.view(np.float64), image)
                alpha = along / _sums(over_rows(image_step, self._csr, self.tau, shifted, vectors))
                parts = over_rows(rest_step, inverse, alpha, (direction, image, rest), result)
                after, left = _sums(part[0] for part in parts), sum(part[1] for part in parts)
                if float(2 * np.abs(RESIDUES) / _distances(POLES) @ np.sqrt(left)) <= SOLVED:
                    return size * result
                over_rows(direction_step, inverse, after / along, rest, direction)
                along = after
        raise PhysicsError(
            f"the diffusion over this network did not converge in {MAX_ROUNDS} rounds: reduce tau or the weights.",
            tau=self.tau,
        )


def aligned(shape: tuple[int, ...]) -> FloatArray:
    """An empty array that begins with a line of the cache, so that a row of a block fills as few lines as it can."""
    size = int(np.prod(shape))
    buffer = np.empty(size + CACHE_LINE // 8)
    first = -buffer.ctypes.data % CACHE_LINE // 8
    return buffer[first : first + size].reshape(shape)


def _sums(parts: Iterable[ComplexArray]) -> ComplexArray:
    return np.asarray(np.sum(list(parts), axis=0))


def _distances(poles: ComplexArray) -> FloatArray:
    """Distance of -z from the positive numbers."""
    return np.where(poles.real >= 0, np.abs(poles), np.abs(poles.imag))


@compiled_in_order
def vector_step(csr: Any, diagonal: FloatArray, factors: Any, vectors: Any, low: int, high: int) -> None:
    """One term of a Chebyshev sum over some rows: previous <- -factor (scale L - 1) current - previous."""
    current, previous, total = vectors
    starts, near, weights = csr
    scale, factor, coefficient = factors
    for i in range(low, high):
        s = 0.0
        for e in range(starts[i], starts[i + ONE]):
            s += weights[e] * current[near[e]]
        value = factor * (scale * (s - diagonal[i] * current[i]) + current[i]) - previous[i]
        previous[i] = value
        total[i] += coefficient * value


@compiled_in_order
def block_step(csr: Any, diagonal: FloatArray, factors: Any, vectors: Any, low: int, high: int) -> None:
    """`vector_step` for `BLOCK` columns at once, four at a time: so many sums stay in registers."""
    current, previous, total = vectors
    starts, near, weights = csr
    scale, factor, coefficient = factors
    last = np.uint64(len(near) - 1)
    for i in range(low, high):
        for e in range(starts[i], starts[i + ONE]):
            soon = near[min(e + AHEAD, last)]
            prefetch(current, soon, np.uint64(0))
            prefetch(current, soon, np.uint64(BLOCK // 2))
        for block in range(BLOCK // 4):
            c0 = np.uint64(4 * block)
            c1, c2, c3 = c0 + ONE, c0 + np.uint64(2), c0 + np.uint64(3)
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            for e in range(starts[i], starts[i + ONE]):
                weight, j = weights[e], near[e]
                s0 += weight * current[j, c0]
                s1 += weight * current[j, c1]
                s2 += weight * current[j, c2]
                s3 += weight * current[j, c3]
            for c, s in ((c0, s0), (c1, s1), (c2, s2), (c3, s3)):
                own = current[i, c]
                value = factor * (scale * (s - diagonal[i] * own) + own) - previous[i, c]
                previous[i, c] = value
                total[i, c] += coefficient * value


@compiled_in_order
def image_step(csr: Any, tau: float, shifted: ComplexArray, vectors: Any, low: int, high: int) -> ComplexArray:
    """Images of the search directions under tau L + z, and their products; `parts` are the directions as real pairs."""
    direction, parts, image = vectors
    starts, near, weights = csr
    products = np.zeros(SYSTEMS, np.complex128)
    s, last = np.empty(2 * SYSTEMS), np.uint64(len(near) - 1)
    for i in range(low, high):
        for c in range(2 * SYSTEMS):
            s[c] = 0.0
        for e in range(starts[i], starts[i + ONE]):
            weight, j, soon = weights[e], near[e], near[min(e + AHEAD, last)]
            prefetch(parts, soon, np.uint64(0))
            prefetch(parts, soon, np.uint64(2 * SYSTEMS - 1))
            for c in range(2 * SYSTEMS):
                s[c] += weight * parts[j, c]
        for c in range(SYSTEMS):
            value = shifted[i, c] * direction[i, c] - tau * complex(s[2 * c], s[2 * c + 1])
            image[i, c] = value
            products[c] += direction[i, c] * value
    return products


@compiled_in_order
def rest_step(inverse: ComplexArray, alpha: ComplexArray, vectors: Any, result: FloatArray, low: int, high: int) -> Any:
    """Move along the search directions; returns r' P^-1 r and ||r||^2 of each system."""
    direction, image, rest = vectors
    products, squares = np.zeros(SYSTEMS, np.complex128), np.zeros(SYSTEMS)
    for i in range(low, high):
        s = 0.0
        for c in range(SYSTEMS):
            s += 2 * (RESIDUES[c] * alpha[c] * direction[i, c]).real
            value = rest[i, c] - alpha[c] * image[i, c]
            rest[i, c] = value
            products[c] += value * value * inverse[i, c]
            squares[c] += value.real**2 + value.imag**2
        result[i] += s
    return products, squares


@compiled_in_order
def direction_step(
    inverse: ComplexArray, beta: ComplexArray, rest: ComplexArray, direction: ComplexArray, low: int, high: int
) -> None:
    """The next search directions."""
    for i in range(low, high):
        for c in range(SYSTEMS):
            direction[i, c] = rest[i, c] * inverse[i, c] + beta[c] * direction[i, c]
