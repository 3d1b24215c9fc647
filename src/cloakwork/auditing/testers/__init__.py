"""Tests of a privacy claim with a guarantee on both sides, and what they cost before they begin."""

from cloakwork.auditing.testers.amplify import Amplified
from cloakwork.auditing.testers.costs import CostRow, CostTable, cost_table, plan_queries
from cloakwork.auditing.testers.distances import Deltas, Pair, random_distance
from cloakwork.auditing.testers.known import KnownPair
from cloakwork.auditing.testers.limits import (
    HardPairs,
    approximate_limit,
    hard_pairs,
    pure_limit,
    share_limit,
    unnoticed_mass,
)
from cloakwork.auditing.testers.mechanism import Binned, Mechanism
from cloakwork.auditing.testers.plan import Answer, Promise, QueryPlan, Tester
from cloakwork.auditing.testers.pure import KnownPure
from cloakwork.auditing.testers.random_privacy import RandomPrivacy
from cloakwork.auditing.testers.unknown import UnknownPair
from cloakwork.errors import UnverifiableError

__all__ = [
    "Amplified",
    "Answer",
    "Binned",
    "CostRow",
    "CostTable",
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
    "cost_table",
    "hard_pairs",
    "plan_queries",
    "pure_limit",
    "random_distance",
    "share_limit",
    "unnoticed_mass",
]
