"""`cloakwork series`: publish a private series of events or counts."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from cloakwork.cli.arguments import PICTURES, Json, argument, option, reads, with_option_names, writes
from cloakwork.cli.files import part_of
from cloakwork.cli.output import note, working
from cloakwork.cli.report import Row, render
from cloakwork.cli.time_arguments import parse_moment, parse_span
from cloakwork.errors import InputError
from cloakwork.series import (
    HOUR,
    Bins,
    Counts,
    Published,
    count_events,
    parse_filters,
    read_counts,
    span_text,
    utc_text,
    write_published,
)

MOSTLY_NOISE = 0.8  # of the typical level
REMEDIES = {"series_by": " Give --series-by to tell several series apart."}
row = partial(option, panel="What each row is")


def series(
    context: typer.Context,
    source: Annotated[Path, argument("File of events or counts, in any form.", metavar="FILE", callback=reads())],
    filters: Annotated[
        list[str] | None,
        option(
            "running-sum, window:24, average:24, decay:0.9, power:1, trend:24, seasonal:24x4 or any taps, such as "
            "taps:0.5,0.25; widths are in bins, window:1 is each bin as it is. Repeat for more: they share the "
            "guarantee.",
            "--filter",
            metavar="FILTER",
        ),
    ] = None,
    epsilon: Annotated[float, option("Privacy loss, smaller hides more; each run spends it again.")] = 1.0,
    delta: Annotated[float, option("About the probability that the guarantee fails; spent again.")] = 1e-6,
    start: Annotated[
        int | None,
        option(
            "Start of the first bin; public, so it is needed.",
            "--from",
            metavar="TIME",
            parser=parse_moment,
        ),
    ] = None,
    end: Annotated[
        int | None,
        option("End of the last bin; public, so it is needed.", "--to", metavar="TIME", parser=parse_moment),
    ] = None,
    every: Annotated[
        int | None, option("Length of a bin: 15m, 1h (default), 1d, 1w.", metavar="SPAN", parser=parse_span)
    ] = None,
    time: Annotated[
        str | None,
        row("Times, ISO 8601 or Unix; default: one called time, timestamp or date.", metavar="COLUMN"),
    ] = None,
    value: Annotated[str | None, row("Add up this column instead of counting events.", metavar="COLUMN")] = None,
    most_per_event: Annotated[
        float | None, row("With --value: the most that one event adds; more is clipped.", metavar="AMOUNT")
    ] = None,
    person: Annotated[
        str | None, row("Person of each event: hides everything that one person did.", metavar="COLUMN")
    ] = None,
    most_per_person: Annotated[
        float | None,
        row(
            "With --person: how many events (or how much value) of one count. With --counts: how much one event or "
            "person adds; default 1.",
            metavar="K",
        ),
    ] = None,
    separation: Annotated[
        int | None,
        row(
            "With --person: a person counts once within this time, for less noise; take half the natural cycle.",
            metavar="SPAN",
            parser=parse_span,
        ),
    ] = None,
    counts: Annotated[
        str | None, row("The file has one row for each bin: whole numbers to publish.", metavar="COLUMN")
    ] = None,
    series_by: Annotated[
        str | None, row("One series for each name in this column, such as a door.", metavar="COLUMN")
    ] = None,
    names: Annotated[str | None, row("With --series-by: its names; public.", metavar="A,B,...")] = None,
    out: Annotated[
        Path, option("File to write: .csv or .parquet.", "--out", callback=writes(".csv", ".parquet"))
    ] = Path("published.csv"),
    plot: Annotated[
        Path | None, option("Picture to write, with a band for the error.", callback=writes(*PICTURES))
    ] = None,
    json: Json = False,
) -> None:
    """Publish a private series of events or counts, smoothed or added up, that does not reveal any single event.

    For example: cloakwork series visits.csv --filter average:24 --from 2026-10-01 --to 2026-11-01 --plot visits.png
    """
    if start is None or end is None:
        raise InputError("--from, --to: give the period. It is public, so it is never taken from the data.")
    if counts is not None and (value is not None or person is not None or every is None):
        raise InputError("--counts: give --every, the time between two rows, and neither --value nor --person.")
    listed, width = [] if names is None else [name.strip() for name in names.split(",")], every or HOUR
    if counts is not None and (most_per_person or 1) % 1:
        raise InputError(f"--most-per-person {most_per_person:g}: with --counts, give a whole number.")
    if separation is not None and separation % width:
        raise InputError(f"--separation: give a whole number of bins of {span_text(width)}.")
    try:
        made = parse_filters(filters or ())
        bins = Bins.between(start, end, every=width, series=max(len(listed), 1))
        size = source.stat().st_size if source.is_file() else bins.end - bins.start
        with working("reading", size) as progress:
            common: dict[str, Any] = {"time": time, "series_by": series_by, "names": listed, "progress": progress}
            if counts is not None:
                counted = read_counts(source, counts, bins, contribution=int(most_per_person or 1), **common)
            else:
                limits: dict[str, Any] = {"most_per_event": most_per_event, "most_per_person": most_per_person}
                apart = separation and separation // width
                counted = count_events(source, bins, value=value, person=person, separation=apart, **limits, **common)
        old = [path for path in (out, plot) if path is not None and path.is_file()]
        with working("publishing"):
            published = counted.cloak(made, epsilon=epsilon, delta=delta).release(counted.values)
            _write(counted, published, out, plot)
    except InputError as problem:
        limit = "most_per_event" if value and not person else "most_per_person" if counts or person else ""
        text = str(problem).replace("contribution=", f"{limit}=" if limit else "a contribution of ")
        raise type(problem)(text + REMEDIES.get(str(problem.values.get("remedy")), ""), **problem.values) from None
    for text in counted.notes:
        note(with_option_names(text, context))
    if counted.remarks:
        note("\n  - ".join(["not covered by the claim, and not to be published:", *counted.remarks]))
    level = "user" if person else "event"
    render(SeriesReport(counted, published, level, out, plot), json=json)
    if not person and counts is None:
        note("to hide everything that one person did, give --person")
    note("wrote " + " and ".join(f"over {path}" if path in old else str(path) for path in (out, plot) if path))


def _write(counted: Counts, published: Published, out: Path, plot: Path | None) -> None:
    """Write the table and the picture, or neither."""
    with ExitStack() as stack:
        write_published(counted, published, stack.enter_context(part_of(out)), out.suffix.lower())
        if plot is not None:
            from cloakwork.series import write_picture  # noqa: PLC0415 - Matplotlib is slow to load

            write_picture(counted, published, stack.enter_context(part_of(plot)), plot.suffix.lower())


@dataclass(frozen=True, eq=False)
class SeriesReport:
    """What was published, at which privacy, and how far it is off; nothing in it is private."""

    counted: Counts
    published: Published
    level: str
    out: Path
    plot: Path | None

    def as_dict(self) -> Mapping[str, Any]:
        """Every public value."""
        cloak, counted, bins = self.published.cloak, self.counted, self.counted.bins
        explained = cloak.explain()
        return {
            "source": counted.title,
            "from": utc_text(bins.start),
            "to": utc_text(bins.end),
            "every_seconds": bins.every / 1000,
            "bins": cloak.n,
            "series": list(counted.names),
            "level": self.level,
            "hides": counted.hides,
            "contribution": cloak.contribution.total * cloak.step,
            **{name: getattr(cloak, name) for name in ("step", "epsilon", "delta", "expected_mse")},
            "filters": self._costs(),
            "out": str(self.out),
            "plot": None if self.plot is None else str(self.plot),
            "explanation": asdict(explained) | {"hidden": [counted.hides, *explained.hidden[:1]]},
        }

    def rows(self) -> Iterator[Row]:
        """What was published, what that hides, and what privacy costs."""
        cloak, bins, names = self.published.cloak, self.counted.bins, self.counted.names
        each = f" for each of {len(names):,} series" if len(names) > 1 else ""
        length = f"{cloak.n:,} bin{'' if cloak.n == 1 else 's'} of {span_text(bins.every)}"
        yield f"{self.counted.title}: {length}{each}, from {utc_text(bins.start)} to {utc_text(bins.end)}"
        yield self.counted.hides
        for cost in self._costs():
            level = "about as large as the values: use longer bins (--every), a wider filter or a larger --epsilon"
            if cost["share"] is not None and cost["share"] < MOSTLY_NOISE:
                level = f"{100 * cost['share']:.2g} % of the typical level"
            yield f"  {cost['name']}: off by {cost['root_mean_square_error']:.3g} (root mean square), {level}"
        spent = f"spent: epsilon {cloak.epsilon:g}, delta {cloak.delta:g}"
        yield f"{spent}. Publishing more about the same data spends more."

    def _costs(self) -> list[dict[str, Any]]:
        """The error of each filter, and its share of the mean size of its published values, both public."""
        cloak = self.published.cloak
        roots = np.sqrt(cloak.expected_mses).tolist()
        levels = np.abs(self.published.values).mean(axis=(1, 2)).tolist()
        shares = [root / level if level else None for root, level in zip(roots, levels, strict=True)]
        return [
            {"name": made.name, "root_mean_square_error": root, "typical_level": level, "share": share}
            for made, root, level, share in zip(cloak.filters, roots, levels, shares, strict=True)
        ]
