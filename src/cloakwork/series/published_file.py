"""Published series as a CSV or Parquet file, and what privacy cost each filter. No true value gets in here."""

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cloakwork._extras import optional_parts
from cloakwork.errors import InputError
from cloakwork.series.count_files import CountedSeries
from cloakwork.series.series_cloak import Published

with optional_parts():
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

_DIGITS = 4  # of the error, to which values are rounded
_MOSTLY_NOISE = 0.8  # of the typical level


@dataclass(frozen=True)
class FilterCost:
    """The root mean square error of one filter, next to the typical level of its published values."""

    name: str
    error: float
    typical: float

    @property
    def share(self) -> float | None:
        """The error as a fraction of the typical level; None if that is 0."""
        return self.error / self.typical if self.typical > 0 else None

    @property
    def mostly_noise(self) -> bool:
        """Whether the error is about as large as the values."""
        return self.share is None or self.share >= _MOSTLY_NOISE

    def __str__(self) -> str:
        level = f"{100 * (self.share or 0):.2g} % of the typical level"
        if self.mostly_noise:
            level = "about as large as the values"
        return f"off by {self.error:.3g} (root mean square), {level}"


def filter_costs(published: Published) -> list[FilterCost]:
    """The cost of privacy for each filter, from public numbers only."""
    cloak = published.cloak
    return [
        FilterCost(made.name, math.sqrt(mse), float(np.abs(values).mean()))
        for made, mse, values in zip(cloak.filters, cloak.expected_mses.tolist(), published.values, strict=True)
    ]


def write_published(counted: CountedSeries, published: Published, path: Path, suffix: str) -> None:
    """Write one row for each time: each filter of each series, and its 95 % error; `suffix` is .csv or .parquet."""
    columns: dict[str, Any] = {}
    if counted.bins is None:
        columns["row"] = pa.array(np.arange(1, published.values.shape[-1] + 1))
    else:
        columns["time"] = pa.array(counted.bins.times, pa.timestamp("ms", "UTC"))
    for made, values, within in zip(published.cloak.filters, published.values, published.band(), strict=True):
        least = float(within[within > 0].min(initial=np.inf))
        decimals = 6 if not math.isfinite(least) else max(_DIGITS - 1 - math.floor(math.log10(least)), 0)
        for name, row in zip(counted.names or ("",), values, strict=True):
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
    if counted.bins is not None:
        times = counted.bins.times.astype("datetime64[ms]")
        unit: Any = "s" if (counted.bins.times % 1000 == 0).all() else "ms"
        columns["time"] = pa.array(np.datetime_as_string(times, unit=unit, timezone="UTC"))
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(columns)
    with path.open("wb") as file:
        file.write(header.getvalue().encode())
        pa_csv.write_csv(pa.table(columns), file, pa_csv.WriteOptions(include_header=False, quoting_style="none"))
