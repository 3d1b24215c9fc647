"""The observer that a claim is about: all sensors of a network, or one of them."""

from enum import StrEnum


class Scope(StrEnum):
    """Against whom a source is hidden."""

    NETWORK = "network"
    """Someone who sees the readings of all sensors."""
    SENSOR = "sensor"
    """Someone who sees the readings of one sensor only."""
