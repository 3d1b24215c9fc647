"""Every form in which readings and events come in or go out."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cloakwork.readings.partial import PartialCloak, reporting
from cloakwork.readings.readings_file import Frame, Problems, ReadingsFile, write_readings
from cloakwork.readings.text_column import TextColumn

if TYPE_CHECKING:
    from cloakwork.readings.table_file import TIME_FORMS, TableFile, column_numbers, column_texts, column_times

__all__ = [
    "TIME_FORMS",
    "Frame",
    "PartialCloak",
    "Problems",
    "ReadingsFile",
    "TableFile",
    "TextColumn",
    "column_numbers",
    "column_texts",
    "column_times",
    "reporting",
    "write_readings",
]


def __getattr__(name: str) -> Any:
    """Load the reader of tables, and with it Arrow, when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("cloakwork.readings.table_file"), name)
