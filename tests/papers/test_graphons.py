"""The experiment on groups from flipped contacts: printed thresholds, the union bound, least squares."""

from itertools import permutations

import numpy as np
import pytest

from cloakwork.contacts import Blocks, plan_communities
from papers.block_models import fano_constant, least_squares, permuted_apart, union_bound
from papers.experiments import graphons


def test_the_least_epsilons_by_the_printed_condition() -> None:
    """Values worked out independently, for 5 % within and 0.1 % between two groups."""
    found = [graphons.printed_epsilon(n) for n in graphons.PEOPLE]
    assert found == pytest.approx([3.504, 1.828, 1.039, 0.515], abs=5e-4)
    plans = [plan_communities(n=n, blocks=graphons.OFFICE, epsilon=1.0) for n in graphons.PEOPLE]
    assert all(plan.min_epsilon < printed for plan, printed in zip(plans, found, strict=True))


def test_the_union_bound_says_something_from_357_groups_on() -> None:
    assert union_bound(356) >= 0 > union_bound(357)


def test_least_squares_repairs_a_few_wrong_labels() -> None:
    rng = np.random.default_rng(1)
    drawn = Blocks([[0.6, 0.1], [0.1, 0.6]]).sample(100, rng=rng)
    wrong = drawn.labels.copy()
    wrong[:15] = 1 - wrong[:15]
    assert (least_squares(drawn.met.astype(float), wrong) == drawn.labels).all()


def test_the_constant_of_the_lower_bound_grows_with_the_groups_and_is_none_for_few() -> None:
    constants = [fano_constant(k) for k in (5, 50, 400, 10_000)]
    assert constants[0] == 0.0
    assert constants == sorted(constants)
    assert constants[-1] < 0.02


def test_a_coupling_is_the_mean_over_pairs_of_independent_permutations() -> None:
    """Proposition 5.1 of the thesis, for a mixture of permutations drawn at random."""
    rng = np.random.default_rng(8)
    a, b = (matrix + matrix.T for matrix in rng.random((2, 3, 3)) / 2)
    orders = [np.array(order) for order in permutations(range(3))]
    chances = rng.dirichlet(np.ones(6))
    mixture = sum(chance * np.eye(3)[order].T for chance, order in zip(chances, orders, strict=True)) / 3
    coupled = np.einsum("ik,jl,ikjl->", mixture, mixture, (a[:, None, :, None] - b[None, :, None, :]) ** 2)
    apart = [[((a[np.ix_(sigma, tau)] - b) ** 2).mean() for tau in orders] for sigma in orders]
    assert coupled == pytest.approx(chances @ np.array(apart) @ chances)
    assert coupled >= permuted_apart(a, b)[0]
