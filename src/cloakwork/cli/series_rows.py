"""What files of events and files of counts have in common."""

from collections.abc import Sequence

import numpy as np

from cloakwork._checks import IntArray
from cloakwork.cli.output import counted
from cloakwork.cli.series_given import SeriesOptions
from cloakwork.cli.series_table import TableFile
from cloakwork.errors import InputError
from cloakwork.series import Losses
from cloakwork.series.events import Words

GUESSED = ("time", "timestamp")
ODD_LINES = "too few or too many cells, a quotation mark that is not closed in the same line, or not UTF-8"


def time_column(file: TableFile, options: SeriesOptions) -> str | None:
    """The column of the times: the one that was named, or the only one that is called so."""
    if options.time is not None:
        return file.column("--time", options.time)
    guessed = [name for name in file.names if name.strip().lower() in GUESSED]
    return guessed[0] if len(guessed) == 1 else None


def names_of(options: SeriesOptions, found: Words, codes: IntArray) -> tuple[str, ...]:
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


def numbered(found: Words, codes: IntArray, names: Sequence[str]) -> IntArray:
    """The number of the series that each code belongs to, -1 where it belongs to none."""
    places = {name: place for place, name in enumerate(names)}
    of_code = np.array([places.get(label, -1) for label in found.labels] or [-1], dtype=np.int64)
    return np.asarray(of_code[codes])


def taken_names(options: SeriesOptions) -> tuple[str, ...]:
    """Whether the names of the series were not given."""
    return ("--names",) if options.series_by is not None and options.names is None else ()


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
    return said
