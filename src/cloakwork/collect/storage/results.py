"""Results: one form from the recovery of a frame to the store, the API and the events."""

import json
import logging
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field, PlainSerializer, TypeAdapter, computed_field
from pydantic.dataclasses import dataclass

from cloakwork._checks import FloatArray
from cloakwork.collect.storage.database import Database, Row, Transaction
from cloakwork.collect.storage.readings import (
    AT_TIMES,
    Page,
    lock_frames,
    page_of,
    parse_cursor,
    period,
)
from cloakwork.recovery import DOUBTFUL

FAILED = "failed"  # prefix of a failed result's status
# a result of a time without readings is dropped; none takes the place of one that did not fail, is settled, or followed
_SAVE = """
    INSERT INTO results (site, time, sensors, failed, solved, settled, labels, fit, body, map)
    VALUES (:site, :time, :sensors, :failed, :solved, :settled, :labels, :fit, :body, :map)
    ON CONFLICT (site, time) DO UPDATE SET
        sensors = excluded.sensors, failed = excluded.failed, solved = excluded.solved, settled = excluded.settled,
        labels = excluded.labels, fit = excluded.fit, body = excluded.body, map = excluded.map
    WHERE excluded.failed <= results.failed AND excluded.settled >= results.settled
        AND (results.labels IS NULL OR excluded.labels IS NOT NULL)
    RETURNING time"""
log = logging.getLogger(__name__)


def pack_map(weights: FloatArray) -> bytes:
    """Compress the weights of a map for the store."""
    return zlib.compress(np.asarray(weights, dtype="<f4").tobytes(), 6)


def _unpacked(packed: bytes) -> list[float]:
    """The numbers of a map, to six digits, and at most 20 after the point."""
    numbers = np.frombuffer(zlib.decompress(packed), dtype="<f4").astype(np.float64)
    scale = 10.0 ** (5 - np.floor(np.log10(np.maximum(np.abs(numbers), 1e-15))))
    rounded: list[float] = (np.rint(numbers * scale) / scale).tolist()
    return rounded


def _in_json(form: Any, kind: Any) -> PlainSerializer:
    """Another form of a value for clients."""
    return PlainSerializer(form, return_type=kind, when_used="json")


Measured = Annotated[float, _in_json(lambda number: number if math.isfinite(number) else None, float | None)]
Rounded = Annotated[float, _in_json(lambda number: float(f"{number:.6g}"), float)]
PackedMap = Annotated[bytes, _in_json(_unpacked, list[float])]


@dataclass(frozen=True)
class RecoveredSource:
    """A recovered source: place, coordinates, weight, radius of its vicinity and its probability.

    `label` is its track's, None where sources are not followed. `vicinity` are the numbers of the places where it
    is, if it exists, with a probability of 90 %; empty where the result is without its map.
    """

    place: str
    at: tuple[float, ...]
    weight: float
    radius: float
    probability: float
    label: int | None = None
    vicinity: tuple[int, ...] = ()


@dataclass(frozen=True)
class RecoveredTrack:
    """A source that is followed, at the time of a result.

    It has kept its `label` `since` that time. `probability` is that it exists, `same` that it is still the source with
    which the track began. `radius` is its vicinity's, None where it probably does not exist.
    """

    label: int
    since: int
    place: str
    at: tuple[float, ...]
    weight: float
    radius: float | None
    probability: float
    same: float


@dataclass(frozen=True)
class ZoneState:
    """Whether someone is in a zone: expected sources there, and the probability that there is any.

    `occupied` changes when that is sure, or more likely than not for the site's hold; `since` is when it last changed,
    null before its first change. Where the estimator gives no odds, `expected` is the weight found there, and the rest
    is null. `seen` is when the state was last the likelier one.
    """

    id: Annotated[str, Field(examples=["living"])]
    expected: Rounded
    probability: Rounded | None
    occupied: bool | None = None
    since: int | None = None
    seen: Annotated[int | None, Field(exclude=True)] = None


