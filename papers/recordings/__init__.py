"""The recordings that experiments use: one folder each, with a README of its source, its licence and its columns."""

import csv
import gzip
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, read_only
from cloakwork.demo import Position
from cloakwork.errors import InputError

FOLDER = Path(__file__).parent
LICENCES = {  # of each folder
    "thermo_presence": "MIT",
    "ble_office": "CC0 1.0",
    "ble_flat": "CC BY 4.0",
    "wifi_library_two_years": "CC BY 4.0",
    "people_counts_sdu": "CC BY 4.0",
    "office_pir_windesheim": "CC BY 4.0",
}
POSITIONS = Path("thermo_presence") / "positions.csv"
INFRARED = Path("thermo_presence") / "ir38.npz"
PIXELS = (32.0, 24.0)  # size of the camera's picture, origin at the top left
StringArray = NDArray[np.str_]
COLUMNS = ["day", "seq", "frame", "n_people", "x_px", "y_px"]
LARGEST_FILE = 50_000_000


def data_file(name: Path) -> Path:
    """Return the path of a recording, which is named by its folder and its file."""
    return FOLDER / name


def titles() -> Mapping[str, str]:
    """Return the title of each folder, which is the first line of its README."""
    return {name: (FOLDER / name / "README.md").read_text(encoding="utf-8").partition("\n")[0][2:] for name in LICENCES}


def read_columns(name: Path) -> Mapping[str, StringArray]:
    """Read a table, compressed or not, as one array of text for each column.

    >>> read_columns(Path("ble_flat") / "anchors.csv")["z"].astype(float).tolist()
    [2.08, 2.62, 2.3, 2.48, 2.12, 2.24]
    """
    content = data_file(name).read_bytes()
    text = (gzip.decompress(content) if name.suffix == ".gz" else content).decode()
    head, *rows = csv.reader(text.splitlines())
    return dict(zip(head, np.array(rows).T, strict=True))


def numbers(text: StringArray) -> FloatArray:
    """Turn text into numbers, and empty cells into NaN."""
    return np.where(text == "", "nan", text).astype(np.float64)


def read_positions(path: Path) -> Mapping[str, tuple[tuple[Position, ...], ...]]:
    """Read the positions of everyone in each frame of each recording, in pixels.

    The file has the columns of `COLUMNS` and a row for each person; a frame without people has one row without x and y.
    """
    found: dict[str, list[tuple[Position, ...]]] = {}
    try:
        _refuse_large(path)
        with path.open(newline="", encoding="utf-8") as file:
            for name, frame in _frames(file, path):
                found.setdefault(name, []).append(frame)
    except OSError as problem:
        raise InputError(f"{path}: {problem.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"{path}: not a CSV file in UTF-8.") from None
    return {name: tuple(frames) for name, frames in found.items()}


@dataclass(frozen=True, eq=False)
class Infrared:
    """Frames of an infrared camera, shape (frames, rows, columns), scaled from 0 to 255.

    `people` has the positions in each frame, in pixels from the top left corner, shape (k, 2) each.
    """

    frames: FloatArray
    people: tuple[FloatArray, ...]

    def __len__(self) -> int:
        return len(self.frames)


def read_infrared(path: Path) -> Infrared:
    """Read the frames and their labels."""
    try:
        _refuse_large(path)
        with np.load(path, allow_pickle=False) as stored:
            frames = np.array(stored["frames"], dtype=np.float64)
            labels = np.array(stored["people_xy_px"], dtype=np.float64)
    except OSError as problem:
        raise InputError(f"{path}: {problem.strerror or 'not a NumPy archive'}.") from None
    except (KeyError, ValueError, zipfile.BadZipFile):
        raise InputError(f"{path}: not a NumPy archive of `frames` and `people_xy_px`.") from None
    if frames.ndim != 3 or not len(frames) or labels.shape != (len(frames), *labels.shape[1:2], 2):
        raise InputError(
            f"{path}: frames {frames.shape} and labels {labels.shape} do not fit: give (k, rows, columns) and "
            "(k, people, 2), at least one."
        )
    people = tuple(read_only(frame[np.isfinite(frame).all(axis=1)]) for frame in labels)
    return Infrared(read_only(frames), people)


def _refuse_large(path: Path) -> None:
    if path.stat().st_size > LARGEST_FILE:
        raise InputError(f"{path}: larger than {LARGEST_FILE // 10**6} MB: not a recording.")


def _frames(file: TextIO, path: Path) -> Iterator[tuple[str, tuple[Position, ...]]]:
    """Yield the name of the recording and the positions in pixels for each frame."""
    rows = csv.reader(file)
    if next(rows, None) != COLUMNS:
        raise InputError(f"{path}: the first line must be {','.join(COLUMNS)}.")
    before: tuple[str, int, int] | None = None
    people: list[Position] = []
    for line, row in enumerate(rows, start=2):
        key, at = _row(row, path, line)
        if before is not None and key != before:
            yield before[0], _whole(people, before, path, line)
            people = []
        before = key
        people += at
    if before is not None:
        yield before[0], _whole(people, before, path, rows.line_num + 1)


def _row(row: list[str], path: Path, line: int) -> tuple[tuple[str, int, int], list[Position]]:
    """The recording, frame and number of people of a row, and the position in it."""
    try:
        day, seq, frame, people, x, y = row
        key = (f"{day} {seq}", int(frame), int(people))
        at = [(float(x), float(y))] if key[2] else []
    except ValueError:
        raise _bad_row(path, line) from None
    if any(not 0 <= value <= most for position in at for value, most in zip(position, PIXELS, strict=True)):
        raise _bad_row(path, line)
    return key, at


def _bad_row(path: Path, line: int) -> InputError:
    return InputError(
        f"{path}, line {line}: give {','.join(COLUMNS)}, with x_px from 0 to {PIXELS[0]:g} and y_px from 0 to "
        f"{PIXELS[1]:g}.",
        line=line,
    )


def _whole(people: list[Position], frame: tuple[str, int, int], path: Path, line: int) -> tuple[Position, ...]:
    if len(people) != frame[2]:
        raise InputError(
            f"{path}, before line {line}: frame {frame[1]} of {frame[0]} declares {frame[2]} people and has "
            f"{len(people)}: give a row for each.",
            line=line,
        )
    return tuple(people)
