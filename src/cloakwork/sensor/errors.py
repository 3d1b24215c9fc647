"""What can go wrong on the device. No message ever holds a reading, a word of noise or a key."""


class SensorError(Exception):
    """The parent of all errors of the device."""


class TableError(SensorError):
    """A table of noise that is not whole, or not the one that was planned."""


class WireError(SensorError):
    """A message or a topic that is not of the wire form."""


class StateError(SensorError):
    """The counter cannot be trusted to move forward: nothing is sent."""


class RandomError(SensorError):
    """There is no source of randomness that noise may come from."""
