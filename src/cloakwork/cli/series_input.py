"""Series from a file with one row an event."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray, rounded_up
from cloakwork.cli.output import counted
from cloakwork.cli.series_counts import from_counts
from cloakwork.cli.series_filters import parse_span
from cloakwork.cli.series_given import (
    DEFAULT_EVERY,
    MOST_UNITS,
    Given,
    SeriesOptions,
    check_bound,
    check_size,
    check_whole,
    period,
    taken_period,
)
from cloakwork.cli.series_rows import (
    NOISE,
    ODD_LINES,
    absent,
    column_named,
    count_columns,
    look_like_counts,
    names_of,
    numbered,
    read_columns,
    remarks,
    taken_names,
    time_column,
    time_notes,
    uncounted,
)
from cloakwork.errors import InputError
from cloakwork.readings import TIME_FORMS, TableFile, TextColumn, column_numbers, column_texts, column_times
from cloakwork.series import BoundedSeries, tally
from cloakwork.series.events import default_step


def from_file(options: SeriesOptions) -> Given:
    """Count the events of a file, or take the counts that are in it."""
    options.refuse(
        "this goes with --from-store.",
        zone=tuple(options.zones),
        count=options.count,
        visit=options.visit,
        most_at_once=options.most_at_once,
    )
    if options.source.suffix == ".toml":
        raise InputError(f"{options.source} is a site file: give --from-store with the address of a collector's store.")
    if options.names is not None and options.series_by is None:
        raise InputError("--names without --series-by: say which column has the names.")
    if options.counts is None:
        _check_bounds(options)
    file = TableFile(options.source)
    return _from_events(file, options) if options.counts is None else from_counts(file, options)


def _check_bounds(options: SeriesOptions) -> None:
    """Each bound belongs to something that it bounds, and each such thing needs one."""
    options.refuse("this goes with --counts; here events count 1 each, or --value.", contribution=options.contribution)
    if options.value is None:
        options.refuse("this goes with --value.", most_per_event=options.most_per_event, step=options.step)
    elif options.most_per_event is None and options.most_per_person is None:
        raise InputError("--value without --most-per-event: say how much the value of one event may count.")
    if options.person is None:
        options.refuse("this goes with --person.", most_per_person=options.most_per_person)
    elif options.most_per_person is None:
        what = "how many events" if options.value is None else "how much value"
        raise InputError(f"--person without --most-per-person: say {what} of one person may count, in all.")
    _check_sizes(options)


def _check_sizes(options: SeriesOptions) -> None:
    """Bounds are numbers above 0, and no smaller than what values are rounded to."""
    if options.value is None:
        check_whole("--most-per-person", options.most_per_person, " of events")
        return
    bounds = {"--most-per-event": options.most_per_event, "--most-per-person": options.most_per_person}
    for option, bound in (*bounds.items(), ("--step", options.step)):
        check_bound(option, bound)
    step = options.step or default_step(options.most_per_event or options.most_per_person or 1.0)
    given = {option: bound for option, bound in bounds.items() if bound is not None}
    for option, bound in given.items():
        if step > bound:
            raise InputError(f"--step {step:g} is more than {option} {bound:g}: give a smaller step.")
        if bound > MOST_UNITS * step:
            least = bound / MOST_UNITS
            coarser = f"a --step of {rounded_up(least)} or more, or " if least <= min(given.values()) else ""
            raise InputError(
                f"{option} {bound:g} is more than {MOST_UNITS:,} steps of {step:g}: give {coarser}a smaller {option}."
            )


def _from_events(file: TableFile, options: SeriesOptions) -> Given:
    rows = _read(file, options)
    good = rows.good
    if not good.any() and (len(good) or file.left_out):
        raise InputError(f"no row of {file.path} can be read, and nothing is published. {_expected(options)}")
    times = rows.times[good]
    first, last = (int(times.min()), int(times.max())) if times.size else (None, None)
    bins = period(options, first, last, parse_span("--every", options.every or DEFAULT_EVERY))
    names: tuple[str, ...] = ()
    which: IntArray | None = None
    if rows.series is not None:
        names = names_of(options, rows.series, rows.series.codes[good])
        which = numbered(rows.series, rows.series.codes[good], names)
    check_size(bins.n, max(len(names), 1))
    series = tally(
        times,
        bins,
        values=None if rows.values is None else rows.values[good],
        most_per_event=options.most_per_event,
        step=options.step,
        persons=None if rows.persons is None else TextColumn(rows.persons.codes[good], rows.persons.labels),
        most_per_person=options.most_per_person,
        series=which,
        names=max(len(names), 1),
    )
    return Given(
        series,
        names,
        bins,
        level="event" if options.person is None else "user",
        hides=_hides(options, series),
        title=file.path.name,
        bound="--most-per-person" if options.person else "--most-per-event" if options.value else "",
        what=options.value or "events",
        advice="" if options.person else "To hide all that one person did, give --person.",
        taken=taken_period(options) + taken_names(options),
        notes=time_notes(rows.time, options),
        remarks=(
            *uncounted(rows.uncounted, options),
            *_unreadable(file, good),
            *absent(bins.places(times) >= 0, np.zeros(len(times), dtype=np.int64) if which is None else which, names),
            *remarks(len(good), series.losses, options),
        ),
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """Columns of the file, one entry a row; the times are in the one that is called `time`.

    `uncounted` is what one is called that looks like counts, although rows are counted here.
    """

    time: str
    times: IntArray
    values: FloatArray | None
    persons: TextColumn | None
    series: TextColumn | None
    uncounted: str | None

    @property
    def good(self) -> NDArray[np.bool_]:
        """Which rows can be read."""
        good = self.times >= 0
        if self.values is not None:
            good &= np.isfinite(self.values)
        if self.persons is not None and "" in self.persons.labels:
            good &= self.persons.codes != self.persons.labels.index("")
        return np.asarray(good)


def _read(file: TableFile, options: SeriesOptions) -> _Rows:
    time = time_column(file, options)
    if time is None:
        raise InputError(
            f"--time: say which column has the times. {file.path.name} has: {', '.join(file.names)[:500]}. (If it has "
            "one row for each hour or day already, give --counts as well.)"
        )
    given = {"--value": options.value, "--person": options.person, "--series-by": options.series_by}
    named = {option: column_named(file, option, name) for option, name in given.items() if name is not None}
    called = count_columns(file, (time, *named.values()), options)
    cells = read_columns(file, [time, *named.values(), *called])

    def of(option: str, read: Callable[[Any, str], Any]) -> Any:
        return read(cells[named[option]], named[option]) if option in named else None

    times = column_times(cells[time], time)
    uncounted = next((name.strip() for name in called if look_like_counts(cells[name], name)), None)
    return _Rows(
        time,
        times,
        of("--value", column_numbers),
        of("--person", column_texts),
        of("--series-by", column_texts),
        uncounted,
    )


def _expected(options: SeriesOptions) -> str:
    """What a row must have, whatever is wrong with those that are there: of them nothing is told."""
    value = "" if options.value is None else f"; column {options.value} has numbers, such as 12.5"
    person = "" if options.person is None else f"; column {options.person} is not empty"
    return (
        f"In a row that can be read the time is {TIME_FORMS}{value}{person}; and it is one line, with a cell a column."
    )


def _unreadable(file: TableFile, good: NDArray[np.bool_]) -> list[str]:
    said = []
    if not good.all():
        number, first = int((~good).sum()), file.place(int(np.argmin(good)))
        where = first if number == 1 else f"the first is {first}"
        said.append(f"{number:,} of {len(good):,} rows left out, because they cannot be read ({where})")
    if not len(good):
        said.append(f"there are no rows: {NOISE}")
    if file.left_out:
        said.append(f"{counted(file.left_out, 'line')} left out: {ODD_LINES}")
    return said


def _hides(options: SeriesOptions, series: BoundedSeries) -> str:
    """What the claim covers, in a sentence."""
    together = "" if len(series.values) == 1 else f", in all {len(series.values)} series together"
    most = f"{series.contribution:g}"
    if options.person is not None:
        events = "1 event of each person counts" if most == "1" else f"{most} events of each person count"
        what = f"a value of {most} of each person counts" if options.value else events
        return f"This hides all that one person did{together}: at most {what}; which ones is drawn by lot."
    value = f", up to a value of {most}" if options.value else ""
    return f"This hides each event{value}: whether it happened or not. Someone who has many events is hidden less."
