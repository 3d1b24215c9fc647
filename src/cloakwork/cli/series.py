"""`cloakwork series`: publish a private series of events or counts."""

from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from cloakwork.cli.arguments import Json, argument, option, reads, with_option_names
from cloakwork.cli.output import note, part_of, print_json, refuse_input, refuse_unwritable, say, working
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

_FORMS = {"out": (".csv", ".parquet"), "plot": (".png", ".svg", ".pdf")}
_MOSTLY_NOISE = 0.8  # of the typical level
_REMEDIES = {"series_by": " Give --series-by to tell several series apart."}
_GOES_WITH = {  # options that need another one
    "most_per_event": "value",
    "step": "value",
    "most_per_person": "person",
    "separation": "person",
    "contribution": "counts",
    "names": "series_by",
}
_EXCLUDES = {"counts": ("value", "person")}  # options that rule out others
_NEEDS = (  # options that need one of some others
    ("value", {"most_per_event", "most_per_person"}, "give --most-per-event, the most that one event may count."),
    ("person", {"most_per_person"}, "give --most-per-person: how many events, or how much value, of one may count."),
    ("counts", {"every"}, "give --every, the time between two rows. It is public, as --from and --to are."),
)
row = partial(option, panel="What each row is")


def _check_output(option: typer.CallbackParam, path: Path | None) -> Path | None:
    """Refuse a file that cannot be written, before the work rather than after it."""
    forms = _FORMS[option.name or ""]
    if path is not None and path.suffix.lower() not in forms:
        raise InputError(f"{option.opts[0]} {path.name}: give a name that ends in {', '.join(forms)}.")
    if path is not None:
        refuse_unwritable(option.opts[0], path)
    return path


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
    time: Annotated[
        str | None,
        row("Times, ISO 8601 or Unix; default: one called time, timestamp or date.", metavar="COLUMN"),
    ] = None,
    every: Annotated[str | None, option("Length of a bin: 15m, 1h (default), 1d, 1w.", metavar="SPAN")] = None,
    start: Annotated[
        str | None, option("Start of the first bin; public, so it is needed.", "--from", metavar="TIME")
    ] = None,
    end: Annotated[str | None, option("End of the last bin; public, so it is needed.", "--to", metavar="TIME")] = None,
    value: Annotated[str | None, row("Add up this column instead of counting events.", metavar="COLUMN")] = None,
    most_per_event: Annotated[
        float | None,
        row("With --value: the most that one event adds; more is clipped.", metavar="AMOUNT"),
    ] = None,
    step: Annotated[
        float | None, row("With --value: what the value of each event is rounded to.", metavar="AMOUNT")
    ] = None,
    person: Annotated[
        str | None, row("Person of each event: hides everything that one person did.", metavar="COLUMN")
    ] = None,
    most_per_person: Annotated[
        float | None,
        row("With --person: how many events (or how much value) of one count.", metavar="K"),
    ] = None,
    separation: Annotated[
        str | None,
        row(
            "With --person: a person counts once within this time, for less noise; take half the natural cycle.",
            metavar="SPAN",
        ),
    ] = None,
    counts: Annotated[
        str | None, row("The file has one row for each bin: whole numbers to publish.", metavar="COLUMN")
    ] = None,
    contribution: Annotated[
        int | None, row("With --counts: how much one event or person adds; default 1.", metavar="K")
    ] = None,
    series_by: Annotated[
        str | None, row("One series for each name in this column, such as a door.", metavar="COLUMN")
    ] = None,
    names: Annotated[str | None, row("With --series-by: its names; public.", metavar="A,B,...")] = None,
    out: Annotated[Path, option("File to write: .csv or .parquet.", "--out", callback=_check_output)] = Path(
        "published.csv"
    ),
    plot: Annotated[Path | None, option("Picture to write, with a band for the error.", callback=_check_output)] = None,
    json: Json = False,
) -> None:
    """Publish a private series of events or counts, smoothed or added up, that does not reveal any single event.

    For example: cloakwork series visits.csv --filter average:24 --from 2026-10-01 --to 2026-11-01 --plot visits.png
    """
    level = "user" if person else "event"
    bound = "contribution" if counts is not None else "most_per_person" if person else "most_per_event" if value else ""
    try:
        _check_options(context)
        made = parse_filters(filters or ())
        listed = [] if names is None else [name.strip() for name in names.split(",")]
        added = 1 if contribution is None else contribution
        width = HOUR if every is None else parse_span("--every", every)
        period = parse_moment("--from", start or ""), parse_moment("--to", end or "")
        bins = Bins.between(*period, every=width, series=max(len(listed), 1))
        size = source.stat().st_size if source.is_file() else bins.end - bins.start
        with working("reading", size) as progress:
            common: dict[str, Any] = {"time": time, "series_by": series_by, "names": listed, "progress": progress}
            if counts is not None:
                counted = read_counts(source, counts, bins, contribution=added, **common)
            else:
                apart = None if separation is None else _whole_bins(separation, width)
                limits: dict[str, Any] = {"most_per_event": most_per_event, "most_per_person": most_per_person}
                limits |= {"value": value, "step": step, "person": person, "separation": apart}
                counted = count_events(source, bins, **limits, **common)
        old = [path for path in (out, plot) if path is not None and path.is_file()]
        with working("publishing"):
            published = counted.cloak(made, epsilon=epsilon, delta=delta).release(counted.values)
            _write(counted, published, out, plot)
    except InputError as problem:
        text = str(problem).replace("contribution=", f"{bound}=" if bound else "a contribution of ")
        remedy = _REMEDIES.get(str(problem.values.get("remedy")), "")
        raise type(problem)(text + remedy, **problem.values) from None
    for text in counted.notes:
        note(with_option_names(text, context))
    if counted.remarks:
        note("\n  - ".join(["not covered by the claim, and not to be published:", *counted.remarks]))
    if json:
        print_json(_summary(counted, published, level, out, plot))
    else:
        advice = "--contribution is how much one event or person may add." if counts is not None else ""
        if not person and counts is None:
            advice = "To hide everything that one person did, give --person."
        _say_summary(counted, published, advice)
    note("wrote " + " and ".join(f"over {path}" if path in old else str(path) for path in (out, plot) if path))


