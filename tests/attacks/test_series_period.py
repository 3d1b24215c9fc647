"""Attacks on `cloakwork series`: what it publishes besides the noisy values, from data that differ in one person."""

import csv
import re
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import ArrayLike, NDArray

from cloakwork.cli import main
from cloakwork.series import Published, SeriesCloak
from tests.attacks.conftest import Attack

ROOT = Path(__file__).parents[2]
START = datetime(2026, 10, 5, tzinfo=UTC)
PERIOD = "--from 2026-10-05 --to 2026-10-09"
PERSON = "--person card --most-per-person 4"
COUNTS = "counts.csv --counts n --filter window:1"
EVENTS = (  # of one event each, or with persons of one person; each is also tried without a period, names and so on
    f"visits.csv {PERIOD} --filter window:1",
    f"visits.csv {PERIOD} --filter window:1 --value paid --most-per-event 30",
    f"visits.csv {PERIOD} --filter running-sum --every 1d {PERSON} --series-by door --names north,west --json",
    f"visits.csv {PERIOD} --filter trend:5 {PERSON} --value paid --plot a.svg --out a.parquet",
    "visits.csv --filter window:1",
    f"visits.csv {PERIOD} --filter window:1 --series-by door",
    f"broken.csv {PERIOD} --filter window:1",
    f"{COUNTS} {PERIOD} --every 1h --json",
    f"{COUNTS} {PERIOD}",
    COUNTS,
)

Row = tuple[str, str, str, str]
Released = list[tuple[NDArray[np.float64], float]]
Publish = Callable[[Path, str], dict[str, object]]


def documented_commands() -> list[str]:
    """The commands of the README and the page on series, as written."""
    text = (ROOT / "README.md").read_text() + (ROOT / "docs/guides/private-series.md").read_text()
    return re.findall(r"^cloakwork series (visits\.csv .*)$", text, re.MULTILINE)


def visits(seed: int) -> list[Row]:
    """Visits of some people; only `me` comes first, comes last, uses the west door and pays much."""
    rng = np.random.default_rng(seed)
    hours = [("me", 2.3, "west", 900.0), ("me", 95.7, "west", 0.0), ("me", 50.1, "north", 800.0)]
    hours += [(f"c{rng.integers(8)}", rng.uniform(5, 90), "north", rng.uniform(0, 40)) for _ in range(60)]
    return [
        ((START + timedelta(hours=hour)).isoformat(), card, door, f"{paid:.2f}") for card, hour, door, paid in hours
    ]


def write_inputs(folder: Path, rows: list[Row]) -> None:
    """The visits, the same in a form whose only readable row may be missing, and the hours that have any."""
    folder.mkdir()
    header = ("time", "card", "door", "paid")
    hours = Counter(time[:13] + ":00:00" for time, *_ in rows)
    tables: dict[str, list[tuple[object, ...]]] = {
        "visits.csv": [header, *rows],
        "broken.csv": [header, *(row for row in rows if row[1] == "me"), ("5 Oct, noon", "c1", "north", "3")],
        "counts.csv": [("time", "n"), *sorted(hours.items())],
    }
    for name, table in tables.items():
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows(table)


@pytest.fixture
def true_values(monkeypatch: pytest.MonkeyPatch) -> Released:
    """What is released, with its contribution. Outputs become those of zeros with fixed noise: the data are gone."""
    released: Released = []

    def release(cloak: SeriesCloak, x: ArrayLike) -> Published:
        released.append((np.array(x), cloak.contribution.total * cloak.step))
        return cloak.simulate(np.zeros_like(x), rng=np.random.default_rng(1))

    monkeypatch.setattr(SeriesCloak, "release", release)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1791158400")  # the date in a picture
    return released


@pytest.fixture
def publish(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Publish:
    """Run the command in a folder, and return what others may see: the exit code, standard output and all new files."""

    def run(folder: Path, command: str) -> dict[str, object]:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["cloakwork", "series", *command.split()])
        before, code = set(folder.iterdir()), 0
        capsys.readouterr()
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        new = {path.name: path.read_bytes() for path in set(folder.iterdir()) - before}
        for name in new:
            (folder / name).unlink()
        return {"exit code": code, "standard output": capsys.readouterr().out, **new}

    return run


def test_the_period(attack: Attack, tmp_path: Path, true_values: Released, publish: Publish) -> None:
    """Find someone in what `cloakwork series` publishes beside noisy values: bins, columns, axes, sizes, exit codes.

    The claim covers everything on standard output, in the file and in the picture. With the noisy release replaced by
    one that holds no data, two data sets that differ in one person must publish the same bytes; and the release itself
    must differ by at most the contribution that its noise covers.
    """
    documented = documented_commands()
    assert len(documented) >= 3
    commands = [*documented[: attack.size(2, len(documented))], *EVENTS[:: attack.size(2, 1)]]
    for seed in range(attack.size(1, 6)):
        everyone = visits(seed)
        write_inputs(tmp_path / f"{seed}", everyone)
        for number, left_out in enumerate(everyone[:3]):
            for_person = [row for row in everyone if row[1] != "me"]
            for_event = [row for row in everyone if row != left_out]
            write_inputs(tmp_path / f"{seed}-event-{number}", for_event)
            write_inputs(tmp_path / f"{seed}-person-{number}", for_person)
        for command in commands:
            kind, numbers = ("person", range(1)) if "--person" in command else ("event", range(attack.size(1, 3)))
            for number in numbers:
                true_values.clear()
                pair = [publish(tmp_path / name, command) for name in (f"{seed}", f"{seed}-{kind}-{number}")]
                attack.expect(pair[0] == pair[1])
                if len(true_values) == 2 and pair[0] == pair[1]:
                    (first, contribution), (second, _) = true_values
                    attack.compare(np.abs(first - second).sum(), contribution * (1 + 1e-9))


@pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.float64()])
def test_a_missing_card(
    attack: Attack, tmp_path: Path, true_values: Released, publish: Publish, kind: pa.DataType
) -> None:
    """Add one visit without a card, which makes programs write all card numbers as floats.

    The visit has no person, so it does not count. Were the numbers of others read as other texts than before, other
    visits of theirs would be chosen, and the release would move by far more than the contribution.
    """
    times = [START + timedelta(hours=hour) for hour in np.random.default_rng(3).uniform(1, 90, 400)]
    cards = [4_000_000_000_000_001 + k % 9 for k in range(400)]
    for name, more in (("without", []), ("with", [None])):
        (tmp_path / name).mkdir()
        column = pa.array([*cards, *more], pa.int64()).cast(kind if more else pa.int64())
        pq.write_table(pa.table({"time": [*times, *times[: len(more)]], "card": column}), tmp_path / name / "a.parquet")
    command = f"a.parquet {PERIOD} --filter window:1 --person card --most-per-person 5"
    pair = [publish(tmp_path / name, command) for name in ("without", "with")]
    if len(true_values) == 2:
        attack.expect(pair[0] == pair[1])
        (first, contribution), (second, _) = true_values
        attack.compare(np.abs(first - second).sum(), contribution)
    else:
        attack.expect(set(pair[1]) == {"exit code", "standard output"})  # refused: nothing is published
