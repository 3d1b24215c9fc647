"""What runs on the device: standard library only, integers only, CPython and MicroPython alike."""

from cloakwork.sensor.table import WORD_BYTES, TableError, look_up

__all__ = ["WORD_BYTES", "TableError", "look_up"]
