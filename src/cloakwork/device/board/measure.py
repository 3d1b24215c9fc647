"""Measure once. This is the file to edit.

`read` returns a fraction in the site's unit as two whole numbers, for example (85, 4) for 21.25. It has only a part of
a slot to do so (`late_ms` in device.json), and must measure within the call: an earlier result is too old. If it
raises an error or takes longer, a public constant is sent in its place (the site's baseline), with noise like any other
reading.

On a board this is also the place to connect to the network, before the first reading. The device sets the clock.
"""


def read() -> tuple[int, int]:
    """The reading, as (numerator, denominator)."""
    raise NotImplementedError("write how this device measures")
