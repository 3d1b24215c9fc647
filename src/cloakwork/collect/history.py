"""Frames of the past, from a store."""

from collections.abc import Iterator

from cloakwork.collect.place import as_frame
from cloakwork.collect.store import Store
from cloakwork.errors import InputError
from cloakwork.readings import Frame, Problems

AT_ONCE = 256  # frames that are in memory at once


class StoredFrames:
    """The frames of a site in a period, in the order of time; readings whose clock was not set are part of none.

    During and after the iteration `rows` says how many readings were read and `problems` which were left out and why.
    """

    def __init__(
        self, store: Store, site: str, sensor_ids: tuple[str, ...], since: int | None = None, until: int | None = None
    ) -> None:
        self.rows = 0
        self.problems = Problems()
        self._store = store
        self._site = site
        self._index = {name: row for row, name in enumerate(sensor_ids)}
        self._since, self._until = max(since or 0, 1), until

    @property
    def span(self) -> tuple[int, int]:
        """The times of the first and the last frame; refused where there is none."""
        ends = [self._times(self._since, 1, newest_first=newest) for newest in (False, True)]
        if not all(ends):
            known = ", ".join(self._store.sites()) or "none"
            raise InputError(
                f"the store has no reading of {self._site} in this period; it has readings of: {known}. Check --since "
                "and --until, and that this is the right store.",
                site=self._site,
            )
        return ends[0][0], ends[1][0]

    def __iter__(self) -> Iterator[Frame]:
        since = self._since
        while times := self._times(since, AT_ONCE, newest_first=False):
            for time, values in self._store.frames(self._site, times).items():
                self.rows += len(values)
                strangers = sum(name not in self._index for name in values)
                if strangers:
                    self.problems.counts["unknown sensor"] += strangers
                if strangers < len(values):
                    yield as_frame(time, values, self._index)
            since = times[-1] + 1

    def _times(self, since: int, limit: int, *, newest_first: bool) -> list[int]:
        found = self._store.frame_times(self._site, since, self._until, limit, newest_first=newest_first)
        return [frame.time for frame in found]
