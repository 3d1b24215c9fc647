"""Measuring: whether `read` gives readings, and what the status of a device says about it."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Fraction: TypeAlias = tuple[int, int]
    Measured: TypeAlias = Fraction | None

ONLINE, FAILING, INVALID, SLOW, SKIPPING = "online", "failing", "invalid", "slow", "skipping"
REASONS = {
    FAILING: "no reading could be taken",
    INVALID: "read() did not return two whole numbers, the second above 0",
    SLOW: "a reading took too long",
}
BLOCK = 16  # slots that the status judges together
TOLERATED = 3  # failed readings in a block of a device that still counts as working
SKIPPED = 1  # slots of such a block that slow storage may leave empty


def is_reading(result: "Any") -> bool:
    """Whether this is a fraction (numerator, denominator) of whole numbers, the second above 0."""
    try:
        numerator, denominator = result
    except Exception:
        return False
    return type(numerator) is int and type(denominator) is int and denominator > 0


def attempt(
    read: "Callable[[], Any]", explain: "Callable[[Any], object] | None" = None
) -> "tuple[Fraction | None, str]":
    """Measure: the reading and `online`, or None and whether `read` is `failing` or its result `invalid`.

    `explain` gets the error or the result, for a person beside the device.
    """
    cause: Any
    try:
        cause, state = read(), INVALID
        if is_reading(cause):
            return cause, ONLINE
    except Exception as problem:
        cause, state = problem, FAILING
    if explain is not None:
        explain(cause)
    return None, state


class MeasuringHealth:
    """Decides what the status says about measuring, after every 16 slots; after a start, as soon as that is clear.

    `state` is `online`, why more than 3 of the 16 readings failed, or `skipping` if 2 or more slots had none because
    the storage was slow. It does not follow single failures: where those depend on who is near, which they must not,
    the status would too, each time. Skipped slots depend on no reading, and do not count as failures.
    """

    def __init__(self) -> None:
        self.state = ONLINE
        self._starting = True
        self._count = 0
        self._failures = 0
        self._skipped = 0
        self._reason = ONLINE

    def add(self, state: str) -> None:
        """Count one slot: `online` with a reading, or why it has none."""
        self._count += 1
        if state == SKIPPING:
            self._skipped += 1
        elif state != ONLINE:
            self._failures += 1
            self._reason = state
        found = SKIPPING if self._skipped > SKIPPED else ONLINE
        if self._failures > TOLERATED:
            found = self._reason
        if self._count == BLOCK or (self._starting and found != ONLINE):
            self.state = found
        if self._count == BLOCK:
            self._starting = False
            self._count = self._failures = self._skipped = 0
