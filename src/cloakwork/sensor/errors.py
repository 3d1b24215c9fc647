"""Errors of the device. No message ever holds a reading, a word of noise or a key."""


class SensorError(Exception):
    """Base of all errors of the device."""


class TableError(SensorError):
    """The noise table is incomplete, or not the planned one."""


class WireError(SensorError):
    """A message or a topic does not have the wire form."""


class StateError(SensorError):
    """The device cannot be sure that its counter moves forward, so it sends nothing."""


class RandomError(SensorError):
    """There is no source of randomness that is good enough for noise."""
