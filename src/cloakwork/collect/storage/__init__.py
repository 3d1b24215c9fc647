"""The collector's store: readings, results, device reports, problem counts and tokens, in SQLite or PostgreSQL."""

from cloakwork.collect.storage.collector_store import Erased, Store, open_store
from cloakwork.collect.storage.database import unix_ms
from cloakwork.collect.storage.readings import Alarm, FrameState, Page, Reading, ReadingStatus
from cloakwork.collect.storage.results import (
    FAILED,
    RESULT,
    RecoveredSource,
    RecoveredTrack,
    Result,
    ZoneState,
    pack_map,
)
from cloakwork.collect.storage.site_tables import (
    DeviceReport,
    FoundFault,
    PhysicsCheck,
    PlanPeriod,
    ProblemCount,
    plan_of,
)
from cloakwork.collect.storage.tokens import Role, Token

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
