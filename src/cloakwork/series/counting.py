"""Series from a file of events, one row each, or from a file of counts, one row for each bin."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import IntArray
from cloakwork.errors import InputError
from cloakwork.readings import TIME_FORMS, TableFile, TextColumn, column_numbers, column_texts, column_times
from cloakwork.series.bins import HOUR, Bins, choose_bins, span_text
from cloakwork.series.bounded import BoundedSeries, Losses, tally

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


@dataclass(frozen=True, eq=False, kw_only=True)
class CountedSeries:
    """Bounded series counted from a file or a store, with what a reader of the publication needs to know.

    Parameters
    ----------
    series
        The true values.
    title
        Name of the file or the site.
    hides
        What the claim covers, in a sentence.
    level
        "event", "user" or "visit".
    names
        Names of the series; empty for one series without a name.
    bins
        None if rows have no time.
    unit
        What the values count, for the axis of a picture.
    bound
        Name of the parameter that limits what one event, person or visit adds; empty if each event counts 1.
    inferred
        Parameters that are public, but were taken from the data.
    time_column
        Column of the times, if the file has one.
    unused_counts
        A column that looks like counts, although each row was counted as one event.
    remarks
        Sentences about the true data. Not private.
    """

    series: BoundedSeries
    title: str
    hides: str
    level: str
    names: tuple[str, ...] = ()
    bins: Bins | None = None
    unit: str = "events"
    bound: str = ""
    inferred: tuple[str, ...] = ()
    time_column: str | None = None
    unused_counts: str | None = None
    remarks: tuple[str, ...] = field(default=(), repr=False)

    @property
    def limited(self) -> bool:
        """Whether limits may have reduced the data. That limits exist is public; their effect is not."""
        return self.level != "event" or self.series.step is not None


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


def count_file(path: Path, request: FileRequest, *, progress: Callable[[int], None] = lambda _: None) -> CountedSeries:
    """Count the events of a file, or read the counts in it; `progress` receives the number of bytes read."""
    table = TableFile(path)
    columns = _find_columns(table, request)
    likely = []  # columns of counts: counting rows may be a mistake where there is one
    if request.counts is None and request.value is None:
        plain = [name.strip().lower() for name in table.names]
        unique = [
            name for name in table.names if plain.count(name.strip().lower()) == 1 and name not in columns.values()
        ]
        likely = [name for name in unique if _COUNT_NAMES.search(name.strip().lower())]
    cells = table.read([*columns.values(), *likely], progress)
    timed = ("start", "end") if "time" in columns else ()
    rows = () if request.counts is None else ("every",) if timed else ("rows",)
    public = (*timed, *rows, *(("names",) if "series_by" in columns else ()))
    inferred = tuple(name for name in public if getattr(request, name, None) is None)
    if request.counts is None:
        unused = next((name.strip() for name in likely if _looks_like_counts(cells[name], name)), None)
        counted = _count_events(table, request, columns, cells, inferred, unused)
    else:
        counted = _read_counts(table, request, columns, cells, inferred)
    contribution, step = counted.series.contribution, counted.series.step or 1.0
    if contribution / step > _MOST_UNITS * (1 + 1e-9):
        raise InputError(
            f"{counted.bound}={contribution:g} is more than {_MOST_UNITS:,} steps of {step:g}: give a smaller limit, "
            "or a larger step.",
            parameter=counted.bound,
        )
    return counted


def _find_columns(table: TableFile, request: FileRequest) -> dict[str, str]:
    """The file's own name of each requested column; the times default to the only column with a usual name."""
    columns: dict[str, str] = {}
    untimed = request.time == UNTIMED and request.counts is not None
    for parameter in _COLUMNS:
        name = getattr(request, parameter)
        if name is None or (parameter == "time" and untimed and UNTIMED not in map(str.strip, table.names)):
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
    if "time" not in columns and request.counts is None:
        raise InputError(
            f"give the column of the times. {table.path.name} has: {', '.join(table.names)[:500]}. (If it already has "
            "one row for each hour or day, give the column of the counts as well.)",
            parameter="time",
        )
    return columns


def _looks_like_counts(column: Any, name: str) -> bool:
    """Whether nearly all cells are whole numbers of at least 0, and not all of these are 1."""
    try:
        amounts = column_numbers(column, name)
    except InputError:
        return False
    whole = (amounts >= 0) & (amounts == np.rint(amounts))
    return bool(len(amounts) and whole.mean() >= _MOSTLY and (amounts[whole] != 1).any())


