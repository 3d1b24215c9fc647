"""Published series as a CSV or Parquet file. No true value gets in here."""

import csv
import io
import math
from pathlib import Path
from typing import Any

import numpy as np

from cloakwork._extras import optional_parts
from cloakwork.errors import InputError
from cloakwork.series.counts import Counts
from cloakwork.series.series_cloak import Published

with optional_parts():
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

_DIGITS = 4  # of the smallest error, to which values are rounded


def write_published(counts: Counts, published: Published, path: Path, suffix: str) -> None:
    """Write a row for each bin: each filter of each series, and its 95 % error; `suffix` is .csv or .parquet."""
    columns: dict[str, Any] = {"time": pa.array(counts.bins.times, pa.timestamp("ms", "UTC"))}
    for made, values, within in zip(published.cloak.filters, published.values, published.band(), strict=True):
        least = float(within[within > 0].min(initial=np.inf))
        decimals = max(_DIGITS - 1 - math.floor(math.log10(least)), 0)
        for name, row in zip(counts.names or ("",), values, strict=True):
            column = f"{name}.{made.name}" if name else made.name
            if column in columns or f"{column}.within" in columns:
                raise InputError(
                    f"two columns would be called {column}: give each filter once, and each series another name.",
                    parameter=("filters", "names"),
                )
            columns[column] = pa.array(np.round(row, decimals))
            columns[f"{column}.within"] = pa.array(np.round(within, decimals))
    if suffix == ".parquet":
        pq.write_table(pa.table(columns), path, compression="zstd")
        return
    times = counts.bins.times.astype("datetime64[ms]")
    unit: Any = "s" if (counts.bins.times % 1000 == 0).all() else "ms"
    columns["time"] = pa.array(np.datetime_as_string(times, unit=unit, timezone="UTC"))
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(columns)
    with path.open("wb") as file:
        file.write(header.getvalue().encode())
        pa_csv.write_csv(pa.table(columns), file, pa_csv.WriteOptions(include_header=False, quoting_style="none"))
