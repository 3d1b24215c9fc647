"""The options of `cloakwork series`."""

from pathlib import Path
from typing import Annotated

import typer

from cloakwork.cli.arguments import Json, no_password


def series(
    source: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="CSV or Parquet file of events or counts; with --from-store a site file."),
    ],
    filters: Annotated[
        list[str],
        typer.Option(
            "--filter",
            metavar="FILTER",
            help="running-sum, window:24, average:24, decay:0.9, power:1, trend:24, seasonal:24x4 or a CSV file of "
            "coefficients; widths are in bins, window:1 is each bin as it is. Again for more: they share the claim.",
        ),
    ],
    epsilon: Annotated[float, typer.Option(help="How well it hides, small is better; each run spends it anew.")] = 1.0,
    delta: Annotated[float, typer.Option(help="How likely it may fail, at the most; each run spends it anew.")] = 1e-6,
    time: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Times, ISO 8601 or Unix; else one called time, timestamp or date."),
    ] = None,
    every: Annotated[
        str | None, typer.Option(metavar="SPAN", help="How long a bin is: 15m, 1h, 1d or 1w. 1h if left out.")
    ] = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="When the first bin begins; public.")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="When the last bin ends; public.")] = None,
    value: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Add this up, instead of counting events.")
    ] = None,
    most_per_event: Annotated[
        float | None, typer.Option(metavar="AMOUNT", help="With --value: the most that an event adds; more is clipped.")
    ] = None,
    step: Annotated[
        float | None, typer.Option(metavar="AMOUNT", help="With --value: what each event's value is rounded to.")
    ] = None,
    person: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Whose event it is: hides all that one person did.")
    ] = None,
    most_per_person: Annotated[
        float | None, typer.Option(metavar="K", help="With --person: how many events (or how much value) of one count.")
    ] = None,
    counts: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The file has one row a bin: whole numbers to publish.")
    ] = None,
    contribution: Annotated[
        float | None, typer.Option(metavar="K", help="With --counts: how much one event or person adds; 1 if left out.")
    ] = None,
    series_by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="One series for each name in this column, such as a door.")
    ] = None,
    names: Annotated[str | None, typer.Option(metavar="A,B,...", help="Which names there are; public.")] = None,
    from_store: Annotated[
        str | None,
        typer.Option(metavar="URL", callback=no_password, help="What a collector has recovered of a site instead."),
    ] = None,
    zone: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Of a store: a zone of the site, again for more, or all.")
    ] = None,
    count: Annotated[
        str | None, typer.Option(metavar="sources", help="Of a store: how many sources there are, in all.")
    ] = None,
    visit: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Of a store: how long a hidden visit may be; a bin if left out.")
    ] = None,
    most_at_once: Annotated[
        float | None, typer.Option(metavar="K", help="Of a store: the most that counts at once; 1 in a zone.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="File to write: .csv or .parquet.")] = Path("published.csv"),
    plot: Annotated[Path | None, typer.Option(help="Picture to write, with a band for the error.")] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Draw the true series, too. Not private: not to be shared.")
    ] = False,
    json: Json = False,
) -> None:
    """Publish a private series of events or counts, smoothed or added up, such that no single one shows.

    For example: cloakwork series visits.csv --filter average:24 --from 2026-10-01 --to 2026-11-01 --plot visits.png
    """
    from cloakwork.cli.series import run_series  # noqa: PLC0415 - help is quick
    from cloakwork.cli.series_given import SeriesOptions  # noqa: PLC0415

    run_series(
        SeriesOptions(
            source=source,
            filters=filters,
            epsilon=epsilon,
            delta=delta,
            time=time,
            every=every,
            start=start,
            end=end,
            value=value,
            most_per_event=most_per_event,
            step=step,
            person=person,
            most_per_person=most_per_person,
            counts=counts,
            contribution=contribution,
            series_by=series_by,
            names=names,
            from_store=from_store,
            zones=zone or (),
            count=count,
            visit=visit,
            most_at_once=most_at_once,
            out=out,
            plot=plot,
            compare=compare,
            json=json,
        )
    )
