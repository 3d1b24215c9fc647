"""Experiments that use recordings where there are any: run once without and once with some."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from papers import Result, read_result

Writer = Callable[[Path], None]


def run_without(run: Callable[[], Result]) -> Result:
    """A run that finds no recordings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CLOAKWORK_DATA", raising=False)
        return run()


def run_with(run: Callable[[], Result], write: Writer, folder: Path) -> Result:
    """A run that finds what `write` puts into a folder."""
    write(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOAKWORK_DATA", str(folder))
        return run()


def check_written(result: Result, picture: Path) -> None:
    """Tables are whole, JSON reads back as the same result, and there is a picture."""
    text = json.dumps(result.to_json(), allow_nan=False)
    assert len(text) < 150_000
    assert read_result(text) == result
    result.draw(picture)
    assert picture.stat().st_size > 20_000
    for table in result.tables():
        assert all(len(row) == len(table.columns) for row in table.rows)


def check_measures(few: Result, many: Result) -> None:
    """What is measured without recordings is measured with recordings too, and is the same."""
    known = {one.name: one.value for one in many.finding.measures()}
    found = {one.name: one.value for one in few.finding.measures()}
    assert found
    assert found == {name: known[name] for name in found}
    assert len(known) > len(found)
