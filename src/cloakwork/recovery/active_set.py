"""Exact basis pursuit in a box by a primal active-set method; inner loops only.

    minimise sum(f)  subject to  0 <= f <= 1,  ||B f - b|| <= rho

Places are at zero, at one, or free. The columns of the free places have a QR factorisation Q R that is updated as
places enter and leave, so no n x n matrix is ever formed. On a given free set the minimiser is

    f_F = R^-1 (Q'b' - t z),   R' z = 1,   t = sqrt((rho^2 - ||b' - Q Q'b'||^2) / z'z)

with b' = b less the columns at one. From the current point, which fits, the method moves towards it until a place
hits a bound; if none does, a place with the wrong sign of its reduced cost enters. First the same moves with t = 0
(least squares) search a point that fits; if they end without one, none exists and the best fit is returned.
"""

import math
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork._compile import compiled, compiled_part
from cloakwork.recovery.free_set import BANNED, FREE, ONE, ZERO, Marks, Workspace, admit, append, pin, workspace
from cloakwork.recovery.vectors import add, copy, correlate, dot

FIT, PENALTY, BALL = 0, 1, 2
SOLVED, BEST_FIT, STOPPED, EMPTY = 0, 1, 2, 3
REDUCED_COST = 1e-10
FIT_COST = 1e-13
PENALTY_SHARE = 0.5  # of the penalty at which a map becomes empty, in each fit of Bregman iteration


@compiled_part
def _price(correlation: FloatArray, state: Marks, t: float, threshold: float) -> int:
    """The place with the most wrong reduced cost, or -1."""
    best, place = threshold, -1
    for i in range(len(state)):
        gain = correlation[i] - t
        if state[i] == ZERO:
            if gain > best:
                best, place = gain, i
        elif state[i] == ONE and -gain > best:
            best, place = -gain, i
    return place


@compiled_part
def _target(work: Workspace, k: int, phase: int, rho2: float, t: float) -> float:
    """Write the minimiser on the free set to `u` and the least-squares residual to `residual`; returns its t."""
    Q, R, residual, z, u = work.Q, work.R, work.residual, work.z, work.u
    copy(work.remaining, residual)
    squares = 0.0
    for p in range(k):
        s = 1.0
        for d in range(p):
            s -= R[d, p] * z[d]
        z[p] = s / R[p, p]
        squares += z[p] * z[p]
        u[p] = dot(Q[p], work.remaining)
        add(residual, Q[p], -u[p])
    if phase == FIT:
        t = 0.0
    elif phase == BALL and k > 0:
        t = math.sqrt(max(rho2 - dot(residual, residual), 0.0) / squares)
    for p in range(k - 1, -1, -1):
        s = u[p] - t * z[p]
        for d in range(p + 1, k):
            s -= R[p, d] * u[d]
        u[p] = s / R[p, p]
    return t


@compiled_part
def _advance(x: FloatArray, u: FloatArray, k: int) -> tuple[int, int, float]:
    """Move towards the target until a free place hits a bound: the place, the bound, and the share of the way."""
    share, who, side = 1.0, -1, ZERO
    for p in range(k):
        if u[p] < 0.0:
            a = x[p] / (x[p] - u[p])
            if a < share:
                share, who, side = a, p, ZERO
        elif u[p] > 1.0:
            a = (1 - x[p]) / (u[p] - x[p])
            if a < share:
                share, who, side = a, p, ONE
    for p in range(k):
        x[p] += share * (u[p] - x[p])
    return who, side, share


@compiled_part
def _settle(
    columns: FloatArray, work: Workspace, k: int, phase: int, rho2: float, t: float
) -> tuple[int, float, float]:
    """Go to the minimiser on the free set, pinning places on the way: number of free places, t, squared residual."""
    residual = work.residual
    entered = work.free[k - 1] if k > 0 else -1
    while True:
        t = _target(work, k, phase, rho2, t)
        who, side, share = _advance(work.x, work.u, k)
        if who < 0:
            break
        place = work.free[who]
        pin(columns, work, k, who, side)
        if share == 0.0 and place == entered:
            work.state[place] += BANNED
        k -= 1
    for p in range(k):
        add(residual, work.Q[p], t * work.z[p])
    return k, t, dot(residual, residual)


@compiled_part
def _guess(columns: FloatArray, f: FloatArray, work: Workspace) -> int:
    """Free the places with non-zero `f`, at value zero, as far as their columns are independent; clear `f`."""
    k = 0
    for i in range(len(f)):
        if f[i] != 0.0:
            f[i] = 0.0
            if k < work.Q.shape[1] and append(columns, i, work.Q, work.R, k):
                work.free[k] = i
                work.x[k] = 0.0
                work.state[i] = FREE
                k += 1
    return k


@compiled_part
def _unban(state: Marks) -> None:
    for i in range(len(state)):
        if state[i] >= BANNED:
            state[i] -= BANNED


