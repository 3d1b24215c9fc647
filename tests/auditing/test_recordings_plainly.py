"""Recordings against a plain reader of them, all at once and row by row: the same reports, or the same refusal."""

import csv
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cloakwork.auditing import Recordings, printable, read_recordings
from cloakwork.errors import InputError
from cloakwork.readings import row_batches

WHOLE = ["1", "2", "-4", "+3", "007", " 5 ", "0"]
DECIMAL = ["1.5", "-0.0", "0.0", "1e3", "1.50", "nan", "-inf", "0.1000000000000000055511151231257827", "1e999"]
LARGE = [
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "9007199254740993",
    "9" * 400,
    "9" * 4400,
]
MIXED = [*WHOLE, *DECIMAL, *LARGE, "-0", "-00"]
WORDS = ["ERR", "", "1_000", "\u0663", "a\\b", "caf\xe9", "\u2028", "x y", "5\u00a0", "\x00"]
QUOTED = ['"q"', '"1"', '" 1.5 "', '"a\nb"', '"say ""1"""', '""', 'x"y', '"x"y', '"']


class RefusedError(Exception):
    """The row that is refused, 0 for a file without a report, and a word of the reason."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(row, reason)
        self.row, self.reason = row, reason


@dataclass(frozen=True)
class Case:
    """Two files and how they are read."""

    texts: tuple[str, str]
    between: str
    most: int


def number(line: str) -> int | float | None:
    text = line.strip()
    if not text.isascii() or "_" in text:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return None


def plain_lines(text: str) -> list[str]:
    """The lines after the first, without blank ones at the end of the file."""
    return re.split("\r\n|\r|\n", text.rstrip("\r\n"))[1:]


def plain_column(text: str, case: Case) -> list[str]:
    """Cells of a file with one column."""
    cells: list[str] = []
    blank = 0
    for place, line in enumerate(plain_lines(text), start=2):
        if len(cells) == case.most:
            break
        if not line:
            blank = blank or place
            continue
        if blank:
            raise RefusedError(blank, "blank line")
        try:
            [row] = csv.reader([line], delimiter=case.between, strict=True)
        except csv.Error:
            raise RefusedError(place, "quotation mark") from None
        if len(row) > 1:
            raise RefusedError(place, f"{len(row)} columns")
        cells.append(row[0])
    if not cells:
        raise RefusedError(0, "no report")
    return cells


def plain_readings(texts: Sequence[str], case: Case) -> list[list[str]]:
    """Values of files of readings, each sequence number once and in one file only."""
    said: dict[str, tuple[int, str]] = {}
    found: list[list[str]] = [[], []]
    for file, text in enumerate(texts):
        blank = 0
        for place, line in enumerate(plain_lines(text), start=2):
            if len(found[file]) == case.most:
                break
            if not line:
                blank = blank or place
                continue
            if blank:
                raise RefusedError(blank, "blank line")
            row = line.split(case.between)
            seq, value = row[2].strip(), row[3].strip()
            where, first = said.setdefault(seq, (file, value))
            if first != value:
                raise RefusedError(place, "two values" if where == file else "another value")
            if where != file:
                raise RefusedError(place, "overlap")
            if len(said) > sum(map(len, found)):
                found[file].append(value)
        if not found[file]:
            raise RefusedError(0, "no report")
    return found


def plain_reports(lines: Sequence[Sequence[str]]) -> list[list[Any]]:
    """What all lines are taken for; a word among numbers stays one."""
    entries = [[number(line) for line in part] for part in lines]
    numbers = [entry for part in entries for entry in part if entry is not None]
    if not numbers:
        return [[printable(line) for line in part] for part in lines]
    decimal = any(isinstance(entry, float) for entry in numbers)
    found: list[list[Any]] = []
    for part, known in zip(lines, entries, strict=True):
        alone = None not in known and all(map(str.isascii, part))
        values = [floating(*pair, alone=alone) for pair in zip(part, known, strict=True)] if decimal else known
        found.append([printable(line) if value is None else value for line, value in zip(part, values, strict=True)])
    return found


def floating(line: str, entry: int | float | None, *, alone: bool) -> float | None:
    """A number as a float; -0 loses its sign beside a word, where it is taken for a whole number first."""
    if entry is None:
        return None
    return 0.0 if entry == 0 and isinstance(entry, int) and not alone else float(line)


def exactly(values: Sequence[Any]) -> list[tuple[str, object]]:
    """Values by kind and bits: -0.0 is not 0.0, and NaN is NaN."""
    return [(type(value).__name__, value.hex() if isinstance(value, float) else value) for value in values]


def drawn_texts(lots: random.Random, *, readings: bool) -> Case:
    numbers = lots.choice([WHOLE, DECIMAL, [*WHOLE, *DECIMAL], [*WHOLE, "-0", "1.5"], LARGE, MIXED])
    others = lots.choice([[], [], WORDS, QUOTED, [*WORDS, *QUOTED]])
    share, blank = lots.choice([0.03, 0.3, 1.0]), lots.choice([0, 0, 0, 0.02])
    between, end = lots.choice(",,;\t"), lots.choice(["\n", "\r\n", "\r"])

    def cell() -> str:
        return lots.choice(others) if others and lots.random() < share else lots.choice(numbers)

    def text(start: int) -> str:
        rows = [between.join(["time", "sensor", "seq", "steps"]) if readings else "v"]
        seq = start
        for _ in range(lots.randrange(30)):
            seq = seq + 1 if lots.random() < 0.95 else start + lots.randrange(200)
            name = lots.choice(
                [str(seq)] * 9 + [f"0{seq}", f"+{seq}", f"s{seq}", f" {seq}", str(10**18 + seq), f"-{seq}"]
            )
            row = ["0", lots.choice(["s1", " s1 "]), name, lots.choice(numbers)]
            rows.append("" if lots.random() < blank else between.join(row) if readings else cell())
            if lots.random() < 0.02:
                rows.append(rows[-1])
        return "\ufeff" * lots.randrange(2) + end.join(rows) + lots.choice(["", end, end + end])

    first = text(0)
    second = first if lots.random() < 0.1 and not readings else text(lots.choice([1000, 1000, 20]))
    return Case((first, second), between if readings else ",", lots.choice([1, 5, 20, 1000]))


def expected(case: Case, *, readings: bool) -> tuple[list[list[Any]], bool]:
    texts = [text.removeprefix("\ufeff") for text in case.texts]
    lines = plain_readings(texts, case) if readings else [plain_column(text, case) for text in texts]
    found = plain_reports(lines)
    used = min(map(len, lines))
    return found, exactly(found[0][:used]) == exactly(found[1][:used])


def read(folder: Path, case: Case, columns: Sequence[str] = ()) -> Recordings:
    paths = folder / "a.csv", folder / "b.csv"
    for path, text in zip(paths, case.texts, strict=True):
        path.write_bytes(text.encode())
    return read_recordings(paths, most=case.most, columns=columns)


@pytest.mark.parametrize("readings", [False, True])
@pytest.mark.parametrize("block", [1, 7, 30, 1 << 16])
def test_recordings_are_read_as_plainly_as_possible_however_many_rows_are_taken_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, *, readings: bool
) -> None:
    monkeypatch.setattr(row_batches, "_BLOCK", block)
    lots, read_well = random.Random(f"{block} {readings}"), 0
    for _ in range(150):
        case = drawn_texts(lots, readings=readings)
        refused: RefusedError | None = None
        try:
            reports, identical = expected(case, readings=readings)
        except RefusedError as problem:
            refused = problem
        if refused is not None:
            with pytest.raises(InputError, match=refused.reason) as caught:
                read(tmp_path, case)
            assert caught.value.values.get("row", 0) == refused.row
            continue
        found = read(tmp_path, case)
        assert (found.identical, found.lengths) == (identical, tuple(map(len, reports)))
        for array, values in zip(found.reports, reports, strict=True):
            assert exactly(array.tolist()) == exactly(values), case
        read_well += 1
    assert read_well > 30


def test_rows_after_the_last_report_that_is_wanted_are_not_judged(tmp_path: Path) -> None:
    for end in ("3,4\n", '"' + "9" * 200_000 + "\n"):
        text = f"v\n1\n2\n{end}"
        assert [part.tolist() for part in read(tmp_path, Case((text, text), ",", 2)).reports] == [[1, 2], [1, 2]]
    head, rows = "time,sensor,seq,steps\n", "1,s1,{0}1,5\n1,s1,{0}2,5\n1,s1,7,{0}\n"
    assert read(tmp_path, Case((head + rows.format(1), head + rows.format(2)), ",", 2)).lengths == (2, 2)


def test_progress_is_told_by_bytes_of_both_files(tmp_path: Path) -> None:
    paths = tmp_path / "a.csv", tmp_path / "b.csv"
    for path, size in zip(paths, (100_000, 60_000), strict=True):
        path.write_text("v\n" + "1.5\n" * size)
    told: list[tuple[int, int]] = []
    read_recordings(paths, progress=lambda done, total: told.append((done, total)))
    assert {total for _, total in told} == {4 * 160_000 + 4}
    done = [part for part, _ in told]
    assert (done[-1], len(set(done)) > 4, sorted(done)) == (4 * 160_000 + 4, True, done)
