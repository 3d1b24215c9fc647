"""The moments of one site that are ready and wait to be recovered: newest first, and never too many."""

from collections.abc import Iterable


class Backlog:
    """Times to recover. Those that most sensors reported come first, of these the newest; beyond `most` the last go.

    Only times are kept: the readings are in the store, which also knows all that was not recovered yet. `overflowed`
    says that some times were let go.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.overflowed = False
        self._times: dict[int, bool] = {}

    def __len__(self) -> int:
        return len(self._times)

    def add(self, times: Iterable[tuple[int, bool]]) -> None:
        """Take in (time, whether most sensors reported it)."""
        self._times |= dict(times)
        surplus = len(self._times) - self.most
        if surplus > 0:
            self.overflowed = True
            for time in self._ordered()[-surplus:]:
                del self._times[time]

    def take(self, newest: int, size: int) -> list[int]:
        """What comes next: the first alone if it is later than `newest`, else up to `size`, in the order of time."""
        order = self._ordered()
        taken = order[:1] if order and order[0] > newest else order[:size]
        for time in taken:
            del self._times[time]
        return sorted(taken)

    def _ordered(self) -> list[int]:
        return sorted(self._times, key=lambda time: (self._times[time], time), reverse=True)
