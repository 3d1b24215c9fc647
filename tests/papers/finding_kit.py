"""What holds for the finding of every experiment."""

import json
from collections.abc import Callable
from pathlib import Path

from papers import Result, read_result


def check_seeds(run: Callable[[int], Result]) -> None:
    """The same seed gives the same numbers, another one others, which agree within their errors."""
    first, other = run(1), run(2)
    assert run(1) == first
    assert other != first
    for one, two in zip(first.finding.measures(), other.finding.measures(), strict=True):
        assert one.name == two.name
        assert one.agrees(two), one.name


def check_forms(result: Result, folder: Path, *, paragraphs: int) -> None:
    """It travels as JSON, draws itself, and has tables and words for people."""
    text = json.dumps(result.to_json(), allow_nan=False)
    assert read_result(text) == result
    assert len(text) < 200_000
    path = folder / f"{result.name}.png"
    result.draw(path)
    assert path.stat().st_size > 20_000
    assert len(result.finding.words()) == paragraphs
    for table in result.tables():
        assert all(len(row) == len(table.columns) for row in table.rows)
