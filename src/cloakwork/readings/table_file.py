"""Columns of a file as a whole, for series and calibration."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cloakwork._extras import optional_parts
from cloakwork.readings.row_batches import RowReader

with optional_parts():
    import pyarrow as pa


class TableFile:
    """A CSV, JSON Lines, Parquet or Arrow file, or a table of Arrow, Polars or pandas; `names` holds its columns.

    Messages never show a cell.
    """

    def __init__(self, source: object) -> None:
        self._reader = RowReader(source)
        self.path, self.names = self._reader.path, list(self._reader.names)
        self.left_out = 0
        self._numbers = np.zeros(0, dtype=np.int64)

    def place(self, row: int) -> str:
        """Return the place of a row in the file, for messages; rows are counted from 0 as they were read."""
        return f"{'line' if self._reader.is_text else 'row'} {self._numbers[row]}"

    def read(self, names: Sequence[str], progress: Callable[[int], None] = lambda _: None) -> dict[str, Any]:
        """Read columns by name, once. Lines that are not a row are left out and counted in `left_out`.

        `progress` receives the number of bytes read.
        """
        columns = list(dict.fromkeys(names))
        parts, numbers = [], [self._numbers]
        for batch in self._reader.batches(columns):
            parts.append(batch.columns)
            numbers.append(batch.numbers)
            self.left_out += len(batch.broken)
            progress(self._reader.bytes_read)
        self._numbers = np.concatenate(numbers)
        empty = [pa.array([], pa.string())]
        return {name: pa.chunked_array([part[k] for part in parts] or empty) for k, name in enumerate(columns)}
