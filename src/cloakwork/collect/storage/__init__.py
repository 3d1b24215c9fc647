"""The collector's store: readings, results, device reports, problem counts and tokens, in SQLite or PostgreSQL."""

from cloakwork.collect.storage.collector_store import Store, open_store
from cloakwork.collect.storage.records import (
    FAILED,
    Alarm,
    DeviceReport,
    Erased,
    FoundFault,
    FrameTime,
    Page,
    PhysicsCheck,
    ProblemCount,
    Reading,
    ReadingStatus,
    RecoveredSource,
    RecoveredTrack,
    Result,
    Role,
    Token,
    ZoneState,
    unix_ms,
)
from cloakwork.collect.storage.site_tables import PlanPeriod, plan_of

__all__ = [
    "FAILED",
    "Alarm",
    "DeviceReport",
    "Erased",
    "FoundFault",
    "FrameTime",
    "Page",
    "PhysicsCheck",
    "PlanPeriod",
    "ProblemCount",
    "Reading",
    "ReadingStatus",
    "RecoveredSource",
    "RecoveredTrack",
    "Result",
    "Role",
    "Store",
    "Token",
    "ZoneState",
    "open_store",
    "plan_of",
    "unix_ms",
]
