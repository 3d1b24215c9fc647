"""A physics of one's own is one file, `sound.py`: it has a guarantee, recovery and a site file like any other."""

from itertools import combinations
from pathlib import Path
from shutil import copy

import numpy as np
import pytest

from cloakwork.errors import PhysicsError, SiteError
from cloakwork.physics import Family, Timing, Tolerance
from cloakwork.site import freeze, load_plan, load_site
from tests.physics.sound import Sound

MICROPHONES = [(0.0, 0.0), (4.0, 0.0), (2.0, 3.0), (0.5, 2.5)]
SOUND = Sound(MICROPHONES, (4.0, 3.0), gain=10.0)
SITE = """
name = "hall"
physics = {kind = "sound.py:Sound", size = [4.0, 3.0], above = 2.0}
sources = {kind = "lasting", strength = 10.0}
privacy = {epsilon = 2.0, delta = 1e-5, alpha = 0.3}
"""
SENSORS = "".join(f'[[sensor]]\nid = "mic{k}"\nat = [{x}, {y}]\n' for k, (x, y) in enumerate(MICROPHONES))


@pytest.fixture
def site_file(tmp_path: Path) -> Path:
    copy(Path(__file__).with_name("sound.py"), tmp_path)
    (tmp_path / "hall.toml").write_text(SITE + SENSORS)
    return tmp_path / "hall.toml"


@pytest.mark.parametrize("physics", [SOUND, Sound(MICROPHONES[1:3], (4.0, 3.0))], ids=["all", "fewer sensors"])
def test_no_move_between_any_two_places_exceeds_the_steepest_slope(physics: Sound) -> None:
    weights = np.array([1.0, 2.0, 0.5, 1.0])[: physics.sensors]
    bound = Family(physics).steepest(weights).value
    columns, at = physics.matrix.T * weights, physics.space.places
    steepest = max(
        float(np.linalg.norm(columns[i] - columns[j]) / np.linalg.norm(at[i] - at[j]))
        for i, j in combinations(range(physics.places), 2)
    )
    assert steepest <= bound <= steepest * (1 + 1e-9)


def test_it_has_tolerances_of_gain_and_timing_and_refuses_those_that_it_does_not_know() -> None:
    plain = Family(SOUND).steepest().value
    assert Family(SOUND, Tolerance(gain=0.1)).steepest().value == pytest.approx(1.1 * plain)
    walking = Family(SOUND, timing=Timing(spread=0.2, speed=1.5)).steepest().value
    assert plain < walking <= Family(SOUND, timing=Timing(spread=0.2, speed="any")).steepest().value
    for unknown in ({"diffusion": 0.1}, {"doors": True}, {"memory": True}, {"later": True}, {"position": 0.1}):
        with pytest.raises(PhysicsError):
            Family(SOUND, Tolerance(**unknown)).steepest()


def test_a_site_file_names_it_and_its_plan_changes_with_its_code(site_file: Path, tmp_path: Path) -> None:
    site = load_site(site_file, run_code=True)
    assert np.array_equal(site.physics.matrix, SOUND.matrix)
    assert site.timing.speed == 1.5
    freeze(site, site.cloak()).write(tmp_path / "plan.json")
    plan = load_plan(tmp_path / "plan.json")
    plan.check(site)
    (tmp_path / "sound.py").write_text((tmp_path / "sound.py").read_text() + "# another line\n")
    with pytest.raises(SiteError):
        plan.check(load_site(site_file, run_code=True))


def test_nothing_runs_the_code_of_a_site_file_unasked(tmp_path: Path) -> None:
    (tmp_path / "sound.py").write_text("raise SystemExit")
    (tmp_path / "hall.toml").write_text(SITE + SENSORS)
    with pytest.raises(SiteError, match="run_code"):
        load_site(tmp_path / "hall.toml")


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("sound.py:Sound", "../sound.py:Sound", 3),
        ("sound.py:Sound", "other.py:Sound", 3),
        ("sound.py:Sound", "sound.py:Silence", 3),
        ("size", "width", 3),
        ('kind = "lasting"', 'kind = "puls"', 4),
    ],
)
def test_mistakes_are_told_with_their_line(site_file: Path, old: str, new: str, line: int) -> None:
    site_file.write_text(site_file.read_text().replace(old, new))
    with pytest.raises(SiteError, match=f"line {line}:"):
        load_site(site_file, run_code=True)
