"""Small files for tests of `series`, and readers of what was published."""

import csv
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

START = datetime(2026, 10, 5, tzinfo=UTC)
HOUR = 3600
CLEAR = ("--epsilon", 40, "--delta", 1e-3)  # so little noise that the truth can be checked
PERIOD = ("--from", "2026-10-05", "--to", "2026-10-07")
Z95 = 1.959964


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(START.timestamp() + seconds, UTC).isoformat()


def write(path: Path, *rows: Sequence[object]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def read(path: Path) -> dict[str, list[str]]:
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))


def floats(cells: list[str]) -> NDArray[np.float64]:
    return np.array([float(cell) for cell in cells])


def values_in(tree: object) -> list[object]:
    """All leaves of a JSON value."""
    if isinstance(tree, dict):
        return [leaf for part in tree.values() for leaf in values_in(part)]
    return [leaf for part in tree for leaf in values_in(part)] if isinstance(tree, list) else [tree]


def close(found: dict[str, list[str]], name: str, truth: NDArray[Any]) -> bool:
    """Whether all values are within six standard deviations of the truth, and not all equal to it."""
    off = np.abs(floats(found[name]) - truth)
    return bool((off <= 6 / Z95 * floats(found[f"{name}.within"]) + 1e-6).all() and off.max() > 0)
