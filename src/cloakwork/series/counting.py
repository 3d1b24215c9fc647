"""Series from a file of events, one row each, or from a file of counts, one row for each bin."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import IntArray
from cloakwork.errors import InputError
from cloakwork.readings import TIME_FORMS, TableFile, TextColumn, column_numbers, column_texts, column_times
from cloakwork.series.bins import HOUR, Bins, choose_bins, span_text
from cloakwork.series.bounded import BoundedSeries, CountedSeries, Losses, loss_remark
from cloakwork.series.tally import tally

UNTIMED = "none"
_COLUMNS = ("time", "value", "person", "counts", "series_by")
_TIME_NAMES = (("time", "timestamp"), ("date", "datetime"))
_COUNT_NAMES = re.compile(r"^(n|number|total|events|visits|visitors)$|(^|[ _-])counts?$")
_MOSTLY = 0.9  # of the rows
_MOST_NAMES_SHOWN = 10
_MOST_UNITS = 10**9  # that one event or person may add: more needs an absurd claim, and is a mistake
_LARGEST_COUNT = 2.0**53
_ONLY_NOISE = "the published values are noise"
_BAD_LINES = "too few or too many cells, a quotation mark that is not closed on the same line, or not UTF-8"


@dataclass(frozen=True, kw_only=True)
class FileRequest:
    """Which columns of a file to count, in which bins and within which limits.

    `time`, `value`, `person`, `counts` and `series_by` are names of columns; "none" as `time` ignores the times of
    counts. Times and spans are in milliseconds. The limits are those of `tally`; `contribution` is what one event or
    person adds to `counts`.
    """

    time: str | None = None
    every: int | None = None
    start: int | None = None
    end: int | None = None
    value: str | None = None
    most_per_event: float | None = None
    step: float | None = None
    person: str | None = None
    most_per_person: float | None = None
    counts: str | None = None
    contribution: float | None = None
    series_by: str | None = None
    names: Sequence[str] | None = None

    def inferred(self, *, timed: bool = True) -> tuple[str, ...]:
        """The public parameters that are missing here and are taken from the data."""
        public = ["start", "end"] if timed else []
        if self.counts is not None:
            public.append("every" if timed else "rows")
        if self.series_by is not None:
            public.append("names")
        return tuple(name for name in public if getattr(self, name, None) is None)


def count_file(path: Path, request: FileRequest, *, progress: Callable[[int], None] = lambda _: None) -> CountedSeries:
    """Count the events of a file, or read the counts in it; `progress` receives the number of bytes read."""
    table = TableFile(path)
    columns = _find_columns(table, request)
    used = set(columns.values())
    candidates = [] if request.counts or request.value else _named_like_counts(table, used)
    if "time" not in columns and request.counts is None:
        raise InputError(
            f"give the column of the times. {path.name} has: {', '.join(table.names)[:500]}. (If it already has one "
            "row for each hour or day, give the column of the counts as well.)",
            parameter="time",
        )
    cells = table.read([*columns.values(), *candidates], progress)
    if request.counts is not None:
        return _read_counts(table, request, columns, cells)
    unused = next((name.strip() for name in candidates if _looks_like_counts(cells[name], name)), None)
    return _count_events(table, request, columns, cells, unused)


def _count_events(
    table: TableFile, request: FileRequest, columns: dict[str, str], cells: dict[str, Any], unused: str | None
) -> CountedSeries:
    """Count rows, or add up their values. Rows without a time, a number or a person are left out."""
    times = column_times(cells[columns["time"]], columns["time"])
    readable = times >= 0
    values = persons = groups = None
    if "value" in columns:
        values = column_numbers(cells[columns["value"]], columns["value"])
        readable &= np.isfinite(values)
    if "person" in columns:
        persons = column_texts(cells[columns["person"]], columns["person"])
        readable &= np.array([label != "" for label in persons.labels] or [False])[persons.codes]
    if "series_by" in columns:
        groups = column_texts(cells[columns["series_by"]], columns["series_by"])
    if not readable.any() and (len(readable) or table.left_out):
        needs = "".join(
            [
                f"; column {request.value} holds numbers, such as 12.5" if values is not None else "",
                f"; column {request.person} is not empty" if persons is not None else "",
            ]
        )
        raise InputError(
            f"no row of {table.path} can be read, and nothing is published. A readable row is one line with a cell for "
            f"each column, and its time is {TIME_FORMS}{needs}."
        )
    names, which = _name_series(groups, readable, request.names)
    bins = choose_bins(
        request.start, request.end, request.every or HOUR, times=times[readable], series=max(len(names), 1)
    )
    series = tally(
        times[readable],
        bins,
        values=None if values is None else values[readable],
        most_per_event=request.most_per_event,
        step=request.step,
        persons=None if persons is None else TextColumn(persons.codes[readable], persons.labels),
        most_per_person=request.most_per_person,
        series=which,
        names=max(len(names), 1),
    )
    bound = "most_per_person" if request.person else "most_per_event" if request.value else ""
    _check_units(series, bound)
    return CountedSeries(
        series=series,
        title=table.path.name,
        hides=_events_hidden(request, series),
        level="event" if persons is None else "user",
        names=names,
        bins=bins,
        unit=request.value or "events",
        bound=bound,
        inferred=request.inferred(),
        time_column=columns["time"].strip(),
        unused_counts=unused,
        remarks=(
            *_unreadable(table, readable),
            *_remarks(len(readable), bins.places(times[readable]) >= 0, which, names, series.losses, request),
        ),
    )


def _read_counts(
    table: TableFile, request: FileRequest, columns: dict[str, str], cells: dict[str, Any]
) -> CountedSeries:
    """Read a column of whole numbers, each at its time, or in the order of the rows if they have none."""
    column, time = columns["counts"], columns.get("time")
    if time is None:
        extra = [name for name in ("every", "start", "end", "series_by") if getattr(request, name) is not None]
        if extra:
            raise InputError("rows have no time: give the column of the times.", parameter=tuple(extra))
    if table.left_out:
        lines = "1 line" if table.left_out == 1 else f"{table.left_out:,} lines"
        raise InputError(f"{lines} of {table.path} cannot be read: {_BAD_LINES}. Repair the file.")
    amounts = column_numbers(cells[column], column)
    if not len(amounts) and (time is None or None in (request.start, request.end, request.every)):
        raise InputError(f"{table.path} has no rows.")
    broken = ~(np.abs(amounts) < _LARGEST_COUNT) | (amounts != np.rint(amounts))
    _refuse_rows(table, broken, f"{column.strip()} is not a whole number")
    names: tuple[str, ...] = ()
    bins, which, values, losses = None, None, amounts[None, :], Losses()
    inside = np.ones(len(amounts), dtype=bool)
    remarks = [] if len(amounts) else [f"there are no rows: {_ONLY_NOISE}"]
    if time is not None:
        times = column_times(cells[time], time)
        _refuse_rows(
            table, times < 0, f"{time.strip()} is not a time. Give {TIME_FORMS}, or ignore the times", "untimed"
        )
        groups = column_texts(cells[columns["series_by"]], columns["series_by"]) if "series_by" in columns else None
        names, which = _name_series(groups, np.ones(len(times), dtype=bool), request.names)
        bins = _regular_bins(table, request, times, max(len(names), 1))
        places = bins.places(times)
        rows = np.zeros(len(times), dtype=np.int64) if which is None else which
        kept = (places >= 0) & (rows >= 0)
        slots = np.where(kept, rows * bins.n + places, -1 - np.arange(len(times)))
        repeated = np.ones(len(times), dtype=bool)
        repeated[np.unique(slots, return_index=True)[1]] = False
        _refuse_rows(
            table,
            repeated,
            "an earlier row has the same time. Counts need one row for each bin and series",
            "series_by",
        )
        flat = np.zeros(max(len(names), 1) * bins.n)
        flat[slots[kept]] = amounts[kept]
        values = flat.reshape(-1, bins.n)
        losses = Losses(
            outside=int((places < 0).sum()),
            other_names=int(((places >= 0) & (rows < 0)).sum()),
            empty_bins=values.size - int(kept.sum()),
        )
        inside = places >= 0
    contribution = 1.0 if request.contribution is None else request.contribution
    series = BoundedSeries(values, contribution, losses=losses)
    _check_units(series, "contribution")
    together = "" if len(values) == 1 else f", in all {len(values)} series together"
    return CountedSeries(
        series=series,
        title=table.path.name,
        hides=f"This hides each event that adds at most {contribution:g} to the counts{together}. It hides everything "
        "that one person did only if that adds no more.",
        level="event",
        names=names,
        bins=bins,
        unit=column.strip(),
        bound="contribution",
        inferred=request.inferred(timed=time is not None),
        time_column=None if time is None else time.strip(),
        remarks=(*remarks, *_remarks(len(amounts), inside, which, names, losses, request)),
    )


def _find_columns(table: TableFile, request: FileRequest) -> dict[str, str]:
    """The file's own name of each requested column; the times default to the only column with a usual name."""
    columns: dict[str, str] = {}
    own_names = [name.strip() for name in table.names]
    untimed = request.time == UNTIMED and UNTIMED not in own_names and request.counts is not None
    for parameter in _COLUMNS:
        name = getattr(request, parameter)
        if name is None or (parameter == "time" and untimed):
            continue
        try:
            columns[parameter] = table.column(name)
        except InputError as problem:
            raise InputError(f"{parameter}={problem}", parameter=parameter, column=name) from None
    if request.time is None:
        likely = ([own for own in table.names if own.strip().lower() in usual] for usual in _TIME_NAMES)
        matches = next((names for names in likely if names), [])
        if len(matches) == 1:
            columns["time"] = matches[0]
    return columns


