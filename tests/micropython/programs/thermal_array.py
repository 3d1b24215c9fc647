"""The example for a thermal array, on MicroPython, with stand-ins for the board's own modules."""

import sys


class Anything:
    """Accepts every call, and has 64 pixels that alternate between -0.25 and 20.5 degrees."""

    STA_IF = 0

    def __init__(self, *_: object, **__: object) -> None: ...

    def active(self, _: bool) -> None: ...

    def connect(self, *_: str) -> None: ...

    def isconnected(self) -> bool:
        """Return at once."""
        return True

    def readfrom_mem(self, *_: int) -> bytes:
        """-1 quarter in twelve bits, then 82 quarters."""
        return 32 * bytes([0xFF, 0x0F, 82, 0])


class Module:
    """Modules that a board has and this build lacks."""

    I2C = Pin = WLAN = Anything
    STA_IF = 0


for name in ("machine", "network"):
    sys.modules[name] = Module()  # type: ignore[assignment]
import measure  # type: ignore[import-not-found]  # noqa: E402

print(measure.read())  # noqa: T201 - what the test reads
