"""A proof by duality of how good a map is; inner loops only."""

import math

from cloakwork._checks import FloatArray
from cloakwork._compile import compiled_part


@compiled_part
def correlate(B: FloatArray, v: FloatArray, out: FloatArray) -> None:
    """Out = B' v, four rows at a time to keep vector units busy."""
    rank, n = B.shape
    for j in range(n):
        out[j] = 0.0
    k = 0
    while k + 4 <= rank:
        v0, v1, v2, v3 = v[k], v[k + 1], v[k + 2], v[k + 3]
        b0, b1, b2, b3 = B[k], B[k + 1], B[k + 2], B[k + 3]
        for j in range(n):
            out[j] += v0 * b0[j] + v1 * b1[j] + v2 * b2[j] + v3 * b3[j]
        k += 4
    while k < rank:
        v0 = v[k]
        b0 = B[k]
        for j in range(n):
            out[j] += v0 * b0[j]
        k += 1


@compiled_part
def copy(source: FloatArray, target: FloatArray) -> None:
    """Target = source; a slice assignment would take seconds to compile, for its error message about shapes."""
    for i in range(len(source)):
        target[i] = source[i]


@compiled_part
def certify(
    B: FloatArray,
    b: FloatArray,
    rho: float,
    t: float,
    best_fit: bool,
    f: FloatArray,
    residual: FloatArray,
    correlation: FloatArray,
) -> tuple[float, float]:
    """Norm of the misfit of `f`, and a bound on how far its total (or misfit, for a best fit) is above the least.

    For every v: sum(f) >= b'v - rho ||v|| - sum max(0, B'v - 1) for all f in the box that fit, here with
    v = (b - B f)/t; and ||B f - b|| >= b'v - sum max(0, B'v) for all f in the box and unit v.
    """
    rank, n = B.shape
    copy(b, residual)
    total = 0.0
    for j in range(n):
        if f[j] != 0.0:
            total += f[j]
            for i in range(rank):
                residual[i] -= B[i, j] * f[j]
    norm2, along = 0.0, 0.0
    for i in range(rank):
        norm2 += residual[i] * residual[i]
        along += b[i] * residual[i]
    norm = math.sqrt(norm2)
    correlate(B, residual, correlation)
    if best_fit:
        if norm == 0.0:
            return norm, 0.0
        over = 0.0
        for j in range(n):
            over += max(0.0, correlation[j])
        return norm, norm - (along - over) / norm
    if t <= 0.0:
        return norm, total
    over = 0.0
    for j in range(n):
        over += max(0.0, correlation[j] / t - 1.0)
    return norm, total - ((along - rho * norm) / t - over)
