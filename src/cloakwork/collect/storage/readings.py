"""Stored readings, each kept once, however often it arrives; and frames: the readings of one time.

Times are Unix milliseconds; values are cloaked, in steps.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

from cloakwork.collect.storage.database import Database, Transaction
from cloakwork.errors import InputError, StoreAwayError

Item = TypeVar("Item")
Key = tuple[str, str, int]
STREAMED = 5000  # rows in memory while all are read
TRIES = 10
BEGINNING, END = -(2**63), 2**63 - 1
AT_TIMES = "time {among_rows}"
_COLUMNS = "site, sensor, seq, time, value, received"
_KEY = "item.value ->> 0, item.value ->> 1, (item.value ->> 2){whole}"
_INSERT = f"""
    INSERT INTO readings ({_COLUMNS})
    SELECT {_KEY}, (item.value ->> 3){{whole}}, (item.value ->> 4){{whole}}, (item.value ->> 5){{whole}}
    FROM {{rows}} WHERE true ON CONFLICT DO NOTHING RETURNING site, sensor, seq"""
_LOOK_UP = f"""
    SELECT site, sensor, seq, time, readings.value FROM {{rows}} CROSS JOIN readings
    WHERE (site, sensor, seq) = ({_KEY})"""
_COUNT = """
    INSERT INTO frames (site, time, readings, recovered) VALUES (:site, :time, :count, 0)
    ON CONFLICT (site, time) DO UPDATE SET readings = frames.readings + excluded.readings"""
_CONTRADICT = """
    UPDATE readings SET contradicted = :received
    WHERE site = :site AND sensor = :sensor AND seq = :seq AND contradicted IS NULL"""


class Reading(NamedTuple):
    """One cloaked reading; `time` is by the device's clock, `received` by the collector's."""

    site: str
    sensor: str
    seq: int
    time: int
    value: int
    received: int


class ReadingStatus(StrEnum):
    """The answer to a reading: new, the same message again, or another value under a known sequence number.

    Readings that are refused, because their device has sent too many, never reach the store.
    """

    NEW = "new"
    AGAIN = "again"
    ALARM = "alarm"
    REFUSED = "refused"


@dataclass(frozen=True)
class Alarm:
    """One sequence number with two values: noise was used twice, or someone else sends in the sensor's name.

    The store keeps the first value; `received` is when the first contradiction arrived.
    """

    sensor: str
    seq: int
    received: int


class FrameState(NamedTuple):
    """A time that has readings: how many, and of how many of them its last result was made."""

    time: int
    readings: int
    recovered: int = 0


@dataclass(frozen=True)
class Page(Generic[Item]):
    """One page of a long list. Pass `next` as `after` to get the following page; None marks the last one."""

    items: tuple[Item, ...]
    next: str | None


def period(since: int | None, until: int | None) -> dict[str, int]:
    """Return the parameters of since <= time < until."""
    return {"since": BEGINNING if since is None else since, "until": END if until is None else until}


def page_of(items: Sequence[Item], limit: int, cursor: str) -> Page[Item]:
    """Return a page; `cursor` points behind its last item."""
    return Page(tuple(items), cursor if len(items) == limit else None)


def parse_cursor(after: str, *kinds: type) -> list[Any]:
    """Return the parts of a cursor, which dots separate."""
    texts = after.split(".")
    try:
        parts = [kind(text) for kind, text in zip(kinds, texts, strict=True)]
    except ValueError:
        parts = [END + 1]
    if any(isinstance(part, int) and not BEGINNING <= part <= END for part in parts):
        raise InputError(
            f"after={after[:40]!r} is not a cursor: pass `next` of the previous page, or nothing.", after=after[:40]
        )
    return parts


class ReadingTable:
    """The readings of a store, and alarms about contradictory ones."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, rows: Sequence[Reading]) -> list[ReadingStatus]:
        """Store readings in one transaction, all or none; returns the status of each.

        Of two messages with one (site, sensor, seq) the first is kept. The second is `AGAIN` if it has the same time
        and value and `ALARM` if not; `alarms` then lists it.
        """
        if not rows:
            return []
        with self._database.writing() as transaction:
            return _add(transaction, rows)

    def page(
        self,
        site: str,
        *,
        sensor: str | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int = 1000,
        after: str | None = None,
        newest_first: bool = False,
    ) -> Page[Reading]:
        """Return readings by time, sensor and seq. Pages never repeat or skip a reading that was there before."""
        values: dict[str, Any] = {"site": site, "limit": limit, **period(since, until)}
        conditions = "time >= :since AND time < :until"
        if sensor is not None:
            conditions += " AND sensor = :only"
            values["only"] = sensor
        if after is not None:
            time, *rest = parse_cursor(after, int, str, int)
            values |= {"time": time, "sensor": rest[0], "seq": rest[1]}
            # SQLite finds the end of a period by its index, and would read everything up to the cursor
            values |= (
                {"until": min(time + 1, values["until"])} if newest_first else {"since": max(time, values["since"])}
            )
            conditions += f" AND (time, sensor, seq) {'<' if newest_first else '>'} (:time, :sensor, :seq)"
        order = "time DESC, sensor DESC, seq DESC" if newest_first else "time, sensor, seq"
        sql = f"SELECT {_COLUMNS} FROM readings WHERE site = :site AND {conditions} ORDER BY {order} LIMIT :limit"
        readings = [Reading(*row) for row in self._database.rows(sql, **values)]
        last = readings[-1] if readings else None
        return page_of(readings, limit, f"{last.time}.{last.sensor}.{last.seq}" if last else "")

    def iterate(self, site: str, since: int | None = None, until: int | None = None) -> Iterator[Reading]:
        """Yield every reading of a period by time, sensor and seq; holds little in memory and no lock."""
        if until is None:  # so that it ends although readings arrive
            newest = self._database.rows("SELECT max(time) FROM readings WHERE site = :site", site=site)
            until = (newest[0][0] or 0) + 1
        after: str | None = None
        while True:  # page by page: a long transaction would keep either database from cleaning up
            page = self.page(site, since=since, until=until, limit=STREAMED, after=after)
            yield from page.items
            after = page.next
            if after is None:
                return

    def counts(self, site: str, since: int, until: int, *, received: int) -> dict[str, int]:
        """Count the readings of a period by sensor, of those that arrived at or after `received`."""
        sql = """
            SELECT sensor, count(*) FROM readings WHERE site = :site AND time >= :since AND time < :until
            AND received >= :received GROUP BY sensor"""
        found = self._database.rows(sql, site=site, since=since, until=until, received=received)
        return dict(map(tuple, found))

    def newest(self, site: str, sensors: Sequence[str], until: int) -> dict[str, int]:
        """Return the time of the last reading of each sensor before `until`; sensors without one are left out."""
        sql = """
            SELECT item.value ->> 0, (SELECT max(time) FROM readings
                WHERE site = :site AND sensor = item.value ->> 0 AND time < :until) FROM {rows}"""
        found = self._database.rows(sql, site=site, until=until, rows=[[name] for name in sensors])
        return {name: time for name, time in found if time is not None}

    def alarms(self, site: str, *, each: int = 3) -> list[Alarm]:
        """Return sequence numbers with two values, a few of each sensor so that none hides the others; newest first."""
        sql = """
            SELECT sensor, seq, contradicted FROM (
                SELECT sensor, seq, contradicted, row_number() OVER (PARTITION BY sensor ORDER BY seq DESC) AS number
                FROM readings WHERE site = :site AND contradicted IS NOT NULL) AS alarms
            WHERE number <= :each ORDER BY contradicted DESC, sensor, seq DESC"""
        return [Alarm(*row) for row in self._database.rows(sql, site=site, each=each)]


