"""`cloakwork series`."""

import os
from contextlib import ExitStack
from pathlib import Path

from cloakwork.cli.output import busy, note, part_of, refuse_input, refuse_unwritable
from cloakwork.cli.series_claim import cloak_of
from cloakwork.cli.series_coefficients import described
from cloakwork.cli.series_filters import parse_filters
from cloakwork.cli.series_given import Given, SeriesOptions
from cloakwork.cli.series_input import from_file
from cloakwork.cli.series_output import published_table, report, say_written, warn, write_table
from cloakwork.errors import InputError
from cloakwork.privacy import check_claim
from cloakwork.series import Coefficients, Published

PICTURES = {".png", ".svg", ".pdf"}


def run_series(options: SeriesOptions) -> None:
    """Publish filters of a private series, once, and say what that cost."""
    check_claim(options.epsilon, options.delta)
    filters = parse_filters(options.filters)
    _check_names(options)
    for text, one in zip(options.filters, filters, strict=True):
        if isinstance(one, Coefficients):
            note(f"{text}: {described(one)}")
    given = _given(options)
    warn(given)
    old = [path for path in (options.out, options.plot) if path is not None and path.is_file()]
    with busy("publishing"):
        published = cloak_of(given, filters, options).release(given.series.values)
        _write(given, published, options)
    report(given, published, options)
    say_written(options, old)


def _check_names(options: SeriesOptions) -> None:
    """Refuse names of files that would not work, before the work and not after it."""
    inputs = (options.source, *(Path(text) for text in options.filters if text.lower().endswith(".csv")))
    if options.out.suffix not in {".csv", ".parquet"}:
        raise InputError(f"--out {options.out.name}: the name says the form: give one that ends in .csv or .parquet.")
    refuse_input(options.out, *inputs)
    refuse_unwritable("--out", options.out)
    if options.plot is not None:
        if options.plot.suffix.lower() not in PICTURES:
            raise InputError(f"--plot {options.plot.name}: a picture is a .png, .svg or .pdf file.")
        refuse_input(options.plot, *inputs)
        refuse_unwritable("--plot", options.plot)
    elif options.compare:
        raise InputError("--compare without --plot: it draws the true series into the picture. Give --plot.")


def _given(options: SeriesOptions) -> Given:
    if options.from_store is None:
        return from_file(options)
    from cloakwork.cli.series_store import from_store  # noqa: PLC0415 - a file needs no database

    return from_store(options)


def _write(given: Given, published: Published, options: SeriesOptions) -> None:
    """Write all files, or none."""
    with ExitStack() as stack:
        part = stack.enter_context(part_of(options.out))
        write_table(published_table(given, published), part, options.out.suffix)
        if options.plot is not None:
            from cloakwork.cli.series_picture import draw_series  # noqa: PLC0415 - slow to load, and seldom wanted

            picture = stack.enter_context(part_of(options.plot))
            if options.compare and picture != options.plot.resolve():
                os.close(os.open(picture, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # its owner's alone
            draw_series(picture, options.plot.suffix.lower(), given, published, compare=options.compare)
