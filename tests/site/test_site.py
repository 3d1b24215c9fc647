"""Site files: what loads, and what every refusal says."""

import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from cloakwork.errors import SiteError
from cloakwork.physics import FloorPlan, Graph, HeatLine, HeatPlane, Matrix
from cloakwork.privacy import Design
from cloakwork.site import Site, load_site, parse_site

LINE = """name = "corridor"
sensors = 5
baseline = 20.5
[physics]
kind = "line"
places = 30
T = 0.02
[sources]
kind = "pulse"
[privacy]
epsilon = 2.0
delta = 1e-4
alpha = 0.02
window = "30min"
readings_per_window = 2
"""
FLAT = '''name = "flat"
[physics]
kind = "floorplan"
cell = 0.5
drawing = """
..#..
..+..
"""
regime = "steady"
reach = 1.0
[[sensor]]
id = "hall"
at = [0.3, 0.3]
[[sensor]]
id = "study"
at = [2.3, 0.3]
baseline = 19.0
[sources]
kind = "lasting"
[privacy]
epsilon = 2.0
delta = 1e-4
alpha = 0.02
'''


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


def refusal(text: str) -> str:
    with pytest.raises(SiteError) as caught:
        parse_site(text, name="site.toml")
    return str(caught.value)


def test_the_example_loads() -> None:
    site = parse_site(files("cloakwork.site").joinpath("example.toml").read_text(encoding="utf-8"))
    assert isinstance(site.physics, FloorPlan)
    assert (site.name, site.physics.sensors, site.physics.places) == ("flat", 80, 40 * 32)
    assert site.physics.rooms.doors == 2
    assert len(set(site.sensor_ids)) == 80


def test_a_line_site_is_what_it_says() -> None:
    site = parse_site(LINE)
    assert isinstance(site.physics, HeatLine)
    assert (site.physics.n, site.physics.sensors, site.physics.T) == (30, 5, 0.02)
    assert site.sensor_ids == ("s1", "s2", "s3", "s4", "s5")
    assert site.baselines.tolist() == [20.5] * 5
    assert site.period_ms == 901_180  # a quarter of an hour, and what a late reading and a fast clock need


def test_its_cloak_has_the_claim_of_the_file() -> None:
    text = changed(LINE, "T = 0.02\n", "T = 0.02\ntolerance = { diffusion = 0.1, gain = 0.05 }\n")
    cloak = parse_site(text).cloak()
    assert (cloak.epsilon, cloak.delta, cloak.alpha, cloak.readings_per_window) == (2.0, 1e-4, 0.02, 2)
    assert cloak.scope == "network"
    assert cloak.sensitivity > 1.05 * parse_site(LINE).cloak().sensitivity


def test_a_site_is_planned_with_noise_of_least_error_unless_it_says_equal() -> None:
    own, same = parse_site(LINE).cloak(), parse_site(LINE + 'design = "equal"\n').cloak()
    assert (own.design, same.design) == (Design.LEAST_ERROR, Design.EQUAL)
    assert isinstance(same.sigma, float)
    assert len(own.sigma) == 5
    assert own.design_report.variance <= own.design_report.equal_variance
    assert own.design_report.equal_variance == pytest.approx(same.design_report.variance)


def test_a_site_chooses_sensors_at_its_own_claim() -> None:
    text = changed(LINE, "T = 0.02\n", "T = 0.02\ntolerance = { diffusion = 0.1 }\n") + 'scope = "sensor"\n'
    site = parse_site(text)
    seen: list[float] = []
    cloak = site.choose_sensors(3, progress=seen.append).cloak
    assert cloak.physics.sensors == 3
    assert (cloak.epsilon, cloak.delta, cloak.alpha, cloak.readings_per_window) == (2.0, 1e-4, 0.02, 2)
    assert cloak.scope == "sensor"
    assert cloak.family.tolerance == site.tolerance
    assert seen


def test_a_sensor_may_have_its_own_baseline() -> None:
    site = parse_site("baseline = 21.5\n" + FLAT)
    assert site.sensor_ids == ("hall", "study")
    assert site.baselines.tolist() == [21.5, 19.0]


@pytest.mark.parametrize(
    ("window", "seconds"),
    [('"1h"', 3600), ('"90 s"', 90), ('"2d"', 172800), ('"1w"', 604800), ('"500ms"', 0.5), ("12.5", 12.5), ("7", 7)],
)
def test_windows_have_units(window: str, seconds: float) -> None:
    site = parse_site(changed(LINE, '"30min"', window))
    assert site.spec.privacy.window == pytest.approx(seconds)
    assert 500 * seconds < site.period_ms < 530 * seconds