@dataclass(frozen=True)
class Result:
    """The result of one frame; `map` is null where it is left out, `zones` where nothing was recovered.

    `sensors` of the `expected` sensors had reported; `set_aside` names those that did not fit. `counts` is the
    probability of 0, 1, 2, ... sources, if the estimator gives it. `map` has a weight for each place. `solved` is when
    it was computed.

    `failed` says that recovery gave no result, for the reason in `status`; `doubtful`, that the readings fit the model
    so badly that the map is suspect. `settled` says that the result also uses the frames of one window after it;
    `tracks` are the sources that are followed, the likeliest first, empty where frames are recovered alone.
    """

    site: str
    time: int
    sensors: int
    expected: int
    estimator: str
    status: str
    gap: Measured
    fit: Measured
    set_aside: tuple[str, ...]
    counts: tuple[float, ...] | None
    sources: tuple[RecoveredSource, ...]
    map: PackedMap | None
    solved: int
    took_ms: float
    settled: bool = False
    labels: Annotated[int | None, Field(exclude=True)] = None  # the largest so far; None if recovered alone
    tracks: tuple[RecoveredTrack, ...] = ()
    zones: tuple[ZoneState, ...] | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def failed(self) -> bool:
        """Whether nothing could be recovered from the frame; `status` then gives the reason."""
        return self.status.startswith(FAILED)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def doubtful(self) -> bool:
        return bool(self.fit < DOUBTFUL)

    def light(self) -> "Result":
        """The same without its map and the vicinities of its sources, for lists and events."""
        return replace(self, map=None, sources=tuple(replace(source, vicinity=()) for source in self.sources))


RESULT = TypeAdapter(Result)


