"""The code that runs on a device: standard library and integers only, on CPython and MicroPython alike."""

from cloakwork.sensor.errors import SensorError, StateError, TableError, WireError
from cloakwork.sensor.noise import CARRY_BITS, LARGEST_RENEWAL, OFFSET_PARTS, renewed, whole_steps
from cloakwork.sensor.table import WORD_BYTES, look_up

__all__ = [
    "CARRY_BITS",
    "LARGEST_RENEWAL",
    "OFFSET_PARTS",
    "WORD_BYTES",
    "SensorError",
    "StateError",
    "TableError",
    "WireError",
    "look_up",
    "renewed",
    "whole_steps",
]