class FrameTable:
    """The times of a store that have readings. A frame waits while it has more than its last result was made from."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def values(
        self, site: str, times: Sequence[int], counts: Callable[[int, str, int], bool] | None = None
    ) -> dict[int, dict[str, int]]:
        """Return the value of each sensor at each time; of several readings of a sensor, the one with the highest seq.

        A time without readings gets an empty dictionary. `counts(received, sensor, seq)` is whether a reading counts.
        """
        values: dict[int, dict[str, int]] = {time: {} for time in times}
        sql = f"""
            SELECT time, sensor, value, received, seq FROM readings WHERE site = :site AND {AT_TIMES}
            ORDER BY time, sensor, seq"""
        for time, sensor, value, received, seq in self._database.rows(sql, site=site, rows=list(values)):
            if counts is None or counts(received, sensor, seq):
                values[time][sensor] = value
        return values

    def times(
        self,
        site: str,
        since: int | None = None,
        until: int | None = None,
        limit: int = 100,
        *,
        newest_first: bool = True,
        every: int = 1,
    ) -> list[FrameState]:
        """Return the frames of a period; with `every`, only at its multiples."""
        sql = f"""
            SELECT time, readings, recovered FROM frames WHERE site = :site AND time >= :since AND time < :until
            AND time % :every = 0 ORDER BY time {"DESC" if newest_first else ""} LIMIT :limit"""
        limits = {"limit": limit, "every": every}
        return [FrameState(*row) for row in self._database.rows(sql, site=site, **limits, **period(since, until))]

    def waiting(self, site: str, now: int = END, shared: int = 1, limit: int = 1000) -> list[FrameState]:
        """Return the newest frames to recover: those up to `now`, and later ones with `shared` readings at least."""
        sql = """
            SELECT time, readings, recovered FROM frames WHERE site = :site AND recovered < readings AND time > 0
            AND (time <= :now OR readings >= :shared) ORDER BY time DESC LIMIT :limit"""
        found = self._database.rows(sql, site=site, now=now, shared=shared, limit=limit)
        return [FrameState(*row) for row in found]


def lock_frames(transaction: Transaction, site: str, times: Sequence[int]) -> set[int]:
    """Keep others from adding readings to these times until the transaction ends; returns those that have readings.

    Locks in the order of time, as adding readings does, so that two transactions never wait for each other.
    """
    sql = f"SELECT time FROM frames WHERE site = :site AND {AT_TIMES} ORDER BY time {{lock}}"
    return {row[0] for row in transaction.run(sql, site=site, rows=list(times))}


def _add(transaction: Transaction, rows: Sequence[Reading]) -> list[ReadingStatus]:
    first: dict[Key, Reading] = {}
    for row in rows:
        first.setdefault(row[:3], row)
    new, stored = _insert(transaction, first)
    # the row of a frame stays locked until the transaction ends. Erasing takes the same lock before it looks at the
    # readings, so it never overlooks one that is being stored
    counts = Counter((site, first[site, sensor, seq].time) for site, sensor, seq in new)
    frames = [{"site": site, "time": time, "count": counts[site, time]} for site, time in sorted(counts)]
    transaction.each(_COUNT, frames)
    statuses = []
    alarms: dict[Key, Reading] = {}
    for row in rows:
        key = row[:3]
        if key in new:
            new.remove(key)
            statuses.append(ReadingStatus.NEW)
        elif stored[key] == row[3:5]:
            statuses.append(ReadingStatus.AGAIN)
        else:
            statuses.append(ReadingStatus.ALARM)
            alarms.setdefault(key, row)
    transaction.each(_CONTRADICT, [alarms[key]._asdict() for key in sorted(alarms)])
    return statuses


def _insert(transaction: Transaction, first: dict[Key, Reading]) -> tuple[set[Key], dict[Key, tuple[int, int]]]:
    """Insert new readings; returns the keys of those, and the stored time and value under every key."""
    new: set[Key] = set()
    stored: dict[Key, tuple[int, int]] = {}
    # in the order of the keys: two transactions that insert the same ones must not wait for each other
    open_keys = sorted(first)
    for _ in range(TRIES):
        inserted = {
            (row[0], row[1], row[2]) for row in transaction.run(_INSERT, rows=[first[key] for key in open_keys])
        }
        new |= inserted
        stored |= {key: (first[key].time, first[key].value) for key in inserted}
        others = [key for key in open_keys if key not in inserted]
        for site, sensor, seq, time, value in transaction.run(_LOOK_UP, rows=others) if others else ():
            stored[site, sensor, seq] = (time, value)
        # keys that are neither new nor stored were erased between the two statements
        open_keys = [key for key in open_keys if key not in stored]
        if not open_keys:
            return new, stored
    raise StoreAwayError("readings are being erased as quickly as they arrive: try again.")
