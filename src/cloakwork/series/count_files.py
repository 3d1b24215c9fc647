"""Counts from a table of events, one row each, or from a table of counts, one row for each bin.

The bins, the names of the series and the limits are public: they come from the caller, never from the table.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cloakwork._checks import IntArray
from cloakwork.errors import InputError
from cloakwork.readings import TIME_FORMS, TableFile, TextColumn, column_numbers, column_texts, column_times
from cloakwork.series.bins import Bins
from cloakwork.series.counts import Counts, tally
from cloakwork.series.strategies import Contribution

_TIME_NAMES = (("time", "timestamp"), ("date", "datetime"))
_COUNT_NAMES = re.compile(r"^(n|number|total|events|visits|visitors)$|(^|[ _-])counts?$")
_LARGEST_COUNT = 2.0**53
_BAD_LINES = "too few or too many cells, a quotation mark that is not closed on the same line, or not UTF-8"


def count_events(
    source: object,
    bins: Bins,
    *,
    time: str | None = None,
    value: str | None = None,
    person: str | None = None,
    series_by: str | None = None,
    names: Sequence[str] = (),
    progress: Callable[[int], None] = lambda _: None,
    **limits: Any,
) -> Counts:
    """Count the rows of a table, or add up their values. Rows without a time, a number or a person are left out.

    `source` is a file of CSV, JSON Lines or Parquet, or a table of Arrow, Polars or pandas.
    `time`, `value`, `person` and `series_by` are names of columns, `names` the series of `series_by`. The limits are
    those of `tally`. `progress` receives the number of bytes read.
    """
    table = TableFile(source)
    columns = _find_columns(table, {"time": time, "value": value, "person": person, "series_by": series_by}, names)
    cells = table.read(list(columns.values()), progress)
    times = column_times(cells[columns["time"]], columns["time"])
    readable, form = times >= 0, f"its time is {TIME_FORMS}"
    options: dict[str, Any] = dict(limits)
    if value is not None:
        options["values"] = column_numbers(cells[columns["value"]], columns["value"])
        readable &= np.isfinite(options["values"])
        form += f"; column {value} holds numbers, such as 12.5"
    if person is not None:
        options["persons"] = column_texts(cells[columns["person"]], columns["person"])
        readable &= np.array([label != "" for label in options["persons"].labels] or [False])[options["persons"].codes]
        form += f"; column {person} is not empty"
    if series_by is not None:
        options |= {"series": _series_of_rows(cells[columns["series_by"]], series_by, names), "names": names}
    for name in ("values", "series"):
        if name in options:
            options[name] = options[name][readable]
    if person is not None:
        options["persons"] = TextColumn(options["persons"].codes[readable], options["persons"].labels)
    counts = tally(times[readable], bins, **options)
    bad = int((~readable).sum())
    first = f" (the first is {table.place(int(np.argmin(readable)))}; {form})" if bad else ""
    unread = {f"of {len(times):,} rows left out, because they cannot be read{first}": bad}
    lines = {f"lines left out: {_BAD_LINES}": table.left_out}
    return replace(
        counts,
        title=table.path.name,
        unit=value or "events",
        notes=_unused_note(table, columns),
        losses=unread | lines | dict(counts.losses),
    )


def read_counts(
    source: object,
    counts: str,
    bins: Bins,
    *,
    contribution: int = 1,
    time: str | None = None,
    series_by: str | None = None,
    names: Sequence[str] = (),
    progress: Callable[[int], None] = lambda _: None,
) -> Counts:
    """Read a column of whole numbers, each at its time.

    One event or person adds at most `contribution` to them, which the caller vouches for. Bins without a row count as
    0. The other arguments are those of `count_events`.
    """
    table = TableFile(source)
    columns = _find_columns(table, {"counts": counts, "time": time, "series_by": series_by}, names)
    cells = table.read(list(columns.values()), progress)
    if table.left_out:
        raise InputError(f"{table.left_out:,} lines of {table.path} cannot be read: {_BAD_LINES}. Repair the file.")
    amounts = column_numbers(cells[columns["counts"]], columns["counts"])
    n, times = bins.n, column_times(cells[columns["time"]], columns["time"])
    places, rest = np.divmod(times - bins.start, bins.every)
    which = np.zeros(len(amounts), dtype=np.int64)
    if series_by is not None:
        which = _series_of_rows(cells[columns["series_by"]], series_by, names)
    inside = (places >= 0) & (places < n)
    kept = inside & (which >= 0)
    slots = np.where(kept, which * n + places, -1 - np.arange(len(places)))
    repeated = np.ones(len(slots), dtype=bool)
    repeated[np.unique(slots, return_index=True)[1]] = False
    for bad, fault, remedy in (
        (~(np.abs(amounts) < _LARGEST_COUNT) | (amounts != np.rint(amounts)), f"{counts} is not a whole number", ""),
        (times < 0, f"its time cannot be read. Give {TIME_FORMS}", ""),
        (inside & (rest != 0), "its time is not the start of a bin. Counts need one row for each bin", ""),
        (repeated, "an earlier row has the same time. Counts need one row for each bin and series", "series_by"),
    ):
        if bad.any():
            place = table.place(int(np.argmax(bad)))
            raise InputError(f"{table.path.name}, {place}: {fault}.", place=place, remedy=remedy)
    values = np.zeros((max(len(names), 1), n))
    values.flat[slots[kept]] = amounts[kept]
    return Counts(
        values=values,
        contribution=Contribution(contribution),
        bins=bins,
        names=tuple(names),
        title=table.path.name,
        unit=counts.strip(),
        hides=f"This hides each event that adds at most {contribution:g} to the counts. It hides everything that one "
        "person did only if that adds no more.",
        losses={
            "rows outside the period": int((~inside).sum()),
            "rows of other series": int((inside & ~kept).sum()),
            "bins without a row, counted as 0": values.size - int(kept.sum()),
        },
    )


def _unused_note(table: TableFile, columns: Mapping[str, str]) -> tuple[str, ...]:
    """Name a column that seems to hold counts, although each row counts as one event."""
    likely = (name.strip() for name in table.names if name not in columns.values())
    unused = next((name for name in likely if _COUNT_NAMES.search(name.lower())), None)
    if unused is None or "value" in columns:
        return ()
    return (
        f"each row counts as one event, and column {unused} is not used: to add up its values, give value={unused}; if "
        f"it holds counts, one row for each bin, give counts={unused}.",
    )


def _find_columns(table: TableFile, wanted: Mapping[str, str | None], names: Sequence[str]) -> dict[str, str]:
    """Return the table's own name of each wanted column; the times default to the only column with a usual name."""
    if bool(wanted.get("series_by")) != bool(names) or len(set(names) - {""}) < len(names):
        raise InputError(
            "give the column of the series and their names, each once. Names are public: they are never taken from the "
            "data.",
            parameter="names",
        )
    columns: dict[str, str] = {}
    for parameter, name in wanted.items():
        usual = ([own for own in table.names if own.strip().lower() in forms] for forms in _TIME_NAMES)
        if name is not None:
            matches, what = [own for own in table.names if own.strip() == name.strip()], name[:64]
        elif parameter == "time":
            matches, what = next((found for found in usual if found), []), "time"
        else:
            continue
        if len(matches) != 1:
            raise InputError(
                f"{parameter}={what}: {table.path.name} has {'several such columns' if matches else 'no such column'}. "
                f"Name one of {', '.join(table.names)[:500]}.",
                parameter=parameter,
                column=name,
            )
        columns[parameter] = matches[0]
    return columns


def _series_of_rows(column: Any, name: str, names: Sequence[str]) -> IntArray:
    """Return the series of each row, -1 if its name is not one of `names`."""
    groups = column_texts(column, name)
    places = {known: place for place, known in enumerate(names)}
    of_label = np.array([places.get(label, -1) for label in groups.labels] or [-1], dtype=np.int64)
    return np.asarray(of_label[groups.codes])