@compiled_part
def solve(
    B: FloatArray,
    columns: FloatArray,
    b: FloatArray,
    mode: int,
    rho2: float,
    penalty: float,
    f: FloatArray,
    work: Workspace,
) -> tuple[int, float]:
    """Solve one frame into `f`; returns a code and the multiplier t. `columns` is B'.

    On entry the places with non-zero `f` are an optional guess of the free set, which saves steps if it is good.
    Mode BALL minimises the total within the radius; mode PENALTY minimises penalty sum(f) + ||B f - b||^2 / 2.
    """
    residual, correlation, state = work.residual, work.correlation, work.state
    rank, n = B.shape
    for i in range(n):
        state[i] = ZERO
    t = penalty
    phase = PENALTY if mode == PENALTY else FIT
    copy(b, work.remaining)
    copy(b, residual)
    r2 = dot(b, b)
    if mode == BALL and r2 <= rho2:
        for i in range(n):
            f[i] = 0.0
        return EMPTY, 0.0
    size = math.sqrt(r2)
    k = _guess(columns, f, work)
    code = STOPPED
    ready = k > 0  # settle the guessed free set before searching a place
    dirty = ready
    j = -1
    for _ in range(50 * (rank + n) + 200):
        if not ready:
            correlate(B, residual, correlation)
            cost, threshold = t, REDUCED_COST * t
            if phase == FIT:
                cost, threshold = 0.0, FIT_COST * size
            elif phase == BALL and k == 0:
                cost, threshold = math.inf, 0.0  # the fit has slack: a place at one may decrease
            j = _price(correlation, state, cost, threshold)
            if j < 0:
                code = BEST_FIT if (mode == BALL and phase == FIT) else SOLVED
                break
            k = admit(columns, work, k, j)
            if k < 0:
                return STOPPED, 0.0
        k, t, r2 = _settle(columns, work, k, phase, rho2, t)
        ready = phase == FIT and mode == BALL and r2 <= rho2
        if ready:
            phase = BALL
        if j >= 0 and state[j] >= BANNED:
            dirty = True
        elif dirty:
            dirty = False
            _unban(state)
    for i in range(n):
        if state[i] == ONE or state[i] == ONE + BANNED:
            f[i] = 1.0
    for p in range(k):
        f[work.free[p]] = work.x[p]
    return code, t


@compiled_part
def certify(
    B: FloatArray, b: FloatArray, rho: float, t: float, best_fit: bool, f: FloatArray, work: Workspace
) -> tuple[float, float]:
    """Norm of the misfit of `f`, and a bound on how far its total (or misfit, for a best fit) is above the least.

    For every v: sum(f) >= b'v - rho ||v|| - sum max(0, B'v - 1) for all f in the box that fit, here with
    v = (b - B f)/t; and ||B f - b|| >= b'v - sum max(0, B'v) for all f in the box and unit v.
    """
    residual, correlation = work.residual, work.correlation
    rank, n = B.shape
    copy(b, residual)
    total = 0.0
    for j in range(n):
        if f[j] != 0.0:
            total += f[j]
            for i in range(rank):
                residual[i] -= B[i, j] * f[j]
    norm, along = math.sqrt(dot(residual, residual)), dot(b, residual)
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


@compiled
def pursue(
    B: FloatArray, columns: FloatArray, data: FloatArray, rho2: FloatArray, iterations: int, filled: Any
) -> None:
    """Basis pursuit for consecutive frames, the rows of `data`; then up to `iterations` of Bregman, if above 0.

    `filled` is (maps, codes, misfits, gaps). Bregman iteration solves the penalised problem and adds the misfit back
    until the map is within the radius.
    """
    maps, codes, misfits, gaps = filled
    work = workspace(B.shape[0], B.shape[1])
    added = np.empty(B.shape[0])
    for k in range(len(data)):
        b = data[k]
        if iterations == 0 and k > 0:
            # consecutive frames are often alike: start from the last one
            copy(maps[k - 1], maps[k])
        rho = math.sqrt(max(rho2[k], 0.0))
        code, t = solve(B, columns, b, BALL, rho2[k], 0.0, maps[k], work)
        misfits[k], gaps[k] = certify(B, b, rho, t, code == BEST_FIT, maps[k], work)
        codes[k] = code
        if iterations == 0 or code == BEST_FIT or code == EMPTY:
            continue
        least = np.sum(maps[k]) - gaps[k]
        correlate(B, b, work.correlation)
        penalty = PENALTY_SHARE * max(0.0, np.max(work.correlation))
        copy(b, added)
        codes[k] = STOPPED
        for _ in range(iterations):
            solve(B, columns, added, PENALTY, 0.0, penalty, maps[k], work)
            misfits[k] = certify(B, b, rho, penalty, False, maps[k], work)[0]
            if misfits[k] <= rho:
                codes[k] = SOLVED
                break
            add(added, work.residual, 1.0)
        gaps[k] = np.sum(maps[k]) - least
