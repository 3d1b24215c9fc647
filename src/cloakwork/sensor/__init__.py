"""The code that runs on a device: standard library and integers only, on CPython and MicroPython alike."""

from cloakwork.sensor.errors import SensorError, StateError, TableError, WireError
from cloakwork.sensor.table import WORD_BYTES, look_up

__all__ = ["WORD_BYTES", "SensorError", "StateError", "TableError", "WireError", "look_up"]
