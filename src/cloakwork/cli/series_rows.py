"""What files of events and files of counts have in common."""

import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import IntArray
from cloakwork.cli.output import bar, counted
from cloakwork.cli.series_given import SeriesOptions
from cloakwork.errors import InputError
from cloakwork.readings import TableFile, TextColumn, column_numbers
from cloakwork.series import Losses

GUESSED = (("time", "timestamp"), ("date", "datetime"))
UNTIMED = "none"
_COUNTS = re.compile(r"^(n|number|total|events|visits|visitors)$|(^|[ _-])counts?$")
_MOSTLY = 0.9  # of the rows
NOISE = "what is published is noise"
_MOST_NAMES = 10
ODD_LINES = "too few or too many cells, a quotation mark that is not closed in the same line, or not UTF-8"


def column_named(file: TableFile, option: str, name: str) -> str:
    """The file's own spelling of the column that an option names."""
    try:
        return file.column(name)
    except InputError as problem:
        raise InputError(f"{option} {problem}", **problem.values) from None


def read_columns(file: TableFile, names: Sequence[str]) -> dict[str, Any]:
    """Read columns, with a progress bar."""
    with bar("reading", file.size) as progress:
        return file.read(names, progress)


def time_column(file: TableFile, options: SeriesOptions) -> str | None:
    """The column of the times: the one that was named, or the only one that is called so."""
    named = [name.strip() for name in file.names]
    if options.time == UNTIMED and UNTIMED not in named and options.counts is not None:
        return None
    if options.time is not None:
        return column_named(file, "--time", options.time)
    for words in GUESSED:
        guessed = [name for name in file.names if name.strip().lower() in words]
        if guessed:
            return guessed[0] if len(guessed) == 1 else None
    return None


def time_notes(time: str | None, options: SeriesOptions) -> tuple[str, ...]:
    """Which column was taken as that of the times where the command does not say."""
    if time is None or options.time is not None or (options.counts is None and time.strip().lower() in GUESSED[0]):
        return ()
    other = "another column" if options.counts is None else f"another column, or --time {UNTIMED} for rows without any"
    return (f"times are taken from column {time.strip()}: give --time for {other}.",)


def count_columns(file: TableFile, used: Collection[str], options: SeriesOptions) -> list[str]:
    """Columns that are called as counts are, and that a command which counts rows leaves out; often there is none."""
    if options.value is not None:
        return []
    plain = [name.strip().lower() for name in file.names]
    called = [name for name, word in zip(file.names, plain, strict=True) if _COUNTS.search(word)]
    return [name for name in called if name not in used and plain.count(name.strip().lower()) == 1]


def look_like_counts(column: Any, name: str) -> bool:
    """Whether nearly all cells are whole numbers, 0 or above, and not all of these are 1."""
    try:
        found = column_numbers(column, name)
    except InputError:
        return False
    whole = (found >= 0) & (found == np.rint(found))
    return bool(len(found) and whole.mean() >= _MOSTLY and (found[whole] != 1).any())


def uncounted(name: str | None, options: SeriesOptions) -> list[str]:
    """That each row counts as one event although a column looks like counts, in a line."""
    if name is None:
        return []
    counts = f"if it has counts already, one row a bin, give --counts {name}; " if options.person is None else ""
    return [
        f"each row counts as one event, and column {name} is not used, although it looks like counts: {counts}to add "
        f"up what is in it, give --value {name}"
    ]


def names_of(options: SeriesOptions, found: TextColumn, codes: IntArray) -> tuple[str, ...]:
    """What the series are called: as the command says, or as the rows with these codes do."""
    if options.names is None:
        names = tuple(sorted(found.labels[code] for code in np.unique(codes) if found.labels[code]))
        if not names:
            raise InputError("there is nothing to take the names of the series from: give --names.")
        return names
    names = tuple(name.strip() for name in options.names.split(","))
    if "" in names or len(set(names)) < len(names):
        raise InputError("--names: give each name once, with commas between them.")
    return names


def numbered(found: TextColumn, codes: IntArray, names: Sequence[str]) -> IntArray:
    """The number of the series that each code belongs to, -1 where it belongs to none."""
    places = {name: place for place, name in enumerate(names)}
    of_code = np.array([places.get(label, -1) for label in found.labels] or [-1], dtype=np.int64)
    return np.asarray(of_code[codes])


def taken_names(options: SeriesOptions) -> tuple[str, ...]:
    """Whether the names of the series were not given."""
    return ("--names",) if options.series_by is not None and options.names is None else ()


def absent(inside: NDArray[np.bool_], which: IntArray, names: Sequence[str], thing: str = "events") -> list[str]:
    """What of the period and the names has nothing in it, from which rows are inside and whose they are."""
    if not inside.any():
        return [f"no row lies in this period: {NOISE}"] if len(inside) else []
    there = set(np.unique(which[inside]).tolist())
    missing = [name for place, name in enumerate(names) if place not in there]
    if not missing:
        return []
    more = f" and {len(missing) - _MOST_NAMES} more" if len(missing) > _MOST_NAMES else ""
    return [f"{', '.join(missing[:_MOST_NAMES])}{more} had no {thing} in this period: {NOISE}"]


def lower(losses: Losses) -> list[str]:
    """How much limits took off, in a line."""
    share = 100 * losses.lower
    if not share:
        return []
    return [f"what is published is {abs(share):.3g} % {'lower' if share >= 0 else 'higher'} than what came"]


def remarks(rows: int, losses: Losses, options: SeriesOptions) -> list[str]:
    """What bounding did to the rows, for whoever has them."""
    most = options.most_per_event or options.most_per_person or 0
    found = (
        (losses.outside, "left out, because they are outside the period"),
        (losses.other_names, "left out, because their name is not among --names"),
        (losses.clipped, f"clipped, because their value is not within 0 to {most:g}"),
        (losses.over_limit, "not counted, or not in full, because they are above the limit of their person"),
    )
    said = [f"{number:,} of {rows:,} rows {what}" for number, what in found if number]
    if losses.empty_bins:
        said.append(f"{counted(losses.empty_bins, 'bin')} without a row, counted as 0")
    return said + lower(losses)
