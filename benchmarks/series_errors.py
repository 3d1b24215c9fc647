"""The error of filters of a series at equal privacy (mu = 1): ours, the best that any matrix can do, trees, and others.

All are mean squared errors over all outputs, for a change of one unit. Ours are those of whole-number releases at
(1, 1e-6), in units of 1/mu^2; the others are of ideal real-valued noise.
"""

import math
from collections.abc import Iterator

import numpy as np
from rich.table import Table

from cloakwork._checks import FloatArray
from cloakwork.privacy import largest_mu
from cloakwork.series import Decay, Filter, RunningSum, SeriesCloak, WindowSum, factor
from cloakwork.series.strategies import MechanismName
from papers.filters import papers_mse

EPSILON, DELTA = 1.0, 1e-6
GOAL_PAPER, GOAL_BEST = 3.0, 1.05
MECHANISMS: tuple[MechanismName, ...] = ("least", "square-root", "fourier")
DENSE, LEAST_SQUARES = 256, 1024  # the longest series for what needs matrices
SETTINGS: tuple[tuple[Filter, tuple[int, ...]], ...] = (
    (RunningSum(), (32, 64, 128, 256, 1024, 4096, 65536)),
    (WindowSum(24), (32, 64, 128, 256, 1024, 4096, 65536)),
    (Decay(0.9), (32, 64, 128, 256, 1024, 4096, 65536)),
)
COLUMNS = (
    "filter",
    "N",
    "best matrix",
    "ours",
    "SquareRoot",
    "Fourier",
    "tree",
    "Honaker",
    "least sq.",
    "apart",
    "values",
    "paper",
    "ours / best",
    "paper / ours",
    "goal",
)


def run() -> tuple[Table, bool]:
    """The table, and whether the goals are met."""
    table = Table(
        title="Mean squared error of filters of a series, mu = 1",
        caption="tree: sums of nodes; Honaker: improved from below; least sq.: from all nodes. apart: noise on each "
        f"output. values: noise on each value. Goals: {GOAL_PAPER:g} times below the paper's formula, and "
        f"at most {GOAL_BEST:g} times the best matrix.",
        collapse_padding=True,
        pad_edge=False,
    )
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == "filter" else "right", no_wrap=name == "filter")
    good = True
    for what, lengths in SETTINGS:
        for n in lengths:
            row, met = _row(what, n)
            good &= met
            table.add_row(*row)
        table.add_section()
    return table, good


def _row(what: Filter, n: int) -> tuple[list[str], bool]:
    mu = largest_mu(EPSILON, DELTA)
    ours, root, circle = (
        SeriesCloak(what, n, epsilon=EPSILON, delta=DELTA, strategy=factor([what], n, mechanism=mechanism)).expected_mse
        * mu**2
        for mechanism in MECHANISMS
    )
    paper = papers_mse(what, n, EPSILON, DELTA) * mu**2
    best = best_matrix(_matrix(what, n)) if n <= DENSE else None
    squares = least_squares_tree(_matrix(what, n)) if n <= LEAST_SQUARES else None
    tree, honaker = trees(what, n)
    taps = what.cut(n).values
    energy = float((np.cumsum(taps**2).sum() + (n - len(taps)) * (taps**2).sum()) / n)
    met = paper / ours >= GOAL_PAPER and (best is None or ours <= GOAL_BEST * best)
    cells = [best, ours, root, circle, tree, honaker, squares, float((taps**2).sum()), energy, paper]
    ratios = ["-" if best is None else f"{ours / best:.3f}", f"{paper / ours:.2f}x"]
    return [what.name, f"{n:,}", *map(_cell, cells), *ratios, "met" if met else "MISSED"], met


def best_matrix(matrix: FloatArray, gap: float = 1e-3) -> float:
    """The least mean squared error of all matrix mechanisms, to a relative `gap`.

    Over X = C^T C with diagonal 1, tr(A^T A X^-1) is least where the diagonal of (V^1/2 A^T A V^1/2)^1/2 is v, and for
    every v > 0 twice the trace of that root, less sum v, is a lower bound (Denisov, McMahan, Rush, Smith and Thakurta).
    """
    gram = matrix.T @ matrix
    v = np.ones(len(gram))
    while True:
        side = np.sqrt(v)
        values, vectors = np.linalg.eigh(side[:, None] * gram * side)
        root = np.sqrt(np.maximum(values, 0.0))
        diagonal = (vectors**2) @ root
        # tr(A^T A X^-1) for X = V^-1/2 root V^-1/2 is tr(root); scaled so that no diagonal entry of X is above 1
        upper = float(root.sum() * (diagonal / v).max())
        lower = float(2 * root.sum() - v.sum())
        if upper - lower <= gap * upper:
            return upper / len(gram)
        v = diagonal


def least_squares_tree(matrix: FloatArray) -> float:
    """Noise on all nodes of a binary tree up to the best height, and the best answers from all of them (Hay et al.)."""
    n = len(matrix)
    found, gram = [], np.zeros((n, n))
    for height in range(n.bit_length()):
        gram += np.kron(np.eye(n >> height), np.ones((1 << height, 1 << height)))
        solved = np.linalg.solve(np.linalg.cholesky(gram), matrix.T)
        found.append(float((solved**2).sum()) * (height + 1) / n)
    return min(found)


def trees(what: Filter, n: int) -> tuple[float | None, float | None]:
    """Sums from as few nodes of a binary tree as there can be: as they are, and improved by what is below each node.

    A node of height h, improved, has variance v_h with 1/v_h = 1 + 1/(2 v_{h-1}) (Honaker).
    """
    taps = what.cut(n).values
    if (taps != 1).any():
        return None, None
    width = len(taps)
    heights = np.zeros(n.bit_length(), dtype=np.int64)
    for t in range(n):
        for height in _nodes(max(t + 1 - width, 0), t + 1):
            heights[height] += 1
    used = int(np.flatnonzero(heights)[-1]) + 1
    improved = [1.0]
    for _ in range(used - 1):
        improved.append(1 / (1 + 1 / (2 * improved[-1])))
    return used * float(heights.sum()) / n, used * float(heights[:used] @ np.array(improved)) / n


def _nodes(start: int, end: int) -> Iterator[int]:
    """Heights of the fewest nodes that make up the values from `start` to before `end`."""
    while start < end:
        height = (end - start).bit_length() - 1
        if start:
            height = min(height, (start & -start).bit_length() - 1)
        yield height
        start += 1 << height


def _matrix(what: Filter, n: int) -> FloatArray:
    taps = what.cut(n).values
    matrix = np.zeros((n, n))
    for k, value in enumerate(taps):
        matrix[np.arange(k, n), np.arange(n - k)] = value
    return matrix


def _cell(error: float | None) -> str:
    if error is None or not math.isfinite(error):
        return "-"
    return f"{error:,.0f}" if error >= 1000 else f"{error:.3f}"
