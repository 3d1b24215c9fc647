"""The experiment on groups from flipped contacts: printed thresholds, the union bound, least squares."""

import pytest

from cloakwork.contacts import plan_communities
from papers.experiments import graphons


def test_the_least_epsilons_by_the_printed_condition() -> None:
    """Values worked out independently, for 5 % within and 0.1 % between two groups."""
    found = [graphons.printed_epsilon(n) for n in graphons.PEOPLE]
    assert found == pytest.approx([3.504, 1.828, 1.039, 0.515], abs=5e-4)
    plans = [plan_communities(n=n, blocks=graphons.OFFICE, epsilon=1.0) for n in graphons.PEOPLE]
    assert all(plan.min_epsilon < printed for plan, printed in zip(plans, found, strict=True))


def test_the_union_bound_says_something_from_357_groups_on() -> None:
    assert graphons.union_bound(356) >= 0 > graphons.union_bound(357)
