"""The store, as the rest of the collector sees it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import time_ns
from types import TracebackType
from typing import Self

from cloakwork.collect.records import (
    Alarm,
    Erased,
    FrameTime,
    NewToken,
    Page,
    Problem,
    Reading,
    Report,
    Result,
    Role,
    Token,
    Verdict,
)
from cloakwork.collect.store import erasing, frames, readings, reports, results, tokens
from cloakwork.collect.store.database import Database
from cloakwork.collect.store.migrations import migrate
from cloakwork.errors import InputError

DAY_MS = 86_400_000
DEFAULT_URL = "sqlite:///cloakwork.db"


def open_store(url: str = DEFAULT_URL, *, wait_s: float = 10.0, make: bool = True) -> "Store":
    """Open a store, make it if it is not there (SQLite: unless `make` is False), and bring it to this version.

    `url` is `sqlite:///file`, a bare path (SQLite too) or `postgresql://user:password@host/database`. `wait_s` is how
    long a call waits for a lock that someone else holds, or for a server, before it raises.
    """
    database = Database(url, wait_s=wait_s, make=make)
    try:
        migrate(database)
    except BaseException:
        database.close()
        raise
    return Store(database)


class Store:
    """Readings and what was recovered from them. Calls block; any thread may call; processes may share a store.

    A call that returns is durable. Any call may raise `StoreError`: of its children, `StoreAwayError` (with
    `StoreBusyError` and `StoreFullError`) says that the same call may work later; calling again is always safe. An
    argument that makes no sense raises `InputError`. Periods are since <= time < until, in Unix milliseconds.
    """

    def __init__(self, database: Database, *, now: Callable[[], int] = lambda: time_ns() // 1_000_000) -> None:
        self._database = database
        self._now = now

    def add_readings(self, rows: Sequence[Reading]) -> list[Verdict]:
        """Keep readings, all or none, in one transaction; says of each whether it was new.

        Of two messages with one (site, sensor, seq) the first is kept. The second is `AGAIN` if it has the same time
        and value and `ALARM` if not; `alarms` then lists it.
        """
        return readings.add(self._database, rows)

    def readings(
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
        """Readings in the order of time, sensor and seq. A page neither repeats nor skips what was there before it."""
        return readings.some(
            self._database,
            site,
            sensor=sensor,
            since=since,
            until=until,
            limit=limit,
            after=after,
            newest_first=newest_first,
        )

    def iterate(self, site: str, since: int | None = None, until: int | None = None) -> Iterator[Reading]:
        """Every reading of a period in the order of time, sensor and seq; holds a small part in memory and no lock."""
        return readings.every(self._database, site, since, until)

    def alarms(self, site: str, *, limit: int = 1000) -> list[Alarm]:
        """Sequence numbers that came with two values, the newest first."""
        return readings.alarms(self._database, site, limit)

    def alarms_of_each(self, site: str, *, each: int = 3) -> list[Alarm]:
        """The same, but a few of each sensor: one that raises very many does not hide another's."""
        return reports.alarms(self._database, site, each)

    def counted(self, site: str, since: int, until: int, *, received: int) -> dict[str, int]:
        """How many readings of a period there are of each sensor, of those that came at or after `received`."""
        return reports.counted(self._database, site, since, until, received)

    def frame(self, site: str, time: int) -> dict[str, int]:
        """The value of each sensor that has a reading of exactly this time; of several the one with the highest seq."""
        return frames.values(self._database, site, [time])[time]

    def frames(self, site: str, times: Sequence[int]) -> dict[int, dict[str, int]]:
        """What `frame` says of many times, in one go."""
        return frames.values(self._database, site, times)

    def frame_times(
        self,
        site: str,
        since: int | None = None,
        until: int | None = None,
        limit: int = 100,
        *,
        newest_first: bool = True,
        every: int | None = None,
    ) -> list[FrameTime]:
        """Times that have readings, each with the number of its sensors; with `every` only multiples of it."""
        return frames.times(
            self._database, site, since=since, until=until, limit=limit, newest_first=newest_first, every=every
        )

    def sites(self) -> list[str]:
        """Names of the sites that anything is stored of, sorted."""
        return frames.sites(self._database)

    def unsolved(self, site: str, limit: int = 100, newest_first: bool = True) -> list[int]:
        """Times that have readings but no result."""
        return frames.to_solve(self._database, site, frames.UNSOLVED, limit=limit, newest_first=newest_first)

    def outgrown(self, site: str, limit: int = 100, newest_first: bool = True) -> list[int]:
        """Times whose result is from fewer sensors than have readings by now, because some came late.

        A time is listed until a result from all of them is saved, or several results have left some out.
        """
        return frames.to_solve(self._database, site, frames.OUTGROWN, limit=limit, newest_first=newest_first)

    def erasures(self, site: str) -> int:
        """How often readings of a site were removed so far: ask before reading those that something is made from."""
        with self._database.reading() as connection:
            return erasing.count(connection, site)

    def save_results(self, rows: Sequence[Result], *, made_from: Mapping[int, Mapping[str, int]] | None = None) -> int:
        """Keep results, in place of older ones of the same site and time; says how many were kept.

        `made_from` is what `frames` said of their times, for results of one site. A result is dropped if some of that
        was erased while it was being computed (without `made_from`: if it is from more sensors than its time has in the
        store), or if it is from fewer sensors than the one that is there.
        """
        return results.save(self._database, rows, made_from)

    def results(
        self,
        site: str,
        *,
        since: int | None = None,
        until: int | None = None,
        limit: int = 100,
        after: str | None = None,
        newest_first: bool = False,
        maps: bool = False,
        failed: bool = False,
    ) -> Page[Result]:
        """Results in the order of time; without their maps (None), unless `maps`.

        Failures are left out, unless `failed`: one device can cause them without end, and must not crowd out the rest.
        """
        return results.some(
            self._database,
            site,
            since=since,
            until=until,
            limit=limit,
            after=after,
            newest_first=newest_first,
            maps=maps,
            failed=failed,
        )

    def latest(self, site: str, until: int | None = None) -> Result | None:
        """The result of the newest time (before `until`) that has one, with its map; frames that failed have none."""
        return results.newest(self._database, site, until)

    def result(self, site: str, time: int) -> Result | None:
        """The result of one time, with its map."""
        return results.one(self._database, site, time)

    def add_reports(self, rows: Sequence[Report]) -> None:
        """Keep what devices say of themselves; one that came before the one that is kept is history only."""
        reports.add(self._database, rows)

    def reports(self, site: str) -> list[Report]:
        """The latest report of each sensor, in the order of their names."""
        return reports.latest(self._database, site)

    def report_history(
        self,
        site: str,
        sensor: str | None = None,
        *,
        since: int | None = None,
        until: int | None = None,
        limit: int = 1000,
    ) -> list[Report]:
        """The last `limit` reports of a period (by when they were received), oldest first."""
        return reports.history(self._database, site, sensor, since=since, until=until, limit=limit)

    def add_problems(self, rows: Sequence[Problem]) -> None:
        """Add to the counts of bad messages."""
        reports.add_problems(self._database, rows)

    def problems(self, site: str | None = None) -> list[Problem]:
        """The counts of bad messages of one site, or of all; the most recent first."""
        return reports.problems(self._database, site)

    def new_token(self, role: Role, site: str | None = None, sensor: str | None = None, label: str = "") -> NewToken:
        """Make a token. The secret is `cw_` and 43 characters of base64url; only its SHA-256 is stored."""
        return tokens.new(self._database, role, site, sensor, label, now=self._now())

    def check_token(self, secret: str) -> Token | None:
        """Whose secret this is; None if nobody's or revoked. Takes the same time wherever a wrong one differs."""
        return tokens.check(self._database, secret)

    def tokens(self) -> list[Token]:
        """All tokens, revoked ones too, the oldest first."""
        return tokens.every(self._database)

    def revoke_token(self, id: str) -> bool:  # noqa: A002
        """From now on `check_token` refuses it; False if there is no such token. A revoked one stays as it is."""
        return tokens.revoke(self._database, id, now=self._now())

    def erase(self, site: str, sensor: str | None = None, since: int | None = None, until: int | None = None) -> Erased:
        """Remove the readings of a site, or of one sensor, in a period, and everything that was made from them.

        Results that used a removed reading go too; where other sensors' readings remain, the time is unsolved again.
        Reports, alarms and problems go by when they were received. Works in small steps, so that others can go on
        writing; what arrives meanwhile may stay.
        """
        return erasing.erase(self._database, site, sensor, since, until)

    def keep(self, site: str, days: float) -> Erased:
        """Remove what is older than so many days: readings and results by their time, the rest by when it came."""
        if not days > 0:
            raise InputError(f"days={days}: a store keeps more than 0 days; `erase` removes everything.", days=days)
        return erasing.erase(self._database, site, None, None, self._now() - round(days * DAY_MS))

    @property
    def is_file(self) -> bool:
        """Whether it is a file of SQLite, and not a server."""
        return self._database.is_sqlite

    @property
    def name(self) -> str:
        """Where it is, without a password."""
        return self._database.name

    def size(self) -> int:
        """Bytes that the store takes on the disk."""
        return self._database.size()

    def check(self) -> None:
        """Raise `StoreError` unless the database answers."""
        with self._database.reading() as connection:
            connection.exec_driver_sql("SELECT 1")

    def close(self) -> None:
        """Let go of the database; harmless a second time."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
