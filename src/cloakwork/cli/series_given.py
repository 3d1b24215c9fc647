"""What `cloakwork series` is asked for, and what it is given to publish."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cloakwork.cli.moments import parse_moment, shown
from cloakwork.cli.output import counted
from cloakwork.cli.series_filters import shown_span
from cloakwork.errors import InputError
from cloakwork.series import Bins, BoundedSeries
from cloakwork.series.events import LARGEST, SMALLEST

DEFAULT_EVERY = "1h"
MOST_VALUES = 2**24
MOST_UNITS = 10**9  # that one event or person may add: for more, no noise is large enough but at absurd claims
_MONDAY = 4 * 86_400_000  # the first one after the beginning of 1970
_WEEK = 7 * 86_400_000


@dataclass(frozen=True)
class SeriesOptions:
    """The command, as it was typed; None where an option was left out."""

    source: Path
    filters: Sequence[str]
    epsilon: float = 1.0
    delta: float = 1e-6
    time: str | None = None
    every: str | None = None
    start: str | None = None
    end: str | None = None
    value: str | None = None
    most_per_event: float | None = None
    step: float | None = None
    person: str | None = None
    most_per_person: float | None = None
    counts: str | None = None
    contribution: float | None = None
    series_by: str | None = None
    names: str | None = None
    from_store: str | None = None
    zones: Sequence[str] = ()
    count: str | None = None
    visit: str | None = None
    most_at_once: float | None = None
    out: Path = Path("published.csv")
    plot: Path | None = None
    compare: bool = False
    json: bool = False

    def refuse(self, why: str, **given: object) -> None:
        """Refuse those of the named options that were given: they would change nothing."""
        named = ", ".join(f"--{name.replace('_', '-')}" for name, value in given.items() if value not in (None, ()))
        if named:
            raise InputError(f"{named}: {why}")


@dataclass(frozen=True, eq=False)
class Given:
    """Private series to publish, and what is said about them.

    `hides` says what the claim covers, `advice` what to do if that is not enough. `bins` is None where rows have no
    time, `names` is empty for one series without a name, and `taken` says what was read off the data although it will
    be public. `bound` is the option that says how much one may change, empty where each event counts 1. `what` is what
    the values are, for the axis of a picture. `notes` say how the command was understood; `remarks` are about the true
    data: for the terminal only.
    """

    series: BoundedSeries
    names: tuple[str, ...]
    bins: Bins | None
    level: str
    hides: str
    title: str
    bound: str = ""
    what: str = "events"
    advice: str = ""
    taken: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = field(default=(), repr=False)

    @property
    def limited(self) -> bool:
        """Whether limits may have cut off some of the data; that there are limits is public, what they cut is not."""
        return self.level != "event" or self.series.step is not None


def period(options: SeriesOptions, first: int | None, last: int | None, every: int, *, grid: int | None = None) -> Bins:
    """The bins from --from to --to; what was left out of the two is taken from the `first` and the `last` time.

    `grid` is a moment at which a bin begins where neither was given; else they begin at whole hours, days or Mondays.
    """
    start, end = parse_moment("--from", options.start), parse_moment("--to", options.end)
    if (start is None or end is None) and (first is None or last is None):
        raise InputError("there is nothing to take the period from: give --from and --to.")
    if start is None:
        anchor = end if end is not None else grid if grid is not None else _MONDAY if every % _WEEK == 0 else 0
        start = anchor + (int(first or 0) - anchor) // every * every
    if end is None:
        end = start + (int(last or 0) - start) // every * every + every
    if end <= start:
        raise InputError(
            f"the period from {shown(start)} to {shown(end)} is empty: give --from before --to, and a period that "
            "there is something in."
        )
    if (end - start) % every:
        low = start + (end - start) // every * every
        near = shown(low + every) if low == start else f"{shown(low)} or {shown(low + every)}"
        raise InputError(
            f"from {shown(start)} to {shown(end)} is no whole number of bins of {shown_span(every)}: give --to {near}, "
            "or another --every."
        )
    return Bins.between(start, end, every=every)


def check_size(bins: int, series: int) -> None:
    """Refuse what would take all memory, most likely by mistake."""
    if bins * series > MOST_VALUES:
        raise InputError(
            f"{counted(bins, 'bin')} for each of {series:,} series are more than {MOST_VALUES:,} values: give a "
            "shorter period with --from and --to, or a coarser --every."
        )


def check_bound(option: str, given: float | None) -> None:
    """Refuse a bound that is no number above 0, or so small or large that it is a mistake."""
    if given is not None and not SMALLEST <= given <= LARGEST:
        raise InputError(f"{option} {given:g}: give a number above 0, between {SMALLEST:g} and {LARGEST:g}.")


def check_whole(option: str, given: float | None, what: str) -> None:
    """Refuse a bound that is no whole number above 0, or so large that it is a mistake."""
    if given is not None and not (1 <= given <= MOST_UNITS and given == int(given)):
        raise InputError(f"{option} {given:g}: give a whole number{what}, from 1 to {MOST_UNITS:,}.")


def taken_period(options: SeriesOptions) -> tuple[str, ...]:
    """Which ends of the period were not given."""
    ends = (("--from", options.start, "first"), ("--to", options.end, "last"))
    return tuple(f"{name} (the {which} time)" for name, given, which in ends if given is None)
