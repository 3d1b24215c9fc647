"""Tables in every form that readings, events and recordings come in: three kinds of files, and three libraries."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.csv
import pyarrow.parquet as pq

LIBRARIES: dict[str, Callable[[Any], Any]] = {
    "arrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(),
    "pandas, categories": lambda table: table.to_pandas().astype({"sensor": "category"}),
    "polars": pl.from_arrow,
    "polars, categories": lambda table: pl.DataFrame(pl.from_arrow(table)).with_columns(
        pl.col("sensor").cast(pl.Categorical)
    ),
}


def in_form(path: Path, form: str) -> Path:
    """The table of a CSV file in another form, beside it."""
    table, other = pyarrow.csv.read_csv(path), path.with_suffix(form)
    if form == ".parquet":
        pq.write_table(table, other)
    elif form == ".jsonl":
        pl.DataFrame(pl.from_arrow(table)).write_ndjson(other)
    return other
