"""Check a privacy claim from outside: black-box tests of a mechanism on two inputs.

`audit` stops as soon as it has seen enough. The testers of McMillan's thesis know their cost before they begin.
"""

from cloakwork.auditing.audit import ANNOUNCED, FEWEST_REPORTS, Audit, Verdict, Witness, audit
from cloakwork.auditing.curve import PrivacyCurve
from cloakwork.auditing.device_claim import HALF_NOISE, STRONG_SHIFT, DeviceClaim, device_claim
from cloakwork.auditing.device_source import DeviceListener, DeviceSource, Recording
from cloakwork.auditing.page import AuditReport, Subject
from cloakwork.auditing.program import ProgramSource
from cloakwork.auditing.testers import KnownPair, KnownPure, QueryPlan, RandomPrivacy, UnknownPair, plan_queries

__all__ = [
    "ANNOUNCED",
    "FEWEST_REPORTS",
    "HALF_NOISE",
    "STRONG_SHIFT",
    "Audit",
    "AuditReport",
    "DeviceClaim",
    "DeviceListener",
    "DeviceSource",
    "KnownPair",
    "KnownPure",
    "PrivacyCurve",
    "ProgramSource",
    "QueryPlan",
    "RandomPrivacy",
    "Recording",
    "Subject",
    "UnknownPair",
    "Verdict",
    "Witness",
    "audit",
    "device_claim",
    "plan_queries",
]