def _check_options(context: typer.Context) -> None:
    """Refuse options that do not go together, or that would change nothing."""
    options = context.params
    given = {name for name, value in options.items() if value is not False and value not in (None, (), [])}
    called = {each.name or "": each.opts[0] for each in context.command.params}
    for name, needed in _GOES_WITH.items():
        if name in given and needed not in given:
            raise InputError(f"{called[name]}: this goes with {called[needed]}.")
    for name, excluded in _EXCLUDES.items():
        others = ", ".join(called[other] for other in excluded if name in given and other in given)
        if others:
            raise InputError(f"{others}: this does not go with {called[name]}.")
    for name, one_of, text in _NEEDS:
        if name in given and not given & one_of:
            raise InputError(f"{called[name]}: {text}")
    if not {"start", "end"} <= given:
        raise InputError("--from, --to: give the period. It is public, so it is never taken from the data.")
    for path in (options["out"], options["plot"] or options["out"]):
        refuse_input(path, options["source"])


def _whole_bins(separation: str, width: int) -> int:
    """The number of bins between two visits of a person that count."""
    span = parse_span("--separation", separation)
    if span % width:
        raise InputError(f"--separation {separation}: give a whole number of bins of {span_text(width)}.")
    return span // width


def _write(counted: Counts, published: Published, out: Path, plot: Path | None) -> None:
    """Write all files, or none."""
    with ExitStack() as stack:
        write_published(counted, published, stack.enter_context(part_of(out)), out.suffix)
        if plot is not None:
            from cloakwork.series import write_picture  # noqa: PLC0415 - Matplotlib is slow to load

            write_picture(counted, published, stack.enter_context(part_of(plot)), plot.suffix.lower())


def _costs(published: Published) -> list[dict[str, Any]]:
    """The error of each filter beside the mean size of its published values, both public."""
    cloak = published.cloak
    roots = np.sqrt(cloak.expected_mses).tolist()
    levels = np.abs(published.values).mean(axis=(1, 2)).tolist()
    shares = [root / level if level else None for root, level in zip(roots, levels, strict=True)]
    return [
        {"name": made.name, "root_mean_square_error": root, "typical_level": level, "share": share}
        for made, root, level, share in zip(cloak.filters, roots, levels, shares, strict=True)
    ]


def _say_summary(counted: Counts, published: Published, advice: str) -> None:
    cloak, bins = published.cloak, counted.bins
    each = f" for each of {len(counted.names):,} series" if len(counted.names) > 1 else ""
    length = f"{cloak.n:,} bin{'' if cloak.n == 1 else 's'} of {span_text(bins.every)}"
    say(f"{counted.title}: {length}{each}, from {utc_text(bins.start)} to {utc_text(bins.end)}")
    say(f"{counted.hides} {advice}".strip())
    for cost in _costs(published):
        level = "about as large as the values: use longer bins (--every), a wider filter or a larger --epsilon"
        if cost["share"] is not None and cost["share"] < _MOSTLY_NOISE:
            level = f"{100 * cost['share']:.2g} % of the typical level"
        say(f"  {cost['name']}: off by {cost['root_mean_square_error']:.3g} (root mean square), {level}")
    say(f"spent: epsilon {cloak.epsilon:g}, delta {cloak.delta:g}. Publishing more about the same data spends more.")


def _summary(counted: Counts, published: Published, level: str, out: Path, plot: Path | None) -> dict[str, object]:
    cloak, bins, explained = published.cloak, counted.bins, published.cloak.explain()
    return {
        "source": counted.title,
        "from": utc_text(bins.start),
        "to": utc_text(bins.end),
        "every_seconds": bins.every / 1000,
        "bins": cloak.n,
        "series": list(counted.names),
        "level": level,
        "hides": counted.hides,
        "contribution": cloak.contribution.total * cloak.step,
        "step": cloak.step,
        "epsilon": cloak.epsilon,
        "delta": cloak.delta,
        "filters": _costs(published),
        "expected_mse": cloak.expected_mse,
        "out": str(out),
        "plot": None if plot is None else str(plot),
        "explanation": asdict(explained) | {"hidden": [counted.hides, *explained.hidden[:1]]},
    }
