"""Check a privacy claim from outside: black-box tests of a mechanism on two inputs.

`audit` stops when it has seen enough. `cloakwork.auditing.testers` has tests whose cost is known before they begin.
"""

from cloakwork.auditing.audit import audit
from cloakwork.auditing.result import Audit, PrivacyCurve, Verdict, Witness
from cloakwork.auditing.testers import (
    Amplified,
    KnownPair,
    KnownPure,
    QueryPlan,
    RandomPrivacy,
    UnknownPair,
    cost_table,
    plan_queries,
)

__all__ = [
    "Amplified",
    "Audit",
    "KnownPair",
    "KnownPure",
    "PrivacyCurve",
    "QueryPlan",
    "RandomPrivacy",
    "UnknownPair",
    "Verdict",
    "Witness",
    "audit",
    "cost_table",
    "plan_queries",
]
