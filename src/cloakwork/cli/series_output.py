"""What `cloakwork series` writes and says. Nothing here but the remarks on standard error knows a true value."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from cloakwork._checks import FloatArray
from cloakwork.cli.moments import shown
from cloakwork.cli.output import as_json, counted, note, say
from cloakwork.cli.series_filters import shown_span
from cloakwork.cli.series_given import Given, SeriesOptions
from cloakwork.errors import InputError
from cloakwork.series import Published

DIGITS = 4  # of a standard deviation: what values are written to
MUCH = 0.8  # of the typical level: from here on there is hardly more than noise
NOTED = "not covered by the claim, and not to be published"


@dataclass(frozen=True)
class Cost:
    """What privacy cost one filter: its root mean square error, beside the typical level of what was published."""

    name: str
    error: float
    typical: float

    @property
    def share(self) -> float | None:
        """The error as a share of the typical level."""
        return self.error / self.typical if self.typical > 0 else None

    def __str__(self) -> str:
        share = self.share
        if share is None or share >= MUCH:
            return (
                f"off by {self.error:.3g} (root mean square), about as much as there is: take a longer --every, a "
                "wider filter or a larger --epsilon"
            )
        return f"off by {self.error:.3g} (root mean square), {100 * share:.2g} % of the typical level"


def costs(published: Published) -> list[Cost]:
    """What privacy cost each filter; from public numbers only."""
    cloak = published.cloak
    return [
        Cost(one.name, math.sqrt(mse), float(np.abs(values).mean()))
        for one, mse, values in zip(cloak.filters, cloak.expected_mses.tolist(), published.values, strict=True)
    ]


def published_table(given: Given, published: Published) -> Any:
    """One row a time: for each filter, and each series, the value and how far it may be off in 95 % of cases."""
    n = published.values.shape[-1]
    columns: dict[str, Any] = {}
    if given.bins is None:
        columns["row"] = pa.array(np.arange(1, n + 1))
    else:
        columns["time"] = pa.array(given.bins.times, pa.timestamp("ms", "UTC"))
    for one, values, within in zip(published.cloak.filters, published.values, published.band(), strict=True):
        decimals = _decimals(within)
        for name, row in zip(given.names or ("",), values, strict=True):
            column = f"{name}.{one.name}" if name else one.name
            if column in columns or f"{column}.within" in columns:
                raise InputError(f"two columns would be called {column}: rename the series or the filter.")
            columns[column] = pa.array(np.round(row, decimals))
            columns[f"{column}.within"] = pa.array(np.round(within, decimals))
    return pa.table(columns)


def _decimals(within: FloatArray) -> int:
    least = float(within[within > 0].min(initial=np.inf))
    return 6 if not math.isfinite(least) else max(DIGITS - 1 - math.floor(math.log10(least)), 0)


def write_table(table: Any, part: Path, form: str) -> None:
    """Write a table as CSV or Parquet, by the ending of the name that it will have."""
    if form == ".parquet":
        pq.write_table(table, part, compression="zstd")
        return
    if "time" in table.column_names:
        table = table.set_column(0, "time", pa.array(_texts(table.column("time").to_numpy())))
    head = io.StringIO()
    csv.writer(head, lineterminator="\n").writerow(table.column_names)
    with part.open("wb") as file:
        file.write(head.getvalue().encode())
        pa_csv.write_csv(table, file, pa_csv.WriteOptions(include_header=False, quoting_style="none"))


def _texts(times: Any) -> Any:
    """Times in UTC, to the second where that is enough."""
    unit: Any = "s" if (times.astype("datetime64[s]") == times).all() else "ms"
    return np.datetime_as_string(times, unit=unit, timezone="UTC")


def warn(given: Given) -> None:
    """Say how the command was understood, what was read off the data, and what bounding did to them."""
    for line in given.notes:
        note(line)
    if given.taken:
        note(
            f"warning: taken from the data, which reveals it: {', '.join(given.taken)}. The claim does not cover that; "
            "give it yourself where it is not public anyway."
        )
    if given.remarks:
        note(f"{NOTED}:")
        for line in given.remarks:
            note(f"  - {line}")


def report(given: Given, published: Published, options: SeriesOptions) -> None:
    """Print what was published, at what cost, in words or as JSON."""
    if options.json:
        as_json(_values(given, published, options))
        return
    cloak = published.cloak
    series = f" for each of {len(given.names):,} series" if len(given.names) > 1 else ""
    if given.bins is None:
        say(f"{given.title}: {cloak.n:,} values{series}")
    else:
        ends = f"from {shown(given.bins.start)} to {shown(given.bins.end)}"
        say(f"{given.title}: {counted(cloak.n, 'bin')} of {shown_span(given.bins.every)}{series}, {ends}")
    say(f"{given.hides} {given.advice}".strip())
    for cost in costs(published):
        say(f"  {cost.name}: {cost}")
    say(f"spent: epsilon {cloak.epsilon:g}, delta {cloak.delta:g}. Publishing more about the same data spends more.")


def say_written(options: SeriesOptions, old: Sequence[Path]) -> None:
    """Say which files were written, and which of them in place of `old` ones."""
    paths = [options.out] if options.plot is None else [options.out, options.plot]
    note("wrote " + " and ".join(f"over {path}" if path in old else str(path) for path in paths))


def _values(given: Given, published: Published, options: SeriesOptions) -> dict[str, object]:
    cloak, bins, explained = published.cloak, given.bins, published.explain()
    return {
        "source": given.title,
        "from": None if bins is None else shown(bins.start),
        "to": None if bins is None else shown(bins.end),
        "every_seconds": None if bins is None else bins.every / 1000,
        "bins": cloak.n,
        "series": list(given.names),
        "taken_from_data": list(given.taken),
        "level": given.level,
        "hides": given.hides,
        "contribution": cloak.contribution,
        "step": None if cloak.whole else cloak.step,
        "epsilon": cloak.epsilon,
        "delta": cloak.delta,
        "filters": [
            {
                "name": cost.name,
                "root_mean_square_error": cost.error,
                "typical_level": cost.typical,
                "share": cost.share,
            }
            for cost in costs(published)
        ],
        "expected_mse": cloak.expected_mse,
        "rounding_cost": cloak.rounding_cost,
        "papers_mse": cloak.papers_mse,
        "out": str(options.out),
        "plot": None if options.plot is None else str(options.plot),
        "explanation": {
            "hidden": [given.hides, *explained.hidden[:1]],
            "not_hidden": list(explained.not_hidden),
            "cost": list(explained.cost),
            "drivers": list(explained.drivers),
        },
    }
