"""The distance of block models: brute force, two other solvers, and closed forms."""

import math
import sys
from functools import cache
from itertools import permutations, product
from typing import Any

import cvxpy
import numpy as np
import ot
import pytest

import cloakwork as cw
from cloakwork._checks import FloatArray
from cloakwork.contacts.block_distance import _best_of_supports, permuted_apart
from cloakwork.contacts.block_structure import most_by_columns, most_of_equal_rows, most_of_planted


def two_by_two(first: cw.Blocks, second: cw.Blocks) -> float:
    """The distance of two models with two groups each, by trying all couplings on a fine grid."""
    s, t = first.shares[0], second.shares[0]
    least = math.inf
    for a in np.linspace(max(0.0, s + t - 1), min(s, t), 4_001):
        coupling = np.array([[a, s - a], [t - a, 1 - s - t + a]])
        gap = (first.matrix[:, None, :, None] - second.matrix[None, :, None, :]) ** 2
        least = min(least, float(np.einsum("ik,jl,ikjl->", coupling, coupling, gap)))
    return math.sqrt(max(least, 0.0))


def random_blocks(k: int, rng: np.random.Generator, *, equal: bool) -> cw.Blocks:
    matrix = np.triu(rng.random((k, k)))
    return cw.Blocks(matrix + np.triu(matrix, 1).T, shares=None if equal else rng.uniform(0.2, 1.0, k))


