"""Every form in which readings, events and recordings come in: CSV and Parquet files, pipes, frames."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cloakwork.readings.readings_file import (
    ALARM,
    HEADER,
    Frame,
    Problems,
    ReadingRow,
    ReadingsFile,
    write_readings,
)
from cloakwork.readings.recordings import Recordings, read_recordings
from cloakwork.readings.report_values import ReportForm, ReportReader, as_float, printable
from cloakwork.readings.text_column import TextColumn

if TYPE_CHECKING:
    from cloakwork.readings.frame_recovery import (
        FrameRecoverer,
        FrameRecovery,
        PartialCloak,
        partial_cloak,
        recovered_frames,
    )
    from cloakwork.readings.table_file import TIME_FORMS, TableFile, column_numbers, column_texts, column_times

__all__ = [
    "ALARM",
    "HEADER",
    "TIME_FORMS",
    "Frame",
    "FrameRecoverer",
    "FrameRecovery",
    "PartialCloak",
    "Problems",
    "ReadingRow",
    "ReadingsFile",
    "Recordings",
    "ReportForm",
    "ReportReader",
    "TableFile",
    "TextColumn",
    "as_float",
    "column_numbers",
    "column_texts",
    "column_times",
    "partial_cloak",
    "printable",
    "read_recordings",
    "recovered_frames",
    "write_readings",
]
_RECOVERY = {"FrameRecoverer", "PartialCloak", "FrameRecovery", "partial_cloak", "recovered_frames"}


def __getattr__(name: str) -> Any:
    """Load recovery, and the reader of tables with Arrow, when they are first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "frame_recovery" if name in _RECOVERY else "table_file"
    return getattr(import_module(f"cloakwork.readings.{module}"), name)
