"""Series from a file of events, one row each, or from a file of counts, one row for each bin.

The bins, the names of the series and the limits are public: they come from the caller, never from the file.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from cloakwork._checks import IntArray, count
from cloakwork.errors import InputError
from cloakwork.privacy import choose
from cloakwork.readings import TIME_FORMS, TableFile, TextColumn, column_numbers, column_texts, column_times
from cloakwork.series.bins import Bins
from cloakwork.series.bounded_series import BoundedSeries, Losses, tally

_TIME_NAMES = (("time", "timestamp"), ("date", "datetime"))
_COUNT_NAMES = re.compile(r"^(n|number|total|events|visits|visitors)$|(^|[ _-])counts?$")
_MOST_NAMES_SHOWN = 10
_LARGEST_COUNT = 2.0**53
_BAD_LINES = "too few or too many cells, a quotation mark that is not closed on the same line, or not UTF-8"


@dataclass(frozen=True, eq=False, kw_only=True)
class CountedSeries:
    """Bounded series counted from a file, with what a reader of the publication needs to know.

    `title` is the name of the file, `hides` what the claim covers, in a sentence, and `level` "event"
    or "user". One series without a name has no `names`; counts that were read in the order of their rows have
    no `bins`. `unit` is what the values count, for the axis of a picture. `bound` is the name of the parameter that
    limits what one event or person adds; empty if each event counts 1. `unused_counts` is a column whose name
    suggests counts, although each row was counted as one event.
    """

    series: BoundedSeries
    title: str
    hides: str
    level: str
    names: tuple[str, ...] = ()
    bins: Bins | None = None
    unit: str = "events"
    bound: str = ""
    time_column: str | None = None
    unused_counts: str | None = None

    @property
    def limited(self) -> bool:
        """Whether limits may have reduced the data. That limits exist is public; their effect is not."""
        return self.level != "event" or self.series.step is not None

    def fullest(self, epsilon: float) -> str:
        """Name the series with nearly the largest sum, by a private choice (`choose`) that spends epsilon and no delta.

        An event, or everything that one person did, changes the sums by the contribution in all.
        """
        if len(self.names) < 2:
            remedy = {} if self.names else {"remedy": "series_by"}
            raise InputError("there is one series: give several names to choose from.", **remedy)
        scores = [sum(map(Fraction, values.tolist())) for values in self.series.values]
        return self.names[choose(scores, epsilon=epsilon, sensitivity=self.series.contribution * (1 + 1e-9))]

    @property
    def remarks(self) -> list[str]:
        """Sentences about data that were left out or reduced. Not private."""
        losses = self.series.losses
        rows = f"of {losses.rows:,} rows"
        zeros = [number for number, values in enumerate(self.series.values) if not values.any()]
        empty = ", ".join(self.names[number] for number in zeros[:_MOST_NAMES_SHOWN]) if self.names else "the series"
        more = f" and {len(zeros) - _MOST_NAMES_SHOWN} more" if len(zeros) > _MOST_NAMES_SHOWN else ""
        facts = (
            (losses.unreadable, f"{rows} left out, because they cannot be read{losses.advice}"),
            (losses.lines, f"of the lines left out: {_BAD_LINES}"),
            (losses.outside, f"{rows} left out, because they are outside the period"),
            (losses.other_names, f"{rows} left out, because their name is not one of the given names"),
            (losses.clipped, f"{rows} clipped, because their value is below 0 or above the limit"),
            (
                losses.over_limit,
                f"{rows} not counted, or not in full, because they are above the limit of their person",
            ),
            (losses.empty_bins, "of the bins without a value, counted as 0"),
            (
                len(zeros),
                f"of the series with nothing in this period ({empty}{more}): what is published of it is noise",
            ),
        )
        remarks = [f"{number:,} {text}" for number, text in facts if number]
        percent = 100 * losses.lower
        direction = "lower" if percent >= 0 else "higher"
        total = f"the total of what counts is {abs(percent):.3g} % {direction} than that of the data"
        return [*remarks, total] if percent else remarks


def count_events(
    source: object,
    bins: Bins,
    *,
    time: str | None = None,
    value: str | None = None,
    most_per_event: float | None = None,
    step: float | None = None,
    person: str | None = None,
    most_per_person: float | None = None,
    series_by: str | None = None,
    names: Sequence[str] = (),
    progress: Callable[[int], None] = lambda _: None,
) -> CountedSeries:
    """Count the rows of a file, or add up their values. Rows without a time, a number or a person are left out.

    `source` is a file of CSV, JSON Lines, Parquet or Arrow, or a table of Arrow, Polars or pandas.
    `time`, `value`, `person` and `series_by` are names of columns, `names` the series of `series_by`. The limits are
    those of `tally`. `progress` receives the number of bytes read.
    """
    table = TableFile(source)
    columns = _find_columns(table, {"time": time, "value": value, "person": person, "series_by": series_by}, names)
    cells = table.read(list(columns.values()), progress)
    times = column_times(cells[columns["time"]], columns["time"])
    readable, form = times >= 0, f"its time is {TIME_FORMS}"
    values = persons = None
    if value is not None:
        values = column_numbers(cells[columns["value"]], columns["value"])
        readable &= np.isfinite(values)
        form += f"; column {value} holds numbers, such as 12.5"
    if person is not None:
        persons = column_texts(cells[columns["person"]], columns["person"])
        readable &= np.array([label != "" for label in persons.labels] or [False])[persons.codes]
        form += f"; column {person} is not empty"
    series = tally(
        times[readable],
        bins,
        values=None if values is None else values[readable],
        most_per_event=most_per_event,
        step=step,
        persons=None if persons is None else TextColumn(persons.codes[readable], persons.labels),
        most_per_person=most_per_person,
        series=_series_of_rows(cells[columns["series_by"]], series_by, names)[readable] if series_by else None,
        names=max(len(names), 1),
    )
    unreadable = int((~readable).sum())
    advice = f" (the first is {table.place(int(np.argmin(readable)))}; {form})" if unreadable else ""
    losses = replace(series.losses, rows=len(times), unreadable=unreadable, lines=table.left_out, advice=advice)
    most = f"{series.contribution:g}"
    if person is not None:
        amount = f"a value of {most}" if value else "1 event" if most == "1" else f"{most} events"
        together = f", in all {len(names)} series together" if len(names) > 1 else ""
        hides = f"everything that one person did{together}: at most {amount} of each person, chosen at random."
    else:
        worth = f", up to a value of {most}" if value else ""
        hides = f"each event{worth}: whether it happened or not. Someone with many events is hidden less."
    unused = [name.strip() for name in table.names if _COUNT_NAMES.search(name.strip().lower())]
    return CountedSeries(
        series=replace(series, losses=losses),
        title=table.path.name,
        hides=f"This hides {hides}",
        level="event" if person is None else "user",
        names=tuple(names),
        bins=bins,
        unit=value or "events",
        bound="most_per_person" if person else "most_per_event" if value else "",
        time_column=columns["time"].strip(),
        unused_counts=next((name for name in unused if not value and name not in columns.values()), None),
    )


def read_counts(
    source: object,
    counts: str,
    bins: Bins | int,
    *,
    contribution: float = 1,
    time: str | None = None,
    series_by: str | None = None,
    names: Sequence[str] = (),
    progress: Callable[[int], None] = lambda _: None,
) -> CountedSeries:
    """Read a column of whole numbers, each at its time; with a number instead of bins, that many rows in their order.

    One event or person adds at most `contribution` to them, which the caller vouches for. Bins without a row count as
    0. The other arguments are those of `count_events`.
    """
    table = TableFile(source)
    timed: dict[str, str | None] = {"time": time, "series_by": series_by} if isinstance(bins, Bins) else {}
    columns = _find_columns(table, {"counts": counts, **timed}, names)
    cells = table.read(list(columns.values()), progress)
    if table.left_out:
        raise InputError(
            f"{table.left_out:,} of the lines of {table.path} cannot be read: {_BAD_LINES}. Repair the file."
        )
    amounts = column_numbers(cells[columns["counts"]], columns["counts"])
    everywhere = np.ones(len(amounts), dtype=bool)
    which = np.zeros(len(amounts), dtype=np.int64)
    if isinstance(bins, Bins):
        n, times = bins.n, column_times(cells[columns["time"]], columns["time"])
        places, rest = np.divmod(times - bins.start, bins.every)
        inside, untimed = (places >= 0) & (places < n), times < 0
        if series_by is not None:
            which = _series_of_rows(cells[columns["series_by"]], series_by, names)
    else:
        n, places, rest, inside, untimed = (
            count("rows", bins),
            np.arange(len(amounts)),
            0 * which,
            everywhere,
            ~everywhere,
        )
        if len(amounts) != n:
            raise InputError(
                f"{table.path.name} does not have {n:,} rows. Counts without times need a row for each bin, zeros "
                "included.",
                parameter="rows",
            )
    kept = inside & (which >= 0)
    slots = np.where(kept, which * n + places, -1 - np.arange(len(places)))
    repeated = everywhere.copy()
    repeated[np.unique(slots, return_index=True)[1]] = False
    for bad, fault, remedy in (
        (~(np.abs(amounts) < _LARGEST_COUNT) | (amounts != np.rint(amounts)), f"{counts} is not a whole number", ""),
        (untimed, f"{columns.get('time', '').strip()} is not a time. Give {TIME_FORMS}", "rows"),
        (inside & (rest != 0), "its time is not the start of a bin. Counts need one row for each bin", "rows"),
        (repeated, "an earlier row has the same time. Counts need one row for each bin and series", "series_by"),
    ):
        if bad.any():
            place = table.place(int(np.argmax(bad)))
            raise InputError(f"{table.path.name}, {place}: {fault}.", place=place, remedy=remedy)
    values = np.zeros((max(len(names), 1), n))
    values.flat[slots[kept]] = amounts[kept]
    losses = Losses(
        rows=len(amounts),
        outside=int((~inside).sum()),
        other_names=int((inside & ~kept).sum()),
        empty_bins=values.size - int(kept.sum()),
    )
    together = f", in all {len(names)} series together" if len(names) > 1 else ""
    return CountedSeries(
        series=BoundedSeries(values, contribution, losses=losses),
        title=table.path.name,
        hides=f"This hides each event that adds at most {contribution:g} to the counts{together}. It hides everything "
        "that one person did only if that adds no more.",
        level="event",
        names=tuple(names),
        bins=bins if isinstance(bins, Bins) else None,
        unit=counts.strip(),
        bound="contribution",
        time_column=columns["time"].strip() if "time" in columns else None,
    )


def _find_columns(table: TableFile, wanted: dict[str, str | None], names: Sequence[str]) -> dict[str, str]:
    """The file's own name of each wanted column; the times default to the only column with a usual name."""
    if bool(wanted.get("series_by")) != bool(names):
        raise InputError(
            "give the names of the series and their column. Names are public: they are never taken from the data.",
            parameter="names",
        )
    if len(set(names) - {""}) < len(names):
        raise InputError("give each name once, with commas between them.", parameter="names")
    columns: dict[str, str] = {}
    for parameter, name in wanted.items():
        if name is not None:
            matches = [own for own in table.names if own.strip() == name.strip()]
            if len(matches) != 1:
                fault = "is in the file more than once" if matches else "is no column of the file"
                raise InputError(
                    f"{parameter}={name[:64]} {fault}. It has: {', '.join(table.names)[:500]}.",
                    parameter=parameter,
                    column=name,
                )
            columns[parameter] = matches[0]
    if "time" in wanted and "time" not in columns:
        usual = ([own for own in table.names if own.strip().lower() in forms] for forms in _TIME_NAMES)
        matches = next((found for found in usual if found), [])
        if len(matches) != 1:
            which = "several columns" if matches else "no column"
            raise InputError(
                f"{table.path.name} has {which} of times. Call one of them time, or give its name. It has: "
                f"{', '.join(table.names)[:500]}.",
                parameter="time",
                remedy="counts",
            )
        columns["time"] = matches[0]
    return columns


def _series_of_rows(column: Any, name: str, names: Sequence[str]) -> IntArray:
    """The series of each row, -1 if its name is not one of `names`."""
    groups = column_texts(column, name)
    places = {known: place for place, known in enumerate(names)}
    of_label = np.array([places.get(label, -1) for label in groups.labels] or [-1], dtype=np.int64)
    return np.asarray(of_label[groups.codes])