PLANE = changed(LINE, 'kind = "line"\nplaces = 30', 'kind = "plane"\nplaces = [6, 5]\nsize = [2.0, 1.0]')
GRAPH = changed(
    LINE,
    'kind = "line"\nplaces = 30\nT = 0.02',
    'kind = "graph"\nedges = [["a", "b"], ["b", "c", 2.0, 3.0], ["c", 4]]\ntau = 0.5',
).replace("sensors = 5", "sensors = 2")
MATRIX = changed(LINE, 'kind = "line"\nplaces = 30\nT = 0.02', 'kind = "matrix"\nfile = "m.csv"').replace(
    "sensors = 5", "sensors = 2"
)


@pytest.mark.parametrize(
    ("text", "kind", "shape"),
    [
        (LINE, HeatLine, (5, 30)),
        (PLANE, HeatPlane, (5, 30)),
        (FLAT, FloorPlan, (2, 9)),
        (GRAPH, Graph, (2, 4)),
        (MATRIX, Matrix, (2, 3)),
    ],
    ids=["line", "plane", "floorplan", "graph", "matrix"],
)
def test_every_kind_loads(text: str, kind: type, shape: tuple[int, int], tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("1,0.5,0\n0,0.5,1\n")
    (tmp_path / "site.toml").write_text(text)
    site: Site = load_site(tmp_path / "site.toml")
    assert type(site.physics) is kind
    assert site.physics.matrix.shape == shape
    assert np.isfinite(site.cloak().sigmas).all()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "T = 0.02",
            "T = 0.02\nspeed = 3",
            r"line 8: physics\.speed = 3: there is no such key here \(allowed: .*placement",
        ),
        (
            "sensors = 5",
            "sensors = 5\ncolour = 1",
            r"line 3: colour = 1: there is no such key here \(allowed: name, sensors",
        ),
        ("alpha = 0.02\n", "", r"line 10: privacy\.alpha: this key is missing"),
        ("T = 0.02\n", "", r"line 4: physics\.T: this key is missing"),
        ('name = "corridor"\n', "", r"line 1: name: this key is missing"),
        ("T = 0.02", 'T = "slow"', r"line 7: physics\.T = 'slow': .*number"),
        ("T = 0.02", "T = true", r"line 7: physics\.T = True: .*number"),
        ("T = 0.02", "T = -1.0", r"line 7: physics\.T = -1\.0: give a number above 0"),
        ("T = 0.02", "T = nan", r"line 7: physics\.T = nan: .*finite"),
        ("T = 0.02", "T = inf", r"line 7: physics\.T = inf: .*finite"),
        ("places = 30", "places = 0", r"line 6: physics\.places = 0: give a number of at least 1"),
        ("places = 30", "places = 2.5", r"line 6: physics\.places = 2\.5: give a whole number"),
        ('kind = "line"', 'kind = "tube"', r"line 5: .*kind = one of floorplan, graph, line, matrix, plane"),
        ('kind = "line"\n', "", r"line 4: .*kind = one of floorplan, graph, line, matrix, plane"),
        ("delta = 1e-4", "delta = 0.0", r"line 12: privacy\.delta = 0\.0: give a number above 0"),
        ("delta = 1e-4", "delta = 1.0", r"line 12: privacy\.delta = 1\.0: give a number below 1"),
        ("delta = 1e-4", "delta = nan", r"line 12: privacy\.delta = nan"),
        ("epsilon = 2.0", "epsilon = 0", r"line 11: privacy\.epsilon = 0: give a number above 0"),
        ("alpha = 0.02", "alpha = 0", r"line 13: privacy\.alpha = 0: give a number above 0"),
        (
            '"30min"',
            '"half an hour"',
            r"line 14: privacy\.window = 'half an hour': give seconds, or a number with ms, s, min",
        ),
        ('"30min"', '"-5s"', r"line 14: privacy\.window = '-5s': give seconds"),
        ('"30min"', "0", r"line 14: privacy\.window = 0: give a number above 0"),
        ("readings_per_window = 2", "readings_per_window = 0", r"line 15: privacy\.readings_per_window = 0"),
        ("readings_per_window = 2", 'scope = "world"', r"line 15: privacy\.scope = 'world': .*'network' or 'sensor'"),
        (
            "readings_per_window = 2",
            'design = "best"',
            r"line 15: privacy\.design = 'best': .*'least-error' or 'equal'",
        ),
        ('"pulse"', '"lasting"', r'sources\.kind = "lasting" with a model of a pulse'),
        ('"pulse"', '"puff"', r"line 9: sources\.kind = 'puff': .*'lasting' or 'pulse'"),
        ('"corridor"', '"a b"', r"line 1: name = 'a b'"),
        ("sensors = 5", "sensors = -2", r"line 2: sensors = -2"),
        ("sensors = 5\n", "", "give either sensors = N for even spacing, or one"),
        ("baseline = 20.5", "baseline = nan", r"line 3: baseline = nan: .*finite"),
        ("T = 0.02", "T = ", r"not valid TOML: .*line 7"),
        ("T = 0.02", "T = 0.02\nT = 0.03", r"not valid TOML: .*line 8"),
    ],
)
def test_a_bad_value_is_named_with_its_line(old: str, new: str, says: str) -> None:
    said = refusal(changed(LINE, old, new))
    assert said.startswith("site.toml")
    assert re.search(says, said), said
    assert "pydantic" not in said


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('id = "study"', 'id = "hall"', r'line 11: sensor: sensors 1 and 2 are both called "hall"; ids must differ'),
        ("at = [2.3, 0.3]", "at = [9.0, 0.3]", r'line 16: sensor "study": \(9, 0\.3\) is not on the floor'),
        ("at = [2.3, 0.3]", "at = [1.2, 0.9]", r'line 16: sensor "study": \(1\.2, 0\.9\) is not on the floor'),
        ("at = [2.3, 0.3]", "at = 2.3", r'line 16: .*sensor "study": at = 2\.3; give \[x, y\]'),
        ("at = [2.3, 0.3]\n", "", r'line 1[45]: .*sensor "study": .*give \[x, y\]'),
        ("at = [2.3, 0.3]", "at = [2.3, nan]", r"line 16: sensor\[2\]\.at"),
        ('id = "study"', 'id = "the study"', r"line 15: sensor\[2\]\.id = 'the study'"),
        (
            'name = "flat"',
            'name = "flat"\nsensors = 4',
            "give either sensors = N for even spacing, or one .*both are given",
        ),
        ("..#..", "..x..", r"line 5: drawing, line 1, column 3: 'x' has no meaning"),
        ("..+..", "..#..", r"line 5: the floor has 2 parts|line 2: the floor has 2 parts"),
        ("reach = 1.0", "length = 1.0", r'line 2: physics: regime = "steady" needs reach \(metres\), and no length'),
        ('regime = "steady"\nreach = 1.0', 'regime = "pulse"\nlength = 1.0', '"lasting" with a model of a pulse'),
        ("cell = 0.5", "cell = 0.5\nsize = [1.0, 1.0]", "give either drawing, or size with walls and doors"),
        ("cell = 0.5", "cell = 0.5\nwalls = [[[0, 0], [1, 1]]]", "walls and doors go with size"),
        ("cell = 0.5", "cell = 0.5\nfootprint = -1", r"line 5: physics\.footprint = -1"),
    ],
)
def test_a_bad_floor_is_named_with_its_line(old: str, new: str, says: str) -> None:
    said = refusal(changed(FLAT, old, new))
    assert re.search(says, said), said


