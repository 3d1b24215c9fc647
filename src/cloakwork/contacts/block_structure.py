"""The largest cross term of block models with structure: one density between groups, or groups that are all alike."""

import math
from collections.abc import Iterator
from functools import cache
from itertools import product

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork._compile import compiled
from cloakwork.contacts.block_search import FLAT, MOST_PERMUTED
from cloakwork.contacts.blocks import Blocks

SLACK = 1e-9  # of a row, that rounding may miss
MOST_IN_TREE = 16  # groups of both models whose sets are all tried


def most_of_planted(one: Blocks, two: Blocks) -> float | None:
    """The largest cross term where both models have one density between groups; None if this does not give it.

    With the densities within groups a_i and b_k above those between, alpha and beta, the cross term is
    sum_ik a_i b_k P_ik^2, and a part that all couplings share. If no a_i b_k is below 0, a corner is best: a tree of
    groups, in which each edge carries what one side has more than the other.
    """
    (alpha, a), (beta, b) = (_planted(blocks) for blocks in (one, two))
    weights = np.outer(a, b)
    if one.k + two.k > MOST_IN_TREE or not (weights >= 0).all():  # or some density is NaN: there is none between
        return None
    common = beta * float(a @ one.shares**2) + alpha * float(b @ two.shares**2) + alpha * beta
    return common + _best_tree(np.concatenate([one.shares, -two.shares]), one.k, weights)


def _planted(blocks: Blocks) -> tuple[float, FloatArray]:
    """The one density between groups, NaN if there is none, and how much that within each is above it."""
    between = blocks.matrix[~np.eye(blocks.k, dtype=bool)]
    density = float(between[0]) if len(between) and np.ptp(between) == 0 else math.nan
    return density, np.diag(blocks.matrix) - density


def most_by_columns(one: Blocks, two: Blocks) -> float:
    """A bound on the cross term where a model has one density between groups; infinite if none has.

    With beta between its groups and beta + b_k within, the cross term is beta s' A s + sum_k b_k P_k' A P_k over the
    columns P_k of the coupling, and each P_k' A P_k is at most the square of its share times the largest x' A x over x
    of sum 1 (Motzkin and Straus).
    """
    bound = math.inf
    for rows, columns in ((one, two), (two, one)):
        density, above = _planted(columns)
        if not math.isnan(density) and rows.k <= MOST_PERMUTED:
            least, most = -_best_mixture(-rows.matrix), _best_mixture(rows.matrix)
            common = density * float(rows.shares @ rows.matrix @ rows.shares)
            bound = min(bound, common + float(np.maximum(above * least, above * most) @ columns.shares**2))
    return bound


def _best_mixture(form: FloatArray) -> float:
    """The largest x' form x over x >= 0 of sum 1; a best x of least support is the only stationary one there."""
    best = float(form.diagonal().max())
    for members in range(1, 1 << len(form)):
        places = np.flatnonzero(members >> np.arange(len(form)) & 1)
        ones = np.ones((len(places), 1))
        system = np.block([[form[np.ix_(places, places)], -ones], [ones.T, np.zeros((1, 1))]])
        if np.linalg.matrix_rank(system) == len(system):
            *weights, value = np.linalg.solve(system, np.eye(len(system))[-1]).tolist()
            best = max(best, value) if min(weights) >= 0 else best
    return best


@compiled
def _best_tree(shares: FloatArray, rows: int, weights: FloatArray) -> float:
    """The largest sum of weighted squares over all trees of groups; `shares` of those after `rows` are negative."""
    groups = len(shares)
    excess = np.zeros(1 << groups)  # of a set of groups
    tree = np.full((groups, len(excess)), -np.inf)  # the best tree of a set with this root, whose excess goes up
    below = np.full((groups, len(excess)), -np.inf)  # the same below this group, which is not of the set
    for members in range(1, len(excess)):
        for root in range(groups):
            rest = members ^ (1 << root)
            if rest > members:
                continue
            excess[members] = excess[rest] + shares[root]
            if rest == 0:
                tree[root, members] = 0.0
            elif (excess[members] if root < rows else -excess[members]) >= -FLAT:
                first = rest & -rest  # the child with this group is taken away first
                others = some = rest ^ first
                while some >= 0:
                    child = some | first
                    tree[root, members] = max(tree[root, members], below[root, child] + tree[root, members ^ child])
                    some = (some - 1) & others if some else -1
        for above in range(groups):
            for root in range(groups):
                if members >> above & 1 == 0 and members >> root & 1 and (root < rows) != (above < rows):
                    weight = weights[above, root - rows] if above < rows else weights[root, above - rows]
                    value = tree[root, members] + weight * excess[members] ** 2
                    below[above, members] = max(below[above, members], value)
    return float(tree[0, -1])