def _named_like_counts(table: TableFile, used: set[str]) -> list[str]:
    """Unused columns whose names suggest counts; counting rows may be a mistake where there is one."""
    plain = [name.strip().lower() for name in table.names]
    likely = [name for name, word in zip(table.names, plain, strict=True) if _COUNT_NAMES.search(word)]
    return [name for name in likely if name not in used and plain.count(name.strip().lower()) == 1]


def _looks_like_counts(column: Any, name: str) -> bool:
    """Whether nearly all cells are whole numbers of at least 0, and not all of these are 1."""
    try:
        amounts = column_numbers(column, name)
    except InputError:
        return False
    whole = (amounts >= 0) & (amounts == np.rint(amounts))
    return bool(len(amounts) and whole.mean() >= _MOSTLY and (amounts[whole] != 1).any())


def _name_series(
    groups: TextColumn | None, readable: NDArray[np.bool_], names: Sequence[str] | None
) -> tuple[tuple[str, ...], IntArray | None]:
    """Names of the series, and the series of each readable row, -1 if it belongs to none."""
    if groups is None:
        return (), None
    codes = groups.codes[readable]
    if names is None:
        chosen = tuple(sorted(groups.labels[code] for code in np.unique(codes) if groups.labels[code]))
        if not chosen:
            raise InputError("there is nothing to take the names of the series from.", parameter="names")
    else:
        chosen = tuple(name.strip() for name in names)
        if "" in chosen or len(set(chosen)) < len(chosen):
            raise InputError("give each name once, with commas between them.", parameter="names")
    places = {name: place for place, name in enumerate(chosen)}
    of_label = np.array([places.get(label, -1) for label in groups.labels] or [-1], dtype=np.int64)
    return chosen, np.asarray(of_label[codes])


