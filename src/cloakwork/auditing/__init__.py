"""Check a privacy claim from outside: black-box tests of a mechanism on two inputs.

`audit` stops as soon as it has seen enough. `cloakwork.auditing.testers` holds the algorithms of McMillan's thesis,
whose cost is known before they begin.
"""

from cloakwork.auditing.audit import audit
from cloakwork.auditing.audit_report import AuditReport, Subject
from cloakwork.auditing.bench_claim import (
    FEWEST_REPORTS,
    HALF_NOISE,
    BenchClaim,
    BitClaim,
    SetupComparison,
    bench_claim,
    bit_claim,
    compare,
)
from cloakwork.auditing.bench_source import BenchListener, BenchSource, SetupRecording
from cloakwork.auditing.kept_reports import KeptReports
from cloakwork.auditing.program_source import PART, ProgramSource
from cloakwork.auditing.result import Audit, PrivacyCurve, Verdict, Witness
from cloakwork.auditing.testers import (
    Amplified,
    KnownPair,
    KnownPure,
    QueryPlan,
    RandomPrivacy,
    UnknownPair,
    plan_queries,
)

__all__ = [
    "FEWEST_REPORTS",
    "HALF_NOISE",
    "PART",
    "Amplified",
    "Audit",
    "AuditReport",
    "BenchClaim",
    "BenchListener",
    "BenchSource",
    "BitClaim",
    "KeptReports",
    "KnownPair",
    "KnownPure",
    "PrivacyCurve",
    "ProgramSource",
    "QueryPlan",
    "RandomPrivacy",
    "SetupComparison",
    "SetupRecording",
    "Subject",
    "UnknownPair",
    "Verdict",
    "Witness",
    "audit",
    "bench_claim",
    "bit_claim",
    "compare",
    "plan_queries",
]