def most_of_equal_rows(one: Blocks, two: Blocks) -> float | None:
    """The largest cross term where all groups of one model may change places; None if this does not give it.

    With alpha between n equal groups and alpha + a within, the cross term is a sum_i P_i' B P_i over the rows P_i of
    the coupling, and alpha t' B t. If a B is positive semidefinite on vectors of sum 0, a corner is best: a tree.
    """
    for rows, columns in ((one, two), (two, one)):
        density, above = _planted(rows)
        if np.ptp(rows.shares) == 0 and np.ptp(above) == 0 and columns.k <= MOST_PERMUTED:
            form, away = above[0] * columns.matrix, np.eye(columns.k) - 1 / columns.k
            if np.linalg.eigvalsh(away @ form @ away)[0] >= -FLAT:
                common = density * float(columns.shares @ columns.matrix @ columns.shares)
                return common + _best_of_equal_rows(rows.k, columns.shares, form)
    return None


def _best_of_equal_rows(number: int, shares: FloatArray, form: FloatArray) -> float:
    """The largest sum of x' form x over the rows x of all trees of columns and `number` equal rows.

    Rows have no names, and columns below a row have as many rows below them as they fill. So only sets of columns
    count. Shares are in units of a row.
    """
    units = np.eye(len(shares))
    totals = number * ((np.arange(1 << len(shares))[:, None] >> np.arange(len(shares)) & 1) @ shares)
    filled = np.floor(totals + SLACK).astype(int)

    @cache
    def splits(members: int) -> list[tuple[FloatArray, float]]:
        """The value that subtrees of these columns together give to a row above them, and the best value below it."""
        found = [] if members else [(np.zeros(len(shares)), 0.0)]
        for part in _parts_with_first(members):
            flow = max(0.0, float(totals[part]) - int(filled[part]))
            rest = [(given, value) for given, value in splits(members ^ part) if given.sum() + flow <= 1 + SLACK]
            for column in np.flatnonzero(part >> np.arange(len(shares)) & 1).tolist() if rest else ():
                below = column_value(column, part ^ (1 << column))
                found += [(given + flow * units[column], value + below) for given, value in rest]
        return found

    @cache
    def row_values(members: int) -> dict[int, FloatArray]:
        """The best value of a row with these columns below it, for each above it, by the number of rows."""
        best = dict[int, FloatArray]()
        for given, value in splits(members):
            left = max(0.0, 1 - float(given.sum()))
            values = value + given @ form @ given + 2 * left * (form @ given) + left**2 * form.diagonal()
            rows = round(float(totals[members]) + left)
            best[rows] = np.maximum(best.get(rows, -math.inf), values)
        return best

    @cache
    def sets_below(column: int, members: int) -> dict[int, float]:
        """The best value of rows below a column that have all these columns below them, by the number of rows."""
        best = {} if members else {0: 0.0}
        for part in _parts_with_first(members):
            others = sets_below(column, members ^ part).items()
            for (rows, values), (more, value) in product(row_values(part).items(), others):
                best[rows + more] = max(best.get(rows + more, -math.inf), value + float(values[column]))
        return best

    @cache
    def column_value(column: int, members: int) -> float:
        """The best value below a column: rows with these columns below them, and rows that it fills alone."""
        rows, alone = int(filled[members | 1 << column]), float(form[column, column])
        found = sets_below(column, members).items()
        return max((value + (rows - used) * alone for used, value in found if used <= rows), default=-math.inf)

    return column_value(0, len(totals) - 2) / number**2


def _parts_with_first(members: int) -> Iterator[int]:
    """All parts of a set that have its first member."""
    first = members & -members
    others = some = members ^ first
    while members:
        yield some | first
        if some == 0:
            return
        some = (some - 1) & others
