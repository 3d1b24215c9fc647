"""What someone can say who kept every reading, kept for a while: it takes seconds, and many screens may ask at once."""

from collections import OrderedDict
from threading import Lock

from cloakwork.collect.place import Watched
from cloakwork.collect.solve import Attack, attack
from cloakwork.collect.store import Store
from cloakwork.errors import InputError

MOST_READINGS = 200_000
KEPT = 32


class Attacks:
    """Works attacks out, and keeps the last few. A moment is worked out again when more readings of it have come."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[tuple[str, int, int], Attack] = OrderedDict()
        self._lock = Lock()

    def at(self, watched: Watched, until: int | None) -> Attack | None:
        """All of the window that ends with `until`, or with the newest frame; None where it has no reading."""
        name = watched.name
        frames = self._store.frame_times(name, until=None if until is None else until + 1, limit=1)
        if not frames:
            return None
        end = frames[0].time if until is None else until
        rows = list(self._store.iterate(name, max(1, end + 1 - _window_ms(watched)), end + 1))
        key = (name, end, len(rows))
        with self._lock:
            if key in self._kept:
                return self._kept[key]
        try:
            found = attack(watched, rows)
        except InputError:
            return None
        with self._lock:
            self._kept[key] = found
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found


def _window_ms(watched: Watched) -> int:
    """The window, or the last part of it where it would have too many readings."""
    frames = max(1, MOST_READINGS // len(watched.ids))
    return min(watched.window_ms, frames * watched.schedule.period_ms)
