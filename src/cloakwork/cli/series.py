"""`cloakwork series`: publish a private series of events or counts."""

import os
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from cloakwork.cli.arguments import Json
from cloakwork.cli.output import as_json, bar, busy, note, note_secretly, part_of, refuse_input, refuse_unwritable, say
from cloakwork.cli.time_arguments import parse_moment, parse_span
from cloakwork.errors import InputError
from cloakwork.series import (
    HOUR,
    Bins,
    Coefficients,
    CountedSeries,
    Published,
    count_events,
    describe_coefficients,
    filter_costs,
    parse_filters,
    read_counts,
    span_text,
    utc_text,
    write_published,
)

_FORMS = {"out": (".csv", ".parquet"), "plot": (".png", ".svg", ".pdf")}
_OPTIONS = {"filters": "--filter", "start": "--from", "end": "--to"}  # others have their own names
_PARAMETER = re.compile(
    r"\b(?:(filters|epsilon|delta|time|every|start|end|value|step|person|counts|contribution|names|rows)=(?=\S)"
    r"|(most_per_event|most_per_person|series_by)(?:=(?=\S))?)"
)
_COST_KEYS = ("name", "root_mean_square_error", "typical_level", "share")
_REMEDIES = {
    "rows": " To take the rows in their order, whatever their times, give --rows instead of --from, --to and --every.",
    "series_by": " Give --series-by to tell several series apart.",
    "counts": " If it already has one row for each hour or day, give --counts; if these have no times, also --rows.",
}
_GOES_WITH = {  # options that need another one
    "most_per_event": "value",
    "step": "value",
    "most_per_person": "person",
    "contribution": "counts",
    "rows": "counts",
    "names": "series_by",
    "compare": "plot",
}
_EXCLUDES = {  # options that rule out others
    "counts": ("value", "person"),
    "rows": ("time", "every", "start", "end", "series_by"),
    "fullest": ("filters", "delta", "out", "plot", "compare"),
}
_NEEDS = (  # options that need one of some others
    ("value", {"most_per_event", "most_per_person"}, "give --most-per-event, the most that one event may count."),
    ("person", {"most_per_person"}, "give --most-per-person: how many events, or how much value, of one may count."),
    ("counts", {"rows", "every"}, "give --every, the time between two rows. It is public, as --from and --to are."),
)


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
    source: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="File of events or counts, in any form."),
    ],
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="FILTER",
            help="running-sum, window:24, average:24, decay:0.9, power:1, trend:24, seasonal:24x4 or a CSV file of "
            "coefficients; widths are in bins, window:1 is each bin as it is. Repeat for more: they share the claim.",
        ),
    ] = None,
    fullest: Annotated[
        bool, typer.Option("--fullest", help="Instead, name the series with nearly the largest sum; no delta.")
    ] = False,
    epsilon: Annotated[float, typer.Option(help="Privacy loss, smaller hides more; each run spends it anew.")] = 1.0,
    delta: Annotated[float, typer.Option(help="About the probability that the claim fails; spent anew.")] = 1e-6,
    time: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Times, ISO 8601 or Unix; default: one called time, timestamp or date."),
    ] = None,
    every: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Length of a bin: 15m, 1h (default), 1d, 1w.")
    ] = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Start of the first bin; public, so it is needed.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="End of the last bin; public, so it is needed.")
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Add up this column instead of counting events.")
    ] = None,
    most_per_event: Annotated[
        float | None,
        typer.Option(metavar="AMOUNT", help="With --value: the most that one event adds; more is clipped."),
    ] = None,
    step: Annotated[
        float | None, typer.Option(metavar="AMOUNT", help="With --value: what the value of each event is rounded to.")
    ] = None,
    person: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Person of each event: hides everything that one person did.")
    ] = None,
    most_per_person: Annotated[
        float | None, typer.Option(metavar="K", help="With --person: how many events (or how much value) of one count.")
    ] = None,
    counts: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The file has one row for each bin: whole numbers to publish.")
    ] = None,
    contribution: Annotated[
        float | None, typer.Option(metavar="K", help="With --counts: how much one event or person adds; default 1.")
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="With --counts: the number of rows, taken in their order instead of a period; public."
        ),
    ] = None,
    series_by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="One series for each name in this column, such as a door.")
    ] = None,
    names: Annotated[str | None, typer.Option(metavar="A,B,...", help="With --series-by: its names; public.")] = None,
    out: Annotated[Path, typer.Option("--out", callback=_check_output, help="File to write: .csv or .parquet.")] = Path(
        "published.csv"
    ),
    plot: Annotated[
        Path | None, typer.Option(callback=_check_output, help="Picture to write, with a band for the error.")
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Draw the true series as well. Not private: do not share it.")
    ] = False,
    json: Json = False,
) -> None:
    """Publish a private series of events or counts, smoothed or added up, that does not reveal any single event.

    For example: cloakwork series visits.csv --filter average:24 --from 2026-10-01 --to 2026-11-01 --plot visits.png
    """
    bound = "contribution"
    try:
        _check_options(context)
        made = () if fullest else parse_filters(filters or ())
        listed = [] if names is None else [name.strip() for name in names.split(",")]
        added = 1.0 if contribution is None else contribution
        if counts is not None and rows is not None:
            counted = read_counts(source, counts, rows, contribution=added)
        else:
            bins = Bins.between(
                parse_moment("--from", start or ""),
                parse_moment("--to", end or ""),
                every=HOUR if every is None else parse_span("--every", every),
                series=max(len(listed), 1),
            )
            size = source.stat().st_size if source.is_file() else bins.end - bins.start
            with bar("reading", size) as progress:
                if counts is not None:
                    counted = read_counts(
                        source,
                        counts,
                        bins,
                        contribution=added,
                        time=time,
                        series_by=series_by,
                        names=listed,
                        progress=progress,
                    )
                else:
                    counted = count_events(
                        source,
                        bins,
                        time=time,
                        value=value,
                        most_per_event=most_per_event,
                        step=step,
                        person=person,
                        most_per_person=most_per_person,
                        series_by=series_by,
                        names=listed,
                        progress=progress,
                    )
        bound = counted.bound
        if fullest:
            _note_input(counted, time, counts, person)
            _say_fullest(counted, counted.fullest(epsilon), epsilon, json=json)
            return
        old = [path for path in (out, plot) if path is not None and path.is_file()]
        with busy("publishing"):
            cloak = counted.series.cloak(made, epsilon=epsilon, delta=delta)
            published = cloak.release(counted.series.values)
            _write(counted, published, out, plot, compare=compare)
    except InputError as problem:
        raise _in_options(problem, bound) from None
    for text, used in zip(filters or (), made, strict=True):
        if isinstance(used, Coefficients):
            note(f"{text}: {describe_coefficients(used)}")
    _note_input(counted, time, counts, person)
    if json:
        as_json(_summary(counted, published, out, plot))
    else:
        _say_summary(counted, published, counts)
    note("wrote " + " and ".join(f"over {path}" if path in old else str(path) for path in (out, plot) if path))