def _count_events(
    table: TableFile,
    request: FileRequest,
    columns: dict[str, str],
    cells: dict[str, Any],
    inferred: tuple[str, ...],
    unused: str | None,
) -> CountedSeries:
    """Count rows, or add up their values. Rows without a time, a number or a person are left out."""
    times = column_times(cells[columns["time"]], columns["time"])
    readable, needs = times >= 0, ""
    values = persons = None
    if "value" in columns:
        values = column_numbers(cells[columns["value"]], columns["value"])
        readable &= np.isfinite(values)
        needs += f"; column {request.value} holds numbers, such as 12.5"
    if "person" in columns:
        persons = column_texts(cells[columns["person"]], columns["person"])
        readable &= np.array([label != "" for label in persons.labels] or [False])[persons.codes]
        needs += f"; column {request.person} is not empty"
    if not readable.any() and (len(readable) or table.left_out):
        raise InputError(
            f"no row of {table.path} can be read, and nothing is published. A readable row is one line with a cell for "
            f"each column, and its time is {TIME_FORMS}{needs}."
        )
    names, which = _name_series(columns, cells, readable, request.names) if "series_by" in columns else ((), None)
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
    most = f"{series.contribution:g}"
    if persons is not None:
        amount = f"a value of {most}" if request.value else "1 event" if most == "1" else f"{most} events"
        together = f", in all {len(names)} series together" if len(names) > 1 else ""
        hides = f"everything that one person did{together}: at most {amount} of each person, chosen at random."
    else:
        value = f", up to a value of {most}" if request.value else ""
        hides = f"each event{value}: whether it happened or not. Someone with many events is hidden less."
    return CountedSeries(
        series=series,
        title=table.path.name,
        hides=f"This hides {hides}",
        level="event" if persons is None else "user",
        names=names,
        bins=bins,
        unit=request.value or "events",
        bound="most_per_person" if request.person else "most_per_event" if request.value else "",
        inferred=inferred,
        time_column=columns["time"].strip(),
        unused_counts=unused,
        remarks=_remarks(table, request, readable, bins.places(times), which, names, series.losses),
    )


def _read_counts(
    table: TableFile,
    request: FileRequest,
    columns: dict[str, str],
    cells: dict[str, Any],
    inferred: tuple[str, ...],
) -> CountedSeries:
    """Read a column of whole numbers, each at its time, or in the order of the rows if they have none."""
    column, time = columns["counts"], columns.get("time")
    extra = [name for name in ("every", "start", "end", "series_by") if getattr(request, name) is not None]
    if time is None and extra:
        raise InputError("rows have no time: give the column of the times.", parameter=tuple(extra))
    if table.left_out:
        lines = "1 line" if table.left_out == 1 else f"{table.left_out:,} lines"
        raise InputError(f"{lines} of {table.path} cannot be read: {_BAD_LINES}. Repair the file.")
    amounts = column_numbers(cells[column], column)
    if not len(amounts) and (time is None or None in (request.start, request.end, request.every)):
        raise InputError(f"{table.path} has no rows.")
    broken = ~(np.abs(amounts) < _LARGEST_COUNT) | (amounts != np.rint(amounts))
    _refuse_rows(table, broken, f"{column.strip()} is not a whole number")
    everywhere = np.ones(len(amounts), dtype=bool)
    names, which = _name_series(columns, cells, everywhere, request.names) if "series_by" in columns else ((), None)
    bins, places, values, losses = None, np.arange(len(amounts)), amounts[None, :], Losses()
    if time is not None:
        bins, places = _regular_bins(table, request, column_times(cells[time], time), time, max(len(names), 1))
        rows = np.zeros(len(places), dtype=np.int64) if which is None else which
        kept = (places >= 0) & (rows >= 0)
        slots = np.where(kept, rows * bins.n + places, -1 - np.arange(len(places)))
        repeated = everywhere.copy()
        repeated[np.unique(slots, return_index=True)[1]] = False
        fault = "an earlier row has the same time. Counts need one row for each bin and series"
        _refuse_rows(table, repeated, fault, "series_by")
        values = np.zeros((max(len(names), 1), bins.n))
        values.flat[slots[kept]] = amounts[kept]
        losses = Losses(
            outside=int((places < 0).sum()),
            other_names=int(((places >= 0) & (rows < 0)).sum()),
            empty_bins=values.size - int(kept.sum()),
        )
    contribution = 1.0 if request.contribution is None else request.contribution
    together = f", in all {len(names)} series together" if len(names) > 1 else ""
    return CountedSeries(
        series=BoundedSeries(values, contribution, losses=losses),
        title=table.path.name,
        hides=f"This hides each event that adds at most {contribution:g} to the counts{together}. It hides everything "
        "that one person did only if that adds no more.",
        level="event",
        names=names,
        bins=bins,
        unit=column.strip(),
        bound="contribution",
        inferred=inferred,
        time_column=None if time is None else time.strip(),
        remarks=_remarks(table, request, everywhere, places, which, names, losses),
    )


