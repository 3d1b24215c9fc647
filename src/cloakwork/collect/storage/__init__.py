"""The collector's store: readings, results, device reports, problem counts and tokens, in SQLite or PostgreSQL."""

from cloakwork.collect.storage.collector_store import DEFAULT_URL, Store, open_store
from cloakwork.collect.storage.records import (
    FAILED,
    Alarm,
    DeviceReport,
    Erased,
    FrameTime,
    NewToken,
    Page,
    ProblemCount,
    Reading,
    ReadingStatus,
    RecoveredSource,
    Result,
    Role,
    Token,
    unix_ms,
)

__all__ = [
    "DEFAULT_URL",
    "FAILED",
    "Alarm",
    "DeviceReport",
    "Erased",
    "FrameTime",
    "NewToken",
    "Page",
    "ProblemCount",
    "Reading",
    "ReadingStatus",
    "RecoveredSource",
    "Result",
    "Role",
    "Store",
    "Token",
    "open_store",
    "unix_ms",
]
