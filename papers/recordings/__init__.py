"""The recordings that experiments use: one folder each, with a README of its source, its licence and its columns."""

import csv
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, read_only
from cloakwork.demo import Position

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


def read_positions() -> Mapping[str, tuple[tuple[Position, ...], ...]]:
    """Read the positions of everyone in each frame of each recording of an office, in pixels."""
    table = read_columns(POSITIONS)
    found: dict[str, dict[str, list[Position]]] = {}
    for day, seq, frame, x, y in zip(*(table[name] for name in ("day", "seq", "frame", "x_px", "y_px")), strict=True):
        people = found.setdefault(f"{day} {seq}", {}).setdefault(frame, [])
        if x:  # a frame without people has one row without x and y
            people.append((float(x), float(y)))
    return {name: tuple(tuple(people) for people in frames.values()) for name, frames in found.items()}


@dataclass(frozen=True, eq=False)
class Infrared:
    """Frames of an infrared camera, shape (frames, rows, columns), scaled from 0 to 255.

    `people` has the positions in each frame, in pixels from the top left corner, shape (k, 2) each.
    """

    frames: FloatArray
    people: tuple[FloatArray, ...]

    def __len__(self) -> int:
        return len(self.frames)


def read_infrared() -> Infrared:
    """Read the frames and their labels."""
    with np.load(data_file(INFRARED)) as stored:
        frames, labels = (np.array(stored[name], dtype=np.float64) for name in ("frames", "people_xy_px"))
    return Infrared(read_only(frames), tuple(read_only(frame[np.isfinite(frame).all(axis=1)]) for frame in labels))