def _check_options(context: typer.Context) -> None:
    """Refuse options that do not go together, or that would change nothing."""
    options, given = context.params, _given(context)
    for name, needed in _GOES_WITH.items():
        if name in given and needed not in given:
            raise InputError(f"{_option(name)}: this goes with {_option(needed)}.")
    for name, excluded in _EXCLUDES.items():
        others = ", ".join(_option(other) for other in excluded if name in given and other in given)
        if others:
            raise InputError(f"{others}: this does not go with {_option(name)}.")
    for name, one_of, text in _NEEDS:
        if name in given and not given & one_of:
            raise InputError(f"{_option(name)}: {text}")
    if "rows" not in given and not {"start", "end"} <= given:
        raise InputError("--from, --to: give the period. It is public, so it is never taken from the data.")
    inputs = (options["source"], *(Path(text) for text in options["filters"] or () if text.lower().endswith(".csv")))
    for path in (options["out"], options["plot"] or options["out"]):
        refuse_input(path, *inputs)


def _given(context: typer.Context) -> set[str]:
    """Names of the options that have a value, with --fullest of those that a person typed."""
    given = {name for name, value in context.params.items() if value is not False and value not in (None, (), [])}
    if "fullest" in given:
        return {name for name in given if getattr(context.get_parameter_source(name), "name", "") != "DEFAULT"}
    if "filters" not in given:
        raise InputError("give --filter, or --fullest to name the fullest of several series.")
    return given


def _in_options(problem: InputError, bound: str) -> InputError:
    """The same error in terms of options; `bound` is the parameter behind the contribution."""
    text = _PARAMETER.sub(
        lambda match: _option(match[1] or match[2], bound) + " " * match[0].endswith("="), str(problem)
    )
    parameter: Any = problem.values.get("parameter", ())
    named = [_option(name, bound) for name in ((parameter,) if isinstance(parameter, str) else parameter)]
    missing = ", ".join(option for option in named if option not in text)
    text = f"{missing}: {text}" if missing else text
    return InputError(text + _REMEDIES.get(str(problem.values.get("remedy")), ""), **problem.values)