def test_every_bad_value_has_its_own_sentence() -> None:
    said = refusal(LINE.replace("T = 0.02", "T = -1.0").replace("alpha = 0.02", "alpha = 0.0")).splitlines()
    assert [re.findall(r"line \d+", line) for line in said] == [["line 7"], ["line 13"]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file or directory. Write an example with: cloakwork init"),
        (b"\xff\xfe\x00", "not a text file in UTF-8"),
    ],
)
def test_unreadable_files_are_refused(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SiteError, match=message):
        load_site(path)


def test_a_folder_or_a_huge_file_is_not_a_site(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="Is a directory"):
        load_site(tmp_path)
    huge = tmp_path / "huge.toml"
    huge.write_bytes(b"#" * 10_000_001)
    with pytest.raises(SiteError, match="larger than 10 MB"):
        load_site(huge)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('name = "flat"', 'name = "my flat"', "name = 'my flat': give letters, digits, - and _"),
        ("reach = 1.0", "rech = 1.0", r"physics\.rech = 1\.0: there is no such key here .*did you mean reach\?"),
        ("cell = 0.5", 'cell = "50cm"', r"physics\.cell = '50cm': give a number, without quotes and without a unit"),
        (
            'kind = "floorplan"',
            'kind = "floor plan"',
            r"physics\.kind = 'floor plan': give kind = one of floorplan, graph",
        ),
        ("at = [2.3, 0.3]", "at = [1, 2, 3]", r"sensor\[2\]\.at = \[1, 2, 3\]: give a number on a line, \[x, y\]"),
    ],
)
def test_a_slip_gets_the_words_a_person_needs(old: str, new: str, says: str) -> None:
    said = refusal(changed(FLAT, old, new))
    assert re.search(says, said), said


def test_a_missing_table_is_called_a_table() -> None:
    said = refusal(FLAT[: FLAT.index("[privacy]")])
    assert "the table [privacy] is missing" in said