def _name_series(
    columns: dict[str, str], cells: dict[str, Any], readable: NDArray[np.bool_], names: Sequence[str] | None
) -> tuple[tuple[str, ...], IntArray]:
    """Names of the series, and the series of each readable row, -1 if it belongs to none."""
    groups = column_texts(cells[columns["series_by"]], columns["series_by"])
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


def _regular_bins(
    table: TableFile, request: FileRequest, times: IntArray, column: str, series: int
) -> tuple[Bins, IntArray]:
    """The bins that the rows stand for, one time step each, and the bin of each row."""
    _refuse_rows(table, times < 0, f"{column.strip()} is not a time. Give {TIME_FORMS}, or ignore the times", "untimed")
    steps = np.diff(np.unique(times))
    if request.every is None and not len(steps):
        raise InputError("all rows have the same time: give the length of a bin.", parameter="every")
    every = int(steps.min()) if request.every is None else request.every
    aligned = int(times.min()) if len(times) else None
    bins = choose_bins(request.start, request.end, every, times=times, aligned=aligned, series=series)
    places = bins.places(times)
    irregular = (places >= 0) & ((times - bins.start) % every != 0)
    if irregular.any():
        first = "start" if request.start else "first row"
        fault = (
            f"its time is not a whole number of {span_text(every)} after the {first}. Counts need one row for each "
            "bin, at regular times. To use the rows in their order, ignore the times"
        )
        _refuse_rows(table, irregular, fault, "untimed")
    return bins, places


def _refuse_rows(table: TableFile, bad: NDArray[np.bool_], fault: str, remedy: str = "") -> None:
    if bad.any():
        place = table.place(int(np.argmax(bad)))
        raise InputError(f"{table.path.name}, {place}: {fault}.", place=place, remedy=remedy)


def _remarks(
    table: TableFile,
    request: FileRequest,
    readable: NDArray[np.bool_],
    places: IntArray,
    which: IntArray | None,
    names: Sequence[str],
    losses: Losses,
) -> tuple[str, ...]:
    """Which rows were left out, which series have nothing in the period, and how bounding changed the data."""
    remarks, rows, inside = [], len(readable), (places >= 0)[readable]
    if not readable.all():
        number, first = int((~readable).sum()), table.place(int(np.argmin(readable)))
        where = first if number == 1 else f"the first is {first}"
        remarks.append(f"{number:,} of {rows:,} rows left out, because they cannot be read ({where})")
    if not rows:
        remarks.append(f"there are no rows: {_ONLY_NOISE}")
    if table.left_out:
        lines = "1 line" if table.left_out == 1 else f"{table.left_out:,} lines"
        remarks.append(f"{lines} left out: {_BAD_LINES}")
    present = set() if which is None else set(np.unique(which[inside]).tolist())
    missing = [name for place, name in enumerate(names) if place not in present]
    if len(inside) and not inside.any():
        remarks.append(f"no row lies in this period: {_ONLY_NOISE}")
    elif missing and len(inside):
        more = f" and {len(missing) - _MOST_NAMES_SHOWN} more" if len(missing) > _MOST_NAMES_SHOWN else ""
        things = "events" if request.counts is None else "rows"
        remarks.append(f"{', '.join(missing[:_MOST_NAMES_SHOWN])}{more} had no {things} in this period: {_ONLY_NOISE}")
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
    return (*remarks, *loss_remark(losses))


def loss_remark(losses: Losses) -> list[str]:
    """How much limits reduced the total, as a list of at most one sentence."""
    percent = 100 * losses.lower
    direction = "lower" if percent >= 0 else "higher"
    return [f"the published total is {abs(percent):.3g} % {direction} than that of the data"] if percent else []
