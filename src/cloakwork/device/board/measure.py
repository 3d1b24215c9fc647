"""Measure once. This is the file to edit.

`read` returns a fraction in the site's unit as two whole numbers, for example (85, 4) for 21.25. The second number is
always the same. `read` has only a part of a slot (`late_ms` in device.json), and must measure within the call: an
earlier result is too old. If it raises an error or takes longer, a public constant is sent in its place (the site's
baseline), with noise like any other reading.

The noise covers as much rounding as `resolution` in the site file states: the step of the hardware. So return what the
hardware gives, or the mean of a fixed number of its values, or either times a constant (and its step times as much):
cloakwork.sensor.exact has `mean` and `rescaled`. Anything that rounds again, such as //, adds its own step to the
`resolution`. Which values count must not depend on the values, nor on earlier readings.

On a board this is also the place to connect to the network, before the first reading. The device sets the clock.
"""


def read() -> tuple[int, int]:
    """The reading, as (numerator, denominator)."""
    raise NotImplementedError("measure.py is as provision wrote it")
