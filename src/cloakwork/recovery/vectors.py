"""Sums over vectors, as compiled inner loops take them."""

from cloakwork._checks import FloatArray
from cloakwork._compile import compiled_part


@compiled_part
def dot(a: FloatArray, b: FloatArray) -> float:
    """The inner product."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled_part
def add(target: FloatArray, column: FloatArray, factor: float) -> None:
    """Add a multiple of a column."""
    for i in range(len(target)):
        target[i] += factor * column[i]


@compiled_part
def copy(source: FloatArray, target: FloatArray) -> None:
    """Target = source; a slice assignment would take seconds to compile, for its error message about shapes."""
    for i in range(len(source)):
        target[i] = source[i]


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
    for row in range(k, rank):
        add(out, B[row], v[row])
