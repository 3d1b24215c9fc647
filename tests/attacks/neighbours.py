"""The tool of two attacks: neighbouring maps through a matrix that was built without the product, against its claim."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import cloakwork as cw
from tests.attacks.conftest import Attack

Floats = NDArray[np.float64]
BATCH = 20_000


def reached_mu(cloak: cw.Cloak, shifts: Floats) -> Floats:
    """The mu of shifts of the readings, shape (m, pairs), after the worst rounding to steps.

    A shift of 2.3 steps becomes 3 steps for some background of the reading, so that each sensor's is rounded up.
    """
    steps = np.ceil(np.abs(shifts) / cloak.steps[:, None] - 1e-9) * cloak.steps[:, None]
    shares = steps / cloak.sigmas[:, None]
    if cloak.scope == cw.Scope.SENSOR:
        return np.asarray(shares.max(axis=0))
    return np.asarray(np.sqrt((shares**2).sum(axis=0)))


def attack_places(
    attack: Attack,
    cloak: cw.Cloak,
    matrix: Floats,
    distances: Floats,
    rng: np.random.Generator,
    size: int,
) -> None:
    """Move weight between places: all pairs of places, at most `size`, and as many random plans of 2 to 5 moves.

    `distances` (n, n) is infinite between places without a path. Every plan carries exactly alpha.
    """
    first, second = np.nonzero(np.triu(np.isfinite(distances), 1))
    if len(first) > size:
        chosen = rng.choice(len(first), size, replace=False)
        near = np.argsort(distances[first, second], kind="stable")[: size // 2]  # the steepest moves are short
        chosen = np.concatenate([near, chosen[: size - len(near)]])
        first, second = first[chosen], second[chosen]
    for part in _batches(len(first)):
        i, j = first[part], second[part]
        shifts = cloak.alpha * (matrix[:, i] - matrix[:, j]) / distances[i, j]
        attack.compare(reached_mu(cloak, shifts), cloak.frame_mu)
    slopes = np.sqrt((((matrix[:, first] - matrix[:, second]) / cloak.sigmas[:, None]) ** 2).sum(axis=0))
    steep = np.argsort(-slopes / distances[first, second])[:200]
    for part in _batches(size):
        attack.compare(
            reached_mu(cloak, _plans(matrix, distances, cloak.alpha, first, second, steep, part, rng)), cloak.frame_mu
        )


def _plans(
    matrix: Floats,
    distances: Floats,
    alpha: float,
    first: NDArray[np.intp],
    second: NDArray[np.intp],
    steep: NDArray[np.intp],
    part: slice,
    rng: np.random.Generator,
) -> Floats:
    """The shifts of random plans; half of their moves are among the steepest."""
    plans, moves = part.stop - part.start, int(rng.integers(2, 6))
    which = np.where(
        rng.random((moves, plans)) < 0.5,
        rng.choice(steep, (moves, plans)),
        rng.integers(len(first), size=(moves, plans)),
    )
    i, j = first[which], second[which]
    swapped = rng.random(which.shape) < 0.5
    i, j = np.where(swapped, j, i), np.where(swapped, i, j)
    shares = rng.dirichlet(np.full(moves, 0.5), plans).T
    return np.asarray(
        sum(alpha * s * (matrix[:, a] - matrix[:, b]) / distances[a, b] for s, a, b in zip(shares, i, j, strict=True))
    )


def attack_positions(
    attack: Attack,
    cloak: cw.Cloak,
    columns: Callable[[Floats], Floats],
    size: tuple[float, ...],
    rng: np.random.Generator,
    number: int,
) -> Floats:
    """Move a source between random positions of a box; returns the position of the steepest move, shape (dimension,).

    `columns(positions)` gives the readings (m, k) of unit sources at positions (k, dimension). Moves are of any length,
    and half of them start near the steepest found before.
    """
    box, best, where = np.array(size), 0.0, np.zeros(len(size))
    for part in _batches(number):
        many = part.stop - part.start
        start = rng.random((many, len(box))) * box
        close = rng.random(many) < 0.5
        if best:
            start[close] = np.clip(where + rng.normal(scale=0.02, size=(int(close.sum()), len(box))) * box, 0, box)
        direction = rng.normal(size=start.shape)
        direction /= np.sqrt((direction**2).sum(axis=1, keepdims=True))
        length = box.max() * 10.0 ** rng.uniform(-6.0, 0.0, (many, 1))
        end = np.clip(start + direction * length, 0, box)
        apart = np.sqrt(((end - start) ** 2).sum(axis=1))
        start, end, apart = start[apart > 0], end[apart > 0], apart[apart > 0]
        shifts = cloak.alpha * (columns(start) - columns(end)) / apart
        reached = reached_mu(cloak, shifts)
        attack.compare(reached, cloak.frame_mu)
        if reached.max() > best:
            best, where = float(reached.max()), (start + end)[np.argmax(reached)] / 2
    return where


def _batches(size: int) -> list[slice]:
    return [slice(begin, min(begin + BATCH, size)) for begin in range(0, size, BATCH)]