class ResultTable:
    """The results of a store: at most one for each site and time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(
        self, results: Sequence[Result], frames: Mapping[int, int] | None = None, *, erasures: int | None = None
    ) -> list[Result]:
        """Store results of one site; returns those that were kept. Marks `frames` as recovered from so many readings.

        By default a result's frame has as many readings as the result has sensors. Of two results of a time the later
        stays, but none takes the place of a better one: one that did not fail, is settled, or was followed. A result of
        a time without readings is dropped. Nothing is stored if readings of the site were erased since the count
        `erasures`: the results may be made from them.
        """
        latest = {result.time: result for result in sorted(results, key=lambda result: result.time)}
        if not latest:
            return []
        site, recovered = results[0].site, frames or {time: result.sensors for time, result in latest.items()}
        with self._database.writing() as transaction:
            if erasures is not None and _counted(transaction, site) != erasures:
                log.info("%s: dropped %d results: readings were erased meanwhile", site, len(results))
                return []
            held = lock_frames(transaction, site, sorted({*recovered, *latest}))
            kept = [
                result for time, result in latest.items() if time in held and transaction.run(_SAVE, **_row(result))
            ]
            rows = [{"site": site, "time": int(time), "count": recovered[time]} for time in sorted(recovered)]
            transaction.each("UPDATE frames SET recovered = :count WHERE site = :site AND time = :time", rows)
            return kept

    def page(
        self,
        site: str,
        *,
        since: int | None = None,
        until: int | None = None,
        limit: int = 100,
        after: str | None = None,
        newest_first: bool = False,
    ) -> Page[Result]:
        """Return results by time; without their maps (None).

        Failed ones are left out: one device can cause them without end, and must not crowd out the rest.
        """
        values = period(since, until) | {"limit": limit}
        if after is not None:
            [time] = parse_cursor(after, int)
            end = {"until": min(time, values["until"])} if newest_first else {"since": max(time + 1, values["since"])}
            values |= end
        sql = f"""
            SELECT body FROM results WHERE site = :site AND time >= :since AND time < :until AND failed = 0
            ORDER BY time {"DESC" if newest_first else ""} LIMIT :limit"""
        results = [_result(row) for row in self._database.rows(sql, site=site, **values)]
        return page_of(results, limit, str(results[-1].time) if results else "")

    def sampled(self, site: str, since: int, until: int, step: int) -> list[Result]:
        """Return the last result of each step of a period that did not fail, oldest first, without maps."""
        sql = """
            SELECT body FROM results WHERE site = :site AND time IN (
                SELECT max(time) FROM results WHERE site = :site AND time >= :since AND time < :until AND failed = 0
                GROUP BY (time - :since) / :step) ORDER BY time"""
        return [_result(row) for row in self._database.rows(sql, site=site, since=since, until=until, step=step)]

    def stamps(self, site: str, limit: int) -> list[tuple[int, int]]:
        """Return `time` and `solved` of the newest results that did not fail, oldest first; reads nothing else."""
        sql = "SELECT time, solved FROM results WHERE site = :site AND failed = 0 ORDER BY time DESC LIMIT :limit"
        return [(time, solved) for time, solved in self._database.rows(sql, site=site, limit=limit)][::-1]

    def at(self, site: str, times: Sequence[int]) -> list[Result]:
        """Return the results of these times, oldest first, without their maps."""
        sql = f"SELECT body FROM results WHERE site = :site AND {AT_TIMES} ORDER BY time"
        return [_result(row) for row in self._database.rows(sql, site=site, rows=list(times))] if times else []

    def oldest(self, site: str) -> int | None:
        """Return the time of the oldest result that did not fail."""
        time: int | None
        [(time,)] = self._database.rows("SELECT min(time) FROM results WHERE site = :site AND failed = 0", site=site)
        return time

    def latest(self, site: str, until: int | None = None) -> Result | None:
        """Return the newest result (before `until`) that did not fail, with its map."""
        return self._newest("body, map", "failed = 0", site, until)

    def last(self, site: str, until: int | None = None, *, followed: bool = False) -> Result | None:
        """Return the newest result (before `until`) that did not fail, or was even followed, without its map."""
        return self._newest("body", "labels IS NOT NULL" if followed else "failed = 0", site, until)

    def get(self, site: str, time: int) -> Result | None:
        """Return the result of one time, with its map."""
        found = self._database.rows(
            "SELECT body, map FROM results WHERE site = :site AND time = :time", site=site, time=time
        )
        return _result(found[0]) if found else None

    def erasures(self, site: str) -> int:
        """Count the erasures at a site; ask before reading what a result is computed from."""
        return sum(row[0] for row in self._database.rows("SELECT count FROM erasures WHERE site = :site", site=site))

    def _newest(self, columns: str, condition: str, site: str, until: int | None) -> Result | None:
        sql = f"""
            SELECT {columns} FROM results WHERE site = :site AND time < :until AND {condition}
            ORDER BY time DESC LIMIT 1"""
        found = self._database.rows(sql, site=site, until=period(None, until)["until"])
        return _result(found[0]) if found else None


def _counted(transaction: Transaction, site: str) -> int:
    """The number of erasures at a site, locked: whoever erases readings has counted that, or waits for us and then
    erases the results too.
    """
    transaction.run("INSERT INTO erasures (site, count) VALUES (:site, 0) ON CONFLICT DO NOTHING", site=site)
    [(count,)] = transaction.run("SELECT count FROM erasures WHERE site = :site {lock}", site=site)
    return int(count)


def _row(result: Result) -> dict[str, Any]:
    """The columns of a result; what is not a column of its own is in the body, exactly."""
    own = {
        name: getattr(result, name)
        for name in ("site", "time", "sensors", "failed", "solved", "settled", "labels", "map")
    }
    body = json.dumps({name: value for name, value in vars(result).items() if name != "map"}, default=vars)
    return own | {"fit": None if math.isnan(result.fit) else result.fit, "body": body}


def _result(row: Row) -> Result:
    return RESULT.validate_python({**json.loads(row[0]), "map": row[1] if len(row) > 1 else None})
