"""What someone can say who kept every reading of a window: it takes seconds, and many screens may ask at once."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from threading import Lock

from cloakwork.collect.api.models import LongerBody
from cloakwork.collect.place import Watched
from cloakwork.collect.records import Reading
from cloakwork.collect.solve import Attack, attack, unix_ms
from cloakwork.collect.store import Store
from cloakwork.errors import InputError
from cloakwork.privacy import Profile
from cloakwork.site import clock_ms

MOST_READINGS = 200_000
PAGE = 5000
KEPT = 32
DAY = 86_400.0


class Attacks:
    """Works attacks out, and keeps the last few. A moment is worked out again when more readings of it have come."""

    def __init__(self, store: Store, *, clock: Callable[[], int] = unix_ms) -> None:
        self._store = store
        self._clock = clock
        self._kept: OrderedDict[tuple[str, int, int, int], Attack] = OrderedDict()
        self._lock = Lock()

    def at(self, watched: Watched, until: int | None) -> Attack | None:
        """All of the window that ends with `until`, or with the newest frame; None where it has no reading."""
        name = watched.name
        last = self._clock() + watched.ahead_ms if until is None else until
        frames = self._store.frame_times(name, until=last + 1, limit=1)
        if not frames:
            return None
        end = frames[0].time if until is None else until
        erasures = self._store.erasures(name)
        rows, cut = self._rows(name, max(1, end + 1 - watched.window_ms), end + 1)
        key = (name, end, len(rows), erasures)
        with self._lock:
            for old in [one for one in self._kept if one[0] == name and one[3] != erasures]:
                del self._kept[old]  # made from readings that were erased, perhaps
            if key in self._kept:
                return self._kept[key]
        try:
            found = replace(attack(watched, rows), cut=cut)
        except InputError:
            return None
        with self._lock:
            self._kept[key] = found
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found

    def _rows(self, site: str, since: int, until: int) -> tuple[list[Reading], bool]:
        """The last readings of a period, and whether there are more than are looked at."""
        found: list[Reading] = []
        after: str | None = None
        while True:
            page = self._store.readings(site, since=since, until=until, limit=PAGE, after=after, newest_first=True)
            found += page.items
            after = page.next
            if after is None or len(found) >= MOST_READINGS:
                return found[:MOST_READINGS], after is not None or len(found) > MOST_READINGS


def longer(watched: Watched) -> LongerBody:
    """What a day of readings comes to, or seven windows where that is longer."""
    claim = watched.plan.claim
    seconds = max(DAY, 7 * claim.window)
    readings = watched.schedule.most(clock_ms(seconds))
    epsilon = Profile(watched.cloak.frame_mu).times(readings).epsilon(claim.delta)
    return LongerBody(seconds=seconds, epsilon=epsilon)