def _regular_bins(table: TableFile, request: FileRequest, times: IntArray, series: int) -> Bins:
    """The bins that the rows stand for: one time step each."""
    steps = np.diff(np.unique(times))
    if request.every is None and not len(steps):
        raise InputError("all rows have the same time: give the length of a bin.", parameter="every")
    every = int(steps.min()) if request.every is None else request.every
    aligned = int(times.min()) if len(times) else None
    bins = choose_bins(request.start, request.end, every, times=times, aligned=aligned, series=series)
    irregular = (bins.places(times) >= 0) & ((times - bins.start) % every != 0)
    _refuse_rows(
        table,
        irregular,
        f"its time is not a whole number of {span_text(every)} after the {'start' if request.start else 'first row'}. "
        "Counts need one row for each bin, at regular times. To use the rows in their order, ignore the times",
        "untimed",
    )
    return bins


def _refuse_rows(table: TableFile, bad: NDArray[np.bool_], fault: str, remedy: str = "") -> None:
    if bad.any():
        place = table.place(int(np.argmax(bad)))
        raise InputError(f"{table.path.name}, {place}: {fault}.", place=place, remedy=remedy)


def _check_units(series: BoundedSeries, bound: str) -> None:
    units = series.contribution / (series.step or 1.0)
    if units > _MOST_UNITS * (1 + 1e-9):
        raise InputError(
            f"{bound}={series.contribution:g} is more than {_MOST_UNITS:,} steps of {series.step or 1:g}: give a "
            "smaller limit, or a larger step.",
            parameter=bound,
        )


