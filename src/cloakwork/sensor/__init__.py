"""What runs on the device: standard library only, integers only, CPython and MicroPython alike."""

from cloakwork.sensor.errors import SensorError, StateError, TableError, WireError
from cloakwork.sensor.table import WORD_BYTES, look_up

__all__ = ["WORD_BYTES", "SensorError", "StateError", "TableError", "WireError", "look_up"]