def test_the_distance_is_that_of_the_best_coupling() -> None:
    swapped, same = cw.Blocks([[0, 1], [1, 0]]), cw.Blocks(np.eye(2))
    assert cw.block_distance(swapped, same).exact
    assert cw.block_distance(swapped, same).upper == pytest.approx(math.sqrt(0.5))
    a, b = cw.Blocks([[1, 0, 1], [0, 1, 0], [1, 0, 1]]), cw.Blocks([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    assert cw.block_distance(a, b).upper == pytest.approx(0.0, abs=1e-7)
    for k in (2, 4):
        matrix = np.full((k, k), 0.001) + 0.049 * np.eye(k)
        flat = cw.block_distance(cw.Blocks(matrix), cw.Blocks([[float(matrix.mean())]]))
        assert flat.exact
        assert flat.upper == pytest.approx(0.049 * math.sqrt(k - 1) / k)
    assert cw.block_distance(a, cw.Blocks([[1, 0], [0, 1]], shares=[2, 1])).upper == pytest.approx(0.0, abs=1e-9)
    rng = np.random.default_rng(6)
    for _ in range(4):
        one, two = random_blocks(2, rng, equal=False), random_blocks(2, rng, equal=False)
        assert cw.block_distance(one, two).upper == pytest.approx(two_by_two(one, two), abs=1e-6)


def test_a_ring_is_as_far_from_separate_groups_as_its_best_mixtures_say() -> None:
    """Half of each separate group is in one place of the ring, and half beside it: no group can do better."""
    shares = np.arange(1.0, 9.0) / 36
    ring = np.isin(np.subtract.outer(np.arange(8), np.arange(8)) % 8, (1, 7)).astype(float)
    coupling = np.zeros((8, 8))
    for place, pair in zip((0, 2, 4, 6), ((0, 7), (1, 6), (2, 5), (3, 4)), strict=True):  # each pair fills a place
        coupling[np.ix_((place, place + 1), pair)] = shares[list(pair)] / 2
    assert np.allclose(coupling.sum(axis=1), 1 / 8)
    bounds = cw.block_distance(cw.Blocks(ring), cw.Blocks(np.eye(8), shares=shares), parts=0)
    square = 2 / 8 + float(shares @ shares) - 2 * float((coupling * (ring @ coupling)).sum())
    assert bounds.lower == pytest.approx(math.sqrt(square))
    rng = np.random.default_rng(5)
    for _ in range(20):
        one, two = random_blocks(4, rng, equal=False), cw.Blocks(0.3 + rng.uniform(-0.3, 0.3) * np.eye(4))
        plan = ot.sinkhorn(one.shares, two.shares, rng.random((4, 4)), 0.05)
        assert (plan * (one.matrix @ plan @ two.matrix)).sum() <= most_by_columns(one, two) + 1e-9


@pytest.mark.parametrize("equal", [True, False])
def test_bounds_enclose_what_optimal_transport_finds(equal: bool) -> None:
    rng = np.random.default_rng(7)
    one, two = random_blocks(3, rng, equal=equal), random_blocks(4 if not equal else 3, rng, equal=equal)
    bounds = cw.block_distance(one, two)
    starts = [ot.emd(one.shares, two.shares, rng.random((one.k, two.k))) for _ in range(4)]
    known = [
        ot.gromov.gromov_wasserstein2(
            one.matrix, two.matrix, one.shares, two.shares, "square_loss", G0=start, max_iter=200
        )
        for start in starts
    ]
    assert bounds.lower <= math.sqrt(min(known)) * (1 + 1e-9)
    assert bounds.upper <= math.sqrt(min(known)) * (1 + 1e-3)
    larger = cw.block_distance(random_blocks(12, rng, equal=True), random_blocks(12, rng, equal=True))
    assert 0 <= larger.lower <= larger.upper


@pytest.mark.parametrize(("k", "skipped", "tight"), [(3, 6, False), (5, 0, True)])
def test_several_groups_have_an_exact_distance_between_those_of_two_independent_solvers(
    k: int, skipped: int, tight: bool
) -> None:
    """Below it is a semidefinite program, which need not be tight, and above it the best of many descents."""
    rng = np.random.default_rng(3)
    *_, one, two = (random_blocks(k, rng, equal=True) for _ in range(skipped + 2))
    found = cw.block_distance(one, two)
    starts = [ot.emd(one.shares, two.shares, rng.random((k, k))) for _ in range(3)]
    above = min(
        ot.gromov.gromov_wasserstein2(
            one.matrix, two.matrix, one.shares, two.shares, "square_loss", G0=start, max_iter=60
        )
        for start in [*starts, *((start + 1 / k**2) / 2 for start in starts)]
    )
    program: Any = cvxpy
    lifted = program.Variable((k * k, k * k), PSD=True)
    entries = program.sum(lifted, axis=1)
    sums = np.vstack([np.kron(np.eye(k), np.ones(k)), np.kron(np.ones(k), np.eye(k))])
    fits = [lifted >= 0, sums @ lifted == program.outer(np.full(2 * k, 1 / k), entries), sums @ entries == 1 / k]
    cross = program.Maximize(program.sum(program.multiply(np.kron(one.matrix, two.matrix), lifted)))
    below = sum((b.matrix**2).mean() for b in (one, two)) - 2 * program.Problem(cross, fits).solve(solver="CLARABEL")
    assert found.exact
    assert math.sqrt(below) - 1e-6 <= found.upper <= math.sqrt(above) + 1e-9
    assert (found.upper - math.sqrt(below) < 1e-5) is tight


@pytest.mark.parametrize(
    ("k", "seed", "skipped", "equal"),
    [(5, [0], 0, False), (5, [5, 4], 30, True), (8, [8, 4], 22, True), (8, [8, 1], 0, False)],
)
def test_a_search_closes_the_gap_of_the_relaxation_and_no_descent_comes_closer(
    k: int, seed: list[int], skipped: int, equal: bool
) -> None:
    rng = np.random.default_rng(seed)
    *_, one, two = (random_blocks(k, rng, equal=equal) for _ in range(skipped + 2))
    found = cw.block_distance(one, two)
    relaxed = cw.block_distance(one, two, parts=0)
    assert found.exact
    assert not relaxed.exact
    assert relaxed.lower <= found.lower <= found.upper <= relaxed.upper
    starts = [ot.emd(one.shares, two.shares, rng.random((k, k))) for _ in range(20)]
    known = [
        ot.gromov.gromov_wasserstein2(
            one.matrix, two.matrix, one.shares, two.shares, "square_loss", G0=start, max_iter=100
        )
        for start in starts
    ]
    assert found.upper <= math.sqrt(min(known)) + 1e-9


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (cw.Blocks(np.eye(4)), cw.Blocks(0.2 + 0.4 * np.eye(4), shares=[1, 2, 3, 4])),
        (cw.Blocks(0.8 - 0.7 * np.eye(4)), cw.Blocks(0.9 - 0.7 * np.eye(4), shares=[1, 2, 3, 4])),
        (cw.Blocks(np.eye(4)), cw.Blocks(np.eye(3))),
    ],
)
def test_a_search_finds_what_trying_all_supports_finds(
    one: cw.Blocks, two: cw.Blocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, module = cw.block_distance(one, two), sys.modules[permuted_apart.__module__]
    monkeypatch.setattr(module, "MOST_SUPPORTED", 0)
    for name in ("most_of_planted", "most_of_equal_rows"):
        monkeypatch.setattr(module, name, lambda *_: None)
    searched = cw.block_distance(one, two)
    assert not cw.block_distance(one, two, parts=0).exact
    assert searched.exact
    assert searched.lower <= tried.upper
    assert searched.upper == pytest.approx(tried.upper, abs=1e-9)


def test_groups_that_may_all_change_places_have_an_exact_distance() -> None:
    """The cross term of two identities is convex and 15 times the shares are whole, so whole couplings are best."""

    @cache
    def most_squares(share: int, rooms: tuple[int, ...]) -> int:
        """The largest sum of squares if groups of 1 to `share` fifteenths fill the rooms; only their sizes matter."""
        if share == 0:
            return 0
        ways = (way for way in product(*(range(room + 1) for room in rooms)) if sum(way) == share)
        return max(
            sum(part**2 for part in way)
            + most_squares(share - 1, tuple(sorted(room - part for room, part in zip(rooms, way, strict=True))))
            for way in ways
        )

    found = cw.block_distance(cw.Blocks(np.eye(5)), cw.Blocks(np.eye(5), shares=[1, 2, 3, 4, 5]))
    assert found.exact
    squares = 1 / 5 + sum(share**2 for share in range(1, 6)) / 15**2 - 2 * most_squares(5, (3,) * 5) / 15**2
    assert found.upper == pytest.approx(math.sqrt(squares))


def planted(k: int, rng: np.random.Generator, sign: int) -> cw.Blocks:
    """A model with one density between groups, and more or less within each."""
    between = rng.uniform(0.4, 0.6)
    return cw.Blocks(np.diag(sign * rng.uniform(0, 0.4, k)) + between, shares=rng.uniform(0.2, 1.0, k))


def test_trees_of_groups_are_as_good_as_all_supports() -> None:
    rng = np.random.default_rng(9)
    for sign in (1, -1):
        one, two = planted(4, rng, sign), planted(3, rng, sign)
        most = most_of_planted(one, two)
        assert most is not None
        squares = sum(float(model.shares @ model.matrix**2 @ model.shares) for model in (one, two))
        distance = math.sqrt(squares - 2 * most)
        assert distance == pytest.approx(cw.block_distance(one, two).upper, abs=1e-9)
    assert most_of_planted(planted(3, rng, 1), planted(3, rng, -1)) is None
    assert most_of_planted(planted(3, rng, 1), random_blocks(3, rng, equal=True)) is None


def chain(k: int) -> FloatArray:
    """Densities that fall with the distance of groups on a line."""
    return np.asarray(np.exp(-np.abs(np.subtract.outer(np.arange(k), np.arange(k))) / 2))


@pytest.mark.parametrize("sign", [1, -1])
def test_trees_of_equal_rows_are_as_good_as_all_supports(sign: int) -> None:
    """Whole shares, of which some sets fill whole rows, and others."""
    for k, shares in ((4, [1, 2, 3, 4]), (5, [0.3, 0.9, 0.4])):
        one, line = cw.Blocks(0.5 + sign * 0.3 * np.eye(k)), chain(len(shares))
        two = cw.Blocks(line if sign > 0 else 1 - line, shares=shares)
        assert most_of_equal_rows(one, two) == pytest.approx(_best_of_supports(one, two), abs=1e-12)
        assert most_of_equal_rows(one, two) == most_of_equal_rows(two, one)
        assert most_of_equal_rows(one, cw.Blocks(1 - two.matrix, shares=shares)) is None
    assert most_of_equal_rows(cw.Blocks(chain(3)), two) is None


def test_eight_groups_of_one_density_have_an_exact_distance() -> None:
    """Rooms of whole eighths each take whole groups: the sum of squares of a coupling is at most its largest entry."""
    found = cw.block_distance(cw.Blocks(np.eye(8)), cw.Blocks(np.eye(4), shares=[1, 1, 2, 4]))
    assert found.exact
    assert found.upper == pytest.approx(math.sqrt(1 / 8 + 22 / 64 - 2 / 8))
    for matrix in (np.eye(8), chain(8)):
        assert cw.block_distance(cw.Blocks(np.eye(8)), cw.Blocks(matrix, shares=np.arange(1, 9))).exact


def test_a_coupling_is_the_mean_over_pairs_of_independent_permutations() -> None:
    """Proposition 5.1 of the thesis, for a mixture of permutations drawn at random."""
    rng = np.random.default_rng(8)
    a, b = (random_blocks(3, rng, equal=True).matrix for _ in range(2))
    orders = [np.array(order) for order in permutations(range(3))]
    chances = rng.dirichlet(np.ones(6))
    mixture = sum(chance * np.eye(3)[order].T for chance, order in zip(chances, orders, strict=True)) / 3
    coupled = np.einsum("ik,jl,ikjl->", mixture, mixture, (a[:, None, :, None] - b[None, :, None, :]) ** 2)
    apart = [[((a[np.ix_(sigma, tau)] - b) ** 2).mean() for tau in orders] for sigma in orders]
    assert coupled == pytest.approx(chances @ np.array(apart) @ chances)
    assert coupled >= permuted_apart(a, b)[0]
