"""Tests of a privacy claim with a guarantee on both sides, and what they cost before they begin."""

from cloakwork.auditing.testers.lower_bounds import (
    HardPairs,
    approximate_limit,
    hard_pairs,
    pure_limit,
    share_limit,
    unnoticed_mass,
)
from cloakwork.auditing.testers.outcome_pair import Deltas, Pair, random_distance
from cloakwork.auditing.testers.query_costs import plan_queries
from cloakwork.auditing.testers.query_plan import Answer, Binned, Mechanism, Promise, QueryPlan, Tester
from cloakwork.auditing.testers.random_privacy import Amplified, RandomPrivacy
from cloakwork.auditing.testers.stated_pair import KnownPair, KnownPure
from cloakwork.auditing.testers.unknown_pair import UnknownPair
from cloakwork.errors import UnverifiableError

__all__ = [
    "Amplified",
    "Answer",
    "Binned",
    "Deltas",
    "HardPairs",
    "KnownPair",
    "KnownPure",
    "Mechanism",
    "Pair",
    "Promise",
    "QueryPlan",
    "RandomPrivacy",
    "Tester",
    "UnknownPair",
    "UnverifiableError",
    "approximate_limit",
    "hard_pairs",
    "plan_queries",
    "pure_limit",
    "random_distance",
    "share_limit",
    "unnoticed_mass",
]
