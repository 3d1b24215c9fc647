"""The example for a thermal array, on MicroPython, with stand-ins for the board's own modules."""

import sys


class Anything:
    """Takes every call, and has 64 pixels at -0.25 and 20.5 degrees in turn."""

    STA_IF = 0

    def __init__(self, *_: object, **__: object) -> None: ...

    def active(self, _: bool) -> None: ...

    def connect(self, *_: str) -> None: ...

    def isconnected(self) -> bool:
        """At once."""
        return True

    def readfrom_mem(self, *_: int) -> bytes:
        """-1 quarter in twelve bits, then 82 quarters."""
        return 32 * bytes([0xFF, 0x0F, 82, 0])

    def settime(self) -> None: ...


class Module:
    """The modules that a board has and this build has not."""

    I2C = Pin = WLAN = Anything
    STA_IF = 0

    @staticmethod
    def settime() -> None:
        """As if the network had been asked."""


for name in ("machine", "network", "ntptime"):
    sys.modules[name] = Module()  # type: ignore[assignment]
import measure  # type: ignore[import-not-found]  # noqa: E402

print(measure.read())  # noqa: T201 - what the test reads
