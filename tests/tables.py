"""Tables of each library that readings, events and recordings come in, made from one of Arrow."""

from collections.abc import Callable
from typing import Any

import polars as pl

LIBRARIES: dict[str, Callable[[Any], Any]] = {
    "arrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(),
    "pandas, categories": lambda table: table.to_pandas().astype({"sensor": "category"}),
    "polars": pl.from_arrow,
    "polars, categories": lambda table: pl.DataFrame(pl.from_arrow(table)).with_columns(
        pl.col("sensor").cast(pl.Categorical)
    ),
}