def _events_hidden(request: FileRequest, series: BoundedSeries) -> str:
    together = "" if len(series.values) == 1 else f", in all {len(series.values)} series together"
    most = f"{series.contribution:g}"
    if request.person is not None:
        events = "1 event" if most == "1" else f"{most} events"
        amount = f"a value of {most}" if request.value else events
        return (
            f"This hides everything that one person did{together}: at most {amount} of each person, chosen at random."
        )
    value = f", up to a value of {most}" if request.value else ""
    return f"This hides each event{value}: whether it happened or not. Someone with many events is hidden less."


def _unreadable(table: TableFile, readable: NDArray[np.bool_]) -> list[str]:
    """Which rows and lines of events were left out."""
    remarks = []
    if not readable.all():
        number, first = int((~readable).sum()), table.place(int(np.argmin(readable)))
        where = first if number == 1 else f"the first is {first}"
        remarks.append(f"{number:,} of {len(readable):,} rows left out, because they cannot be read ({where})")
    if not len(readable):
        remarks.append(f"there are no rows: {_ONLY_NOISE}")
    if table.left_out:
        lines = "1 line" if table.left_out == 1 else f"{table.left_out:,} lines"
        remarks.append(f"{lines} left out: {_BAD_LINES}")
    return remarks


def _remarks(
    rows: int,
    inside: NDArray[np.bool_],
    which: IntArray | None,
    names: Sequence[str],
    losses: Losses,
    request: FileRequest,
) -> list[str]:
    """Which series have nothing in the period, and how bounding changed the data."""
    remarks = []
    things = "events" if request.counts is None else "rows"
    present = set() if which is None else set(np.unique(which[inside]).tolist())
    missing = [name for place, name in enumerate(names) if place not in present]
    if len(inside) and not inside.any():
        remarks.append(f"no row lies in this period: {_ONLY_NOISE}")
    elif missing and len(inside):
        more = f" and {len(missing) - _MOST_NAMES_SHOWN} more" if len(missing) > _MOST_NAMES_SHOWN else ""
        shown = ", ".join(missing[:_MOST_NAMES_SHOWN])
        remarks.append(f"{shown}{more} had no {things} in this period: {_ONLY_NOISE}")
    most = request.most_per_event or request.most_per_person or 0
    dropped = (
        (losses.outside, "left out, because they are outside the period"),
        (losses.other_names, "left out, because their name is not one of the given names"),
        (losses.clipped, f"clipped, because their value is not within 0 to {most:g}"),
        (losses.over_limit, "not counted, or not in full, because they are above the limit of their person"),
    )
    remarks += [f"{number:,} of {rows:,} rows {reason}" for number, reason in dropped if number]
    if losses.empty_bins:
        bins = "1 bin" if losses.empty_bins == 1 else f"{losses.empty_bins:,} bins"
        remarks.append(f"{bins} without a row, counted as 0")
    return remarks + loss_remark(losses)
