"""The collector's store: readings, results, device reports, problem counts and tokens, in SQLite or PostgreSQL."""

from cloakwork.collect.storage.collector_store import Store, open_store
from cloakwork.collect.storage.records import (
    Alarm,
    DeviceReport,
    Erased,
    FoundFault,
    FrameState,
    Page,
    PhysicsCheck,
    ProblemCount,
    Reading,
    ReadingStatus,
    Role,
    Token,
    unix_ms,
)
from cloakwork.collect.storage.results import (
    FAILED,
    RESULT,
    RecoveredSource,
    RecoveredTrack,
    Result,
    ZoneState,
    pack_map,
)
from cloakwork.collect.storage.site_tables import PlanPeriod, plan_of

__all__ = [
    "FAILED",
    "RESULT",
    "Alarm",
    "DeviceReport",
    "Erased",
    "FoundFault",
    "FrameState",
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
    "pack_map",
    "plan_of",
    "unix_ms",
]