def _option(parameter: str, bound: str = "contribution") -> str:
    if parameter == "contribution" and bound != parameter:
        return _option(bound) if bound else "a contribution of"
    return _OPTIONS.get(parameter, f"--{parameter.replace('_', '-')}")


def _note_input(counted: CountedSeries, time: str | None, counts: str | None, person: str | None) -> None:
    """Note how the command was understood, and how limits changed the data."""
    column, unused = counted.time_column, counted.unused_counts
    if column is not None and time is None and (counts is not None or column.lower() not in {"time", "timestamp"}):
        note(f"times are taken from column {column}: give --time for another column.")
    if unused is not None:
        ready = f"if it holds counts, one row for each bin, give --counts {unused}; " if person is None else ""
        note(
            f"each row counts as one event, and column {unused} is not used: {ready}to add up its values, give --value "
            f"{unused}."
        )
    note_secretly(counted.remarks)


def _write(counted: CountedSeries, published: Published, out: Path, plot: Path | None, *, compare: bool) -> None:
    """Write all files, or none."""
    with ExitStack() as stack:
        part = stack.enter_context(part_of(out))
        write_published(counted, published, part, out.suffix)
        if plot is not None:
            from cloakwork.series import draw_series  # noqa: PLC0415 - Matplotlib is slow to load

            picture = stack.enter_context(part_of(plot))
            if compare and picture != plot.resolve():
                os.close(os.open(picture, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # readable by its owner only
            draw_series(picture, plot.suffix.lower(), counted, published, compare=compare)


def _say_fullest(counted: CountedSeries, name: str, epsilon: float, *, json: bool) -> None:
    if json:
        as_json({"source": counted.title, "fullest": name, "of": list(counted.names), "epsilon": epsilon, "delta": 0.0})
        return
    say(f"fullest of {', '.join(counted.names)}: {name}")
    say(f"{counted.hides} The choice favours the largest sum over the period; another may have had more.")
    say(f"spent: epsilon {epsilon:g}, delta 0. Publishing more about the same data spends more.")


def _say_summary(counted: CountedSeries, published: Published, counts: str | None) -> None:
    cloak, bins = published.cloak, counted.bins
    each = f" for each of {len(counted.names):,} series" if len(counted.names) > 1 else ""
    if bins is None:
        say(f"{counted.title}: {cloak.n:,} values{each}")
    else:
        length = f"{cloak.n:,} bin{'' if cloak.n == 1 else 's'} of {span_text(bins.every)}"
        say(f"{counted.title}: {length}{each}, from {utc_text(bins.start)} to {utc_text(bins.end)}")
    advice = " To hide everything that one person did, give --person." if counted.level == "event" else ""
    if counts is not None:
        advice = " --contribution is how much one event or person may add."
    say(f"{counted.hides}{advice}")
    for cost in filter_costs(published):
        remedy = ": use longer bins (--every), a wider filter or a larger --epsilon" if cost.mostly_noise else ""
        say(f"  {cost.name}: {cost}{remedy}")
    say(f"spent: epsilon {cloak.epsilon:g}, delta {cloak.delta:g}. Publishing more about the same data spends more.")


def _summary(counted: CountedSeries, published: Published, out: Path, plot: Path | None) -> dict[str, object]:
    cloak, bins, explained = published.cloak, counted.bins, published.explain()
    costs = [(cost.name, cost.error, cost.typical, cost.share) for cost in filter_costs(published)]
    return {
        "source": counted.title,
        "from": None if bins is None else utc_text(bins.start),
        "to": None if bins is None else utc_text(bins.end),
        "every_seconds": None if bins is None else bins.every / 1000,
        "bins": cloak.n,
        "series": list(counted.names),
        "level": counted.level,
        "hides": counted.hides,
        "contribution": cloak.contribution,
        "step": None if cloak.whole else cloak.step,
        "epsilon": cloak.epsilon,
        "delta": cloak.delta,
        "filters": [dict(zip(_COST_KEYS, cost, strict=True)) for cost in costs],
        "expected_mse": cloak.expected_mse,
        "rounding_cost": cloak.rounding_cost,
        "papers_mse": cloak.papers_mse,
        "out": str(out),
        "plot": None if plot is None else str(plot),
        "explanation": {
            "hidden": [counted.hides, *explained.hidden[:1]],
            "not_hidden": list(explained.not_hidden),
            "cost": list(explained.cost),
            "drivers": list(explained.drivers),
        },
    }
