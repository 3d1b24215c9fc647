"""Unix time from a time server (SNTP, RFC 4330), with a bound on its error.

A request leaves at `sent` and its answer is here at `now`, both by the device's own oscillator. The server received the
request after it left, and answered before the answer was here. So Unix time minus own time lies between
`answered - now` and `received - sent`, up to the server's own error: half the round trip either way, however
unevenly the two directions share it. From then on the bounds widen by the most that the oscillator may drift.

Each answer can only narrow the bounds. So the answer with the shortest round trip counts. An answer outside of them
contradicts the device's own oscillator: the answer is forged or the server wrong, or the oscillator stood still. The
device cannot know which, so it does not know the time. It keeps its bounds, which widen, and believes the next answer
that lies within them entirely: a true answer does only if they hold the true time, and a forged one moves the time no
further than they allow.
"""

import os

from cloakwork.sensor.clock import DRIFT, Clock, board_ticks, suspended_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class DatagramTransport(Protocol):
        """Datagrams to and from one address; no call waits, except for the look-up of a name in `open`."""

        host: str

        def open(self) -> None:
            """Look up the address, and begin anew; raises OSError."""

        def send(self, data: bytes) -> None:
            """Send one datagram; raises OSError."""

        def receive(self) -> bytes:
            """Return a datagram that has arrived, or nothing; raises OSError."""

        def close(self) -> None:
            """Close the socket."""


PATIENCE = 1000  # milliseconds to wait for an answer
LONGEST_PAUSE = 64000  # milliseconds between requests until an answer is good enough
SHORTEST, LONGEST = 16000, 1024000  # milliseconds between requests, once the time is known
_1900_TO_2024 = 3913056000  # seconds; servers count from 1900 with 32 bits, which wrap in 2036
_1970_TO_2024 = 1704067200


class NetworkTime:
    """Unix time, known to within `allowed` milliseconds or not at all."""

    def __init__(
        self,
        link: "DatagramTransport",
        allowed: int,
        note: "Callable[[str], None]",
        *,
        ticks: "Callable[[], int]" = board_ticks,
        synchronised: "Callable[[int], None] | None" = None,
    ) -> None:
        self._link = link
        self._allowed = allowed
        self._note = note
        self._synchronised = synchronised
        self._clock = Clock(0, ticks)
        self._suspended = suspended_ms()
        self._bounds: tuple[int, int, int] | None = None  # Unix minus own time: lowest, highest, and when known
        self._doubted = False  # whether an answer contradicts the bounds, and none has agreed since
        self._open = False
        self._nonce = b""
        self._sent = -1  # when the request under way left
        self._next = 0  # when to send another
        self._often = min(LONGEST, max(SHORTEST, allowed * DRIFT // 4))
        self._pause = 2000
        self._said = ""

    def unix(self) -> int:
        """Unix milliseconds, or 0 unless they are known to within what is allowed."""
        now = self._clock.now()
        low, high = self._at(now)
        return now + (low + high) // 2 if not self._doubted and self._error(low, high) <= self._allowed else 0

    def error(self) -> int:
        """Return the largest error of `unix` in milliseconds."""
        return self._error(*self._at(self._clock.now()))

    def serve(self, ask: bool) -> int:
        """Receive an answer, or send a request if one is due and `ask`; returns how long to wait, in milliseconds.

        When requests leave depends on the clock and on the server alone.
        """
        now = self._clock.now()
        try:
            if self._nonce:
                self._receive(now)
            elif ask and now >= self._next:
                self._request(now)
        except OSError as problem:
            self._nonce, self._open = b"", False
            self._say(
                f"cannot reach the time server {self._link.host} ({problem}): check the network, or provision this "
                "device with another"
            )
        if self._nonce:
            return 1
        return max(1, self._next - now) if ask else LONGEST

    def drop(self) -> None:
        """Give up the request under way: measuring would delay its answer by as long as a reading takes."""
        self._nonce = b""

    def close(self) -> None:
        """Close the socket."""
        self._link.close()

    def _request(self, now: int) -> None:
        self._next = now + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        if not self._open or not self.unix():  # looking up a name may take seconds: not while the time is good
            self._link.open()
            self._open = True
        while self._link.receive():
            pass
        nonce = os.urandom(8)
        self._sent = self._clock.now()
        self._link.send(b"\x23" + bytes(39) + nonce)  # version 4, client; an answer must repeat the nonce
        self._nonce = nonce

    def _receive(self, now: int) -> None:
        answer = self._link.receive()
        if len(answer) >= 48 and answer[0] & 7 == 4 and answer[24:32] == self._nonce:
            self._nonce = b""
            self._say(self._judge(answer, now))
        elif now - self._sent > PATIENCE:
            self._nonce = b""
            self._say("the time server does not answer")

    def _judge(self, answer: bytes, now: int) -> str:
        """Narrow the bounds by an answer, or say what is wrong with it."""
        if answer[1] == 0:
            self._next, self._pause = now + LONGEST, LONGEST
            return "the time server refuses this device"
        if answer[0] >> 6 == 3 or answer[1] > 15:
            return "the time server does not know the time itself"
        received, answered = _milliseconds(answer[32:40]), _milliseconds(answer[40:48])
        delay, dispersion = int.from_bytes(answer[4:8], "big"), int.from_bytes(answer[8:12], "big")
        error = ((delay // 2 + dispersion) * 1000 >> 16) + 2  # and whole milliseconds on both sides
        low, high = answered - now - error, received - self._sent + error
        if answered < received or low > high:
            return "the time server answers with impossible times"
        known = self._at(now)
        if low > known[1] or high < known[0] or (self._doubted and not known[0] <= low <= high <= known[1]):
            self._doubted = True
            return "the time server contradicts the clock of this device: it does not measure until they agree"
        self._doubted = False
        low, high = max(low, known[0]), min(high, known[1])
        first = self._bounds is None
        self._bounds = low, high, now
        if first and self._synchronised is not None:
            self._synchronised(now + low)
        error = self._error(low, high)
        if 2 * error <= self._allowed:
            self._next, self._pause = now + self._often, 2000
        if error > self._allowed:
            return f"the time is known to within {error} ms only, and the plan allows {self._allowed}"
        return "the time is known"

    def _at(self, now: int) -> "tuple[int, int]":
        """Lowest and highest Unix time minus own time."""
        if suspended_ms() - self._suspended > 1:
            self._suspended, self._bounds = suspended_ms(), None  # meanwhile the own clock stood still
        if self._bounds is None:
            return -(1 << 62), 1 << 62
        low, high, since = self._bounds
        drift = (now - since) // DRIFT + 1
        return low - drift, high + drift

    @staticmethod
    def _error(low: int, high: int) -> int:
        return (high - low + 1) // 2 + 1

    def _say(self, what: str) -> None:
        """Report a change once."""
        if what != self._said:
            self._said = what
            self._note(what)


def _milliseconds(stamp: bytes) -> int:
    """Unix milliseconds of a time stamp of NTP, from 2024 to 2160."""
    seconds = (int.from_bytes(stamp[:4], "big") - _1900_TO_2024) % (1 << 32) + _1970_TO_2024
    return seconds * 1000 + (int.from_bytes(stamp[4:], "big") * 1000 >> 32)
