"""The free places of an active-set method, with a QR factorisation of their columns; inner loops only."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled_part
from cloakwork.recovery.vectors import add, copy, dot

Marks = NDArray[np.int8]
ZERO, FREE, ONE, BANNED = 0, 1, 2, 3  # a place is banned at a bound as bound + BANNED
MOSTLY_NEW = 1e-3  # with a larger share of its square left, a column needs no second orthogonalisation
INDEPENDENT = 1e-11  # with a smaller relative part outside the free columns, a column is dependent


class Workspace(NamedTuple):
    """The arrays of one thread.

    `Q` has one orthonormal row per free place and `R` is upper triangular; `x` and `free` are the values and numbers of
    the free places, in the order of the factorisation. `remaining` holds the readings less the columns of the places at
    one, `residual` also less those of the free places, and `correlation` (n,) its product with each column. `z` and
    `u` are the steps of `active_set`, and `state` (n,) says where each place is.

    Functions name the arrays that they need once: reading them in an inner loop would cost reference counts.
    """

    Q: FloatArray
    R: FloatArray
    x: FloatArray
    free: IntArray
    remaining: FloatArray
    residual: FloatArray
    correlation: FloatArray
    z: FloatArray
    u: FloatArray
    state: Marks


@compiled_part
def workspace(rank: int, n: int) -> Workspace:
    """Arrays for problems with n places in a range of this rank."""
    k = rank + 1
    return Workspace(
        Q=np.empty((k, rank)),
        R=np.empty((k, k)),
        x=np.empty(k),
        free=np.empty(k, np.int64),
        remaining=np.empty(rank),
        residual=np.empty(rank),
        correlation=np.empty(n),
        z=np.empty(k),
        u=np.empty(k),
        state=np.empty(n, np.int8),
    )


@compiled_part
def append(columns: FloatArray, j: int, Q: FloatArray, R: FloatArray, k: int) -> bool:
    """Append column j to the factorisation as number k; False if it depends on the free columns, by R[:k, k]."""
    q = Q[k]
    rank = len(q)
    copy(columns[j], q)
    before = after = dot(q, q)
    for sweep in range(2):
        for p in range(k):
            s = dot(Q[p], q)
            R[p, k] = s if sweep == 0 else R[p, k] + s
            add(q, Q[p], -s)
        after = dot(q, q)
        if after > MOSTLY_NEW * before:
            break
    length = math.sqrt(after)
    if k >= rank or length <= INDEPENDENT * math.sqrt(before):
        return False
    R[k, k] = length
    for i in range(rank):
        q[i] /= length
    return True


@compiled_part
def drop(Q: FloatArray, R: FloatArray, x: FloatArray, free: IntArray, k: int, p: int) -> None:
    """Remove the p-th of k free places from the factorisation and the lists."""
    for c in range(p, k - 1):
        for i in range(c + 2):
            R[i, c] = R[i, c + 1]
        free[c] = free[c + 1]
        x[c] = x[c + 1]
    rank = Q.shape[1]
    for c in range(p, k - 1):
        a, b = R[c, c], R[c + 1, c]
        h = math.hypot(a, b)
        cosine, sine = a / h, b / h
        R[c, c] = h
        for d in range(c + 1, k - 1):
            u, v = R[c, d], R[c + 1, d]
            R[c, d] = cosine * u + sine * v
            R[c + 1, d] = cosine * v - sine * u
        for i in range(rank):
            u, v = Q[c, i], Q[c + 1, i]
            Q[c, i] = cosine * u + sine * v
            Q[c + 1, i] = cosine * v - sine * u


@compiled_part
def pin(columns: FloatArray, work: Workspace, k: int, p: int, side: int) -> None:
    """Fix the p-th free place at zero or one."""
    place = work.free[p]
    work.state[place] = side
    if side == ONE:
        add(work.remaining, columns[place], -1.0)
    drop(work.Q, work.R, work.x, work.free, k, p)


@compiled_part
def admit(columns: FloatArray, work: Workspace, k: int, j: int) -> int:
    """Make place j free; returns the number of free places, or -1 if that is impossible.

    A column that depends on the free ones enters along the null space, which changes no reading, until one of them (or
    j itself) reaches a bound.
    """
    Q, R, x, u, remaining, state = work.Q, work.R, work.x, work.u, work.remaining, work.state
    moved = 0.0
    for _ in range(2):
        if append(columns, j, Q, R, k):
            if state[j] == ONE:
                moved += 1.0
                add(remaining, columns[j], 1.0)
            work.free[k] = j
            x[k] = moved
            state[j] = FREE
            return k + 1
        for p in range(k - 1, -1, -1):
            s = R[p, k]
            for d in range(p + 1, k):
                s -= R[p, d] * u[d]
            u[p] = s / R[p, p]
        sign = 1.0 if state[j] == ZERO else -1.0
        theta, who = 1.0, -1
        for p in range(k):
            change = sign * u[p]
            if change > 0 and x[p] < theta * change:
                theta, who = x[p] / change, p
            elif change < 0 and 1 - x[p] < -theta * change:
                theta, who = (1 - x[p]) / -change, p
        for p in range(k):
            x[p] -= sign * theta * u[p]
        if who < 0:
            state[j] = ONE if sign > 0 else ZERO
            add(remaining, columns[j], -sign)
            return k
        pin(columns, work, k, who, ZERO if sign * u[who] > 0 else ONE)
        moved = sign * theta
        k -= 1
    return -1
