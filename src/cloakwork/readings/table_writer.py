"""Rows as a CSV, JSON Lines or Parquet file, and the columns in which readings are exchanged."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from io import TextIOWrapper
from typing import Any, Self

from cloakwork._extras import optional_parts
from cloakwork.errors import InputError
from cloakwork.site import BitPlan, Plan

Row = Sequence[Any]
FORMS = (".csv", ".jsonl", ".parquet")
READING_COLUMNS: dict[str, type] = {
    "time": datetime,
    "sensor": str,
    "value": float,
    "steps": int,
    "sigma": float,
    "seq": int,
    "plan": str,
    "unit": str,
}


@dataclass(frozen=True)
class ReadingScale:
    """The meaning of the steps of each sensor: the step and the noise in `unit`, and the id of the plan that has them.

    Sensors without noise in a unit report bits.
    """

    plan: str
    unit: str
    steps: Mapping[str, float]
    sigmas: Mapping[str, float]

    @classmethod
    def of(cls, plan: Plan | BitPlan, unit: str) -> Self:
        """Return the scale of a plan."""
        sigmas = {} if isinstance(plan, BitPlan) else {sensor.id: sensor.sigma for sensor in plan.sensors}
        return cls(plan.id, unit, plan.steps, sigmas)

    def row(self, time: int, sensor: str, seq: int, steps: int) -> Row:
        """Return the `READING_COLUMNS` of one reading; value and noise are None for a sensor that no plan has."""
        step, sigma = self.steps.get(sensor), self.sigmas.get(sensor)
        value = None if step is None else steps * step
        return time, sensor, value, steps, sigma, seq, self.plan, "" if sigma is None else self.unit


@contextmanager
def table_writer(
    file: TextIOWrapper, form: str, columns: Mapping[str, type], about: Mapping[str, object] | None = None
) -> Iterator[Callable[[Sequence[Row]], None]]:
    """Write rows to an open file, in one of `FORMS`; yields a function that takes some rows at a time.

    Columns of `datetime` hold Unix milliseconds: they become ISO 8601 in UTC, or timestamps with a zone. `about` goes
    into the metadata of a Parquet file, under "cloakwork"; the other forms have no place for it.
    """
    if form not in FORMS:
        raise InputError(f"{form or 'no ending'}: give a name that ends in {', '.join(FORMS)}, which says the form.")
    if form == ".parquet":
        with optional_parts():
            import pyarrow.parquet as pq  # noqa: PLC0415 - large, and not needed for texts

        schema = arrow_table(columns, (), about).schema
        with pq.ParquetWriter(file.buffer, schema, compression="zstd") as writer:
            yield lambda rows: writer.write_table(arrow_table(columns, rows, about))
        return
    places = [place for place, kind in enumerate(columns.values()) if kind is datetime]

    def texts(rows: Sequence[Row]) -> Iterator[Row]:
        for row in rows:
            cells = list(row)
            for place in places:
                cells[place] = iso_text(cells[place])
            yield cells

    if form == ".csv":
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(columns)
        yield lambda rows: lines.writerows(texts(rows))
    else:
        yield lambda rows: file.writelines(
            json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in texts(rows)
        )


def arrow_table(columns: Mapping[str, type], rows: Sequence[Row], about: Mapping[str, object] | None = None) -> Any:
    """Return rows as an Arrow table, with `about` in its metadata."""
    with optional_parts():
        import pyarrow as pa  # noqa: PLC0415 - as above

    kinds = {int: pa.int64(), float: pa.float64(), str: pa.string(), datetime: pa.timestamp("ms", "UTC")}
    metadata = {"cloakwork": json.dumps(about)} if about else None
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()], metadata)
    cells = zip(*rows, strict=True) if rows else ((),) * len(schema)
    return pa.table([pa.array(each, kind) for each, kind in zip(cells, schema.types, strict=True)], schema=schema)


def iso_text(time: int) -> str:
    """Return a time in Unix milliseconds as ISO 8601 in UTC, as a number where the year has five digits.

    >>> iso_text(1700000000250)
    '2023-11-14T22:13:20.250Z'
    """
    if time >= 253_402_300_800_000:
        return str(time)
    return datetime.fromtimestamp(time // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{time % 1000:03d}Z"
