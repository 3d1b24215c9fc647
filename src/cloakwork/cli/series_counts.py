"""Series from a file with one row for each time: counts that someone has added up already."""

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork.cli.output import counted
from cloakwork.cli.series_filters import parse_span, shown_span
from cloakwork.cli.series_given import Given, SeriesOptions, check_size, check_whole, period, taken_period
from cloakwork.cli.series_rows import (
    NOISE,
    ODD_LINES,
    UNTIMED,
    absent,
    column_named,
    names_of,
    numbered,
    read_columns,
    remarks,
    taken_names,
    time_column,
    time_notes,
)
from cloakwork.errors import InputError
from cloakwork.readings import TIME_FORMS, TableFile, column_numbers, column_texts, column_times
from cloakwork.series import Bins, BoundedSeries, Losses

_LARGEST = 2.0**53


def from_counts(file: TableFile, options: SeriesOptions) -> Given:
    """Take the counts of a column, each at its time, or in the order of the rows where they have none."""
    _refuse_others(options)
    check_whole("--contribution", options.contribution, ": counts change by whole numbers")
    column, time = column_named(file, "--counts", options.counts or ""), time_column(file, options)
    if time is None:
        options.refuse(
            "rows have no time: say with --time which column has it.",
            **{"every": options.every, "from": options.start, "to": options.end, "series_by": options.series_by},
        )
    by = None if options.series_by is None else column_named(file, "--series-by", options.series_by)
    cells = read_columns(file, [name for name in (column, time, by) if name is not None])
    if file.left_out:
        raise InputError(f"{counted(file.left_out, 'line')} of {file.path} cannot be read: {ODD_LINES}. Repair them.")
    amounts = column_numbers(cells[column], column)
    if not len(amounts) and (time is None or None in (options.start, options.end, options.every)):
        raise InputError(f"{file.path} has no rows.")
    broken = ~(np.abs(amounts) < _LARGEST) | (amounts != np.rint(amounts))
    _refuse_rows(file, broken, f"{column.strip()} is not a whole number")
    bins: Bins | None = None
    names: tuple[str, ...] = ()
    values, losses = amounts[None, :], Losses()
    empty: list[str] = [] if len(amounts) else [f"there are no rows: {NOISE}"]
    if time is not None:
        when = column_times(cells[time], time)
        _refuse_rows(file, when < 0, f"{time.strip()} is not a time: give {TIME_FORMS}, or --time {UNTIMED}")
        bins = _regular(file, options, when)
        rows = np.zeros(len(when), dtype=np.int64)
        if by is not None:
            found = column_texts(cells[by], by)
            names = names_of(options, found, found.codes)
            rows = numbered(found, found.codes, names)
        check_size(bins.n, max(len(names), 1))
        values, losses = _placed(file, amounts, bins, when, rows, max(len(names), 1))
        empty += absent(bins.places(when) >= 0, rows, names, "rows")
    contribution = 1.0 if options.contribution is None else options.contribution
    return Given(
        BoundedSeries(values, contribution, losses=losses),
        names,
        bins,
        level="event",
        hides=_hides(contribution, len(values)),
        title=file.path.name,
        bound="--contribution",
        what=column.strip(),
        advice="--contribution says how much one event or person may add.",
        taken=_taken(options, timed=time is not None) + taken_names(options),
        notes=time_notes(time, options),
        remarks=(*empty, *remarks(len(amounts), losses, options)),
    )


def _refuse_others(options: SeriesOptions) -> None:
    options.refuse(
        "this goes with events, one a row; with --counts they are added up already, and --contribution says what one "
        "event or person may add.",
        value=options.value,
        most_per_event=options.most_per_event,
        step=options.step,
        person=options.person,
        most_per_person=options.most_per_person,
    )


def _taken(options: SeriesOptions, *, timed: bool) -> tuple[str, ...]:
    """What was not given of when the bins are."""
    if not timed:
        return ("the number of rows",)
    return taken_period(options) + (("--every (the shortest step)",) if options.every is None else ())


def _regular(file: TableFile, options: SeriesOptions, when: IntArray) -> Bins:
    """The bins that rows with these times stand for."""
    steps = np.diff(np.unique(when))
    if options.every is None and not len(steps):
        raise InputError("all rows have the same time: give --every, to say how long a bin is.")
    every = int(steps.min()) if options.every is None else parse_span("--every", options.every)
    first, last = (int(when.min()), int(when.max())) if len(when) else (None, None)
    bins = period(options, first, last, every, grid=first)
    _refuse_rows(
        file,
        (bins.places(when) >= 0) & ((when - bins.start) % every != 0),
        f"its time is not a whole number of {shown_span(every)} after {'--from' if options.start else 'the first'}: "
        f"--counts needs one row a bin, in regular steps. For rows in their order, whatever their times are, give "
        f"--time {UNTIMED}",
    )
    return bins


def _placed(
    file: TableFile, amounts: FloatArray, bins: Bins, when: IntArray, rows: IntArray, names: int
) -> tuple[FloatArray, Losses]:
    places = bins.places(when)
    good = (places >= 0) & (rows >= 0)
    cells = np.where(good, rows * bins.n + places, -1 - np.arange(len(when)))
    again = np.ones(len(when), dtype=bool)
    again[np.unique(cells, return_index=True)[1]] = False
    _refuse_rows(
        file,
        again,
        "an earlier row has the same time: --counts needs one row a bin, or --series-by to tell several apart",
    )
    values = np.zeros(names * bins.n)
    values[cells[good]] = amounts[good]
    losses = Losses(
        outside=int((places < 0).sum()),
        other_names=int(((places >= 0) & (rows < 0)).sum()),
        empty_bins=names * bins.n - int(good.sum()),
    )
    return values.reshape(names, bins.n), losses


def _refuse_rows(file: TableFile, bad: NDArray[np.bool_], why: str) -> None:
    if bad.any():
        raise InputError(f"{file.path.name}, {file.place(int(np.argmax(bad)))}: {why}.")


def _hides(contribution: float, series: int) -> str:
    together = "" if series == 1 else f", in all {series} series together"
    return (
        f"This hides each event that adds at most {contribution:g} to the counts{together}. All that one person did is "
        "hidden only if it adds no more than that."
    )
