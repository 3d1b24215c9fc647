"""`cloakwork export`: stored readings, or sources recovered from them, as files."""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Annotated

from cloakwork.cli.arguments import DEFAULT_STORE, TABLES, ExistingStore, Since, SiteName, Until, option, writes
from cloakwork.cli.files import form_of, written
from cloakwork.cli.output import counted, note, working
from cloakwork.collect import Result, Store, open_store, plan_of, stored_span
from cloakwork.readings import READING_COLUMNS, Row, table_writer

GROUP = 20_000  # rows that are in memory and written at once
PAGE = 500
RESULTS = {
    "time": datetime,
    "sensors": int,
    "expected": int,
    "settled": int,
    "label": int,
    "place": str,
    "x": float,
    "y": float,
    "weight": float,
    "radius": float,
    "probability": float,
    "same": float,
    "status": str,
    "gap": float,
    "fit": float,
    "set_aside": str,
    "estimator": str,
    "solved": datetime,
}


def export(
    site: SiteName,
    out: Annotated[Path, option("File to write: .csv, .jsonl or .parquet.", "--out", callback=writes(*TABLES))],
    results: Annotated[bool, option("Write recovered sources instead of readings.", "--results")] = False,
    since: Since = None,
    until: Until = None,
    store: ExistingStore = DEFAULT_STORE,
) -> None:
    """Write readings, or what was recovered from them, to a file."""
    with open_store(store, make=False) as opened:
        first, last = stored_span(opened, site, since, until)
        about = {"site": site, "plans": [vars(period.scale) for period in opened.plans.periods(site)]}
        found, rows = (_results if results else _readings)(opened, site, since, until), 0
        with (
            working("exporting", last - first + 1, stopped="stopped, nothing written") as progress,
            written(out, mode=0o600) as file,
            table_writer(file, form_of(out), RESULTS if results else READING_COLUMNS, about) as write,
        ):
            while group := list(islice(found, GROUP)):
                write(group)
                rows += len(group)
                progress(group[-1][0] - first)
    note(f"wrote {counted(rows, 'row')} to {out}")


def _readings(store: Store, site: str, since: int | None, until: int | None) -> Iterator[Row]:
    periods = store.plans.periods(site)
    for one in store.readings.iterate(site, since, until):
        yield plan_of(periods, one.received, one.sensor, one.seq).row(one.time, one.sensor, one.seq, one.value)


def _results(store: Store, site: str, since: int | None, until: int | None) -> Iterator[Row]:
    after: str | None = None
    while True:
        page = store.results.page(site, since=since, until=until, limit=PAGE, after=after)
        for result in page.items:
            yield from _spots(result)
        after = page.next
        if after is None:
            return


def _spots(result: Result) -> Iterator[Row]:
    """One row a source, and one for a frame in which none was found."""
    start = (result.time, result.sensors, result.expected, int(result.settled))
    same = {track.label: track.same for track in result.tracks}
    aside = " ".join(result.set_aside)
    end = (result.status, result.gap, result.fit, aside, result.estimator, result.solved)
    if not result.sources:
        yield (*start, None, "", None, None, 0.0, None, None, None, *end)
    for spot in result.sources:
        x, y = (*spot.at, None, None)[:2]
        known = None if spot.label is None else same.get(spot.label)
        yield (*start, spot.label, spot.place, x, y, spot.weight, spot.radius, spot.probability, known, *end)
