"""`cloakwork calibrate`: what it prints, writes and refuses."""

from pathlib import Path

import numpy as np
import pytest

from cloakwork.cli.calibrate import shift_rows
from cloakwork.cli.report import lines
from cloakwork.site import load_site
from tests.cli.conftest import Run
from tests.fitting.radio import flat
from tests.fitting.walks import SPOTS, STATED, stated, true_plan, true_readings, write_walk


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, list[object]]:
    """A site file, and the options that name a walk through it."""
    site, spots = stated(), [*SPOTS, None]
    readings = true_readings(true_plan(site), np.ones(12), np.linspace(20.0, 21.1, 12), spots)
    walk, raw = write_walk(tmp_path, site, readings, spots)
    path = tmp_path / "flat.toml"
    path.write_text(STATED, encoding="utf-8")
    return path, ["--walk", walk, "--readings", raw]


def test_the_site_file_gets_the_fitted_physics(succeed: Run, files: tuple[Path, list[object]], tmp_path: Path) -> None:
    path, walk = files
    shown = succeed("calibrate", path, *walk, "--plot", tmp_path / "walk.png")
    assert path.read_text(encoding="utf-8") == STATED, "nothing is written unless asked"
    assert "+[physics.tolerance]" in shown.out
    assert "delete" in shown.err
    assert (tmp_path / "walk.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "walk.png").stat().st_mode & 0o777 == 0o600, "it shows true readings"
    assert "walk.png hold true readings" in " ".join(shown.err.split())
    values = succeed("calibrate", path, *walk, "--write", "--json").values
    site = load_site(path)
    assert values["reach"]["low"] < 1.6 < values["reach"]["high"]
    assert values["strength"]["low"] < 5.0 < values["strength"]["high"]
    assert site.tolerance.diffusion == values["tolerance"]["diffusion"]
    assert abs(site.baselines - np.linspace(20.0, 21.1, 12)).max() < 0.03
    text = path.read_text(encoding="utf-8")
    assert "guess" not in text, "the values are measured"
    assert "# two rooms" in text
    succeed("plan", "--no-simulation", path)


def test_the_site_file_is_written_elsewhere_or_in_place_never_over_an_input(
    run: Run, files: tuple[Path, list[object]], tmp_path: Path
) -> None:
    path, walk = files
    assert run("calibrate", path, *walk, "--out", tmp_path / "new.toml").code == 0
    assert load_site(tmp_path / "new.toml").name == "flat"
    for words in ([*walk, "--out", path], [*walk, "--out", tmp_path / "b.toml", "--write"], [], walk[:2]):
        assert run("calibrate", path, *words).code == 2
    assert path.read_text(encoding="utf-8") == STATED


def test_shifts_that_the_model_does_not_allow_are_reported_with_the_alpha_that_covers_them() -> None:
    shown = " ".join(lines(shift_rows(flat().shifts(0.1), " dB")))
    assert "alpha = 0.1 m is not covered" in shown
    assert "every measured shift from" in shown
    assert "sensitivity of 22 dB, and the new model has 2.73 dB" in shown
