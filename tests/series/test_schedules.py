"""Schedule files."""

from pathlib import Path

import numpy as np
import pytest

from cloakwork.errors import InputError
from cloakwork.series import read_schedules

MONDAY = 1_794_787_200_000  # 2026-11-16T00:00Z


def written(folder: Path, text: str) -> Path:
    path = folder / "schedules.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_spans_cover_days_and_nights(tmp_path: Path) -> None:
    read = read_schedules(
        written(
            tmp_path,
            'most = 4\ntimezone = "Europe/Berlin"\n[schedules]\nflat = 0.5\n'
            'office = { "mon-fri 08-18" = 0.75, "sat-mon 22-06" = 0.25, otherwise = 0 }\n',
        )
    )
    office = np.asarray(read.settings["office"]).reshape(7, 24)
    assert office[0, 8] == office[4, 17] == 0.75
    assert office[0, 18] == office[5, 12] == office[4, 23] == 0
    assert office[5, 23] == office[0, 5] == office[6, 0] == 0.25
    assert (read.settings["flat"] == 0.5).all()
    assert read.contexts([MONDAY, MONDAY + 3_600_000 * 23]).tolist() == [1, 24]


def test_the_loss_is_the_distance_from_what_the_count_needs(tmp_path: Path) -> None:
    text = "most = 2\nneed = [0.1, 0.5, 0.6]\ntoo_much = 0.25\n[schedules]\nlow = 0.1\nhigh = 0.9\n"
    table = read_schedules(written(tmp_path, text)).experts().table
    np.testing.assert_allclose(table[0], [[0.0, 0.4, 0.5], [0.2, 0.1, 0.075]])


@pytest.mark.parametrize(
    "text",
    [
        "most = 2",
        "most = 0\n[schedules]\na = 0.1\nb = 0.2",
        "most = 2\nmuch = 1\n[schedules]\na = 0.1\nb = 0.2",
        "most = 2\n[schedules]\na = 1.5\nb = 0.2",
        "most = 2\n[schedules]\na = nan\nb = 0.2",
        'most = 2\n[schedules]\na = { "noon" = 0.5 }\nb = 0.2',
        'most = 2\n[schedules]\na = { "08-30" = 0.5, otherwise = 0 }\nb = 0.2',
        'most = 2\n[schedules]\na = { "08-18" = 0.5 }\nb = 0.2',
        'most = 2\ntimezone = "Mars"\n[schedules]\na = 0.1\nb = 0.2',
        "most = 2\nneed = [0, 1]\n[schedules]\na = 0.1\nb = 0.2",
        "most = [",
    ],
)
def test_what_a_file_gets_wrong_is_named(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError) as refused:
        read_schedules(path)
    assert refused.value.path == str(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_schedules(tmp_path / "none.toml")
