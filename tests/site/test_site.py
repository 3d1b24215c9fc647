"""Site files: which load, and where each mistake is reported."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from cloakwork.errors import SiteError
from cloakwork.physics import FloorPlan, Graph, HeatLine, HeatPlane, Matrix
from cloakwork.site import Site, freeze, load_site, parse_site

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


MEMORY = '[physics.tolerance]\nmemory = {}\n[[sensor]]\nid = "hall"'


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


def test_a_lag_is_a_duration_that_changes_no_plan() -> None:
    late = parse_site(changed(FLAT, 'regime = "steady"', 'regime = "steady"\nlag = "3min"'))
    assert (late.physics.lag, parse_site(FLAT).physics.lag) == (180.0, 0.0)
    assert late.digest == parse_site(FLAT).digest


def test_a_site_says_which_usual_rooms_and_sensors_its_claim_leaves_open() -> None:
    step = changed(FLAT, "[privacy]", "[privacy]\nresolution = 0.01")
    late = changed(step, 'regime = "steady"', 'regime = "steady"\nlag = "3min"')
    told = {
        "": parse_site(FLAT).left_open,
        "step": parse_site(step).left_open,
        "late": parse_site(late).left_open,
        "no memory": parse_site(changed(step, '[[sensor]]\nid = "hall"', MEMORY.format("false"))).left_open,
        "memory": parse_site(changed(late, '[[sensor]]\nid = "hall"', MEMORY.format("true"))).left_open,
        "pulse": parse_site(LINE).left_open,
    }
    assert [len(sentences) for sentences in told.values()] == [2, 1, 1, 1, 0, 1]
    assert "memory = true" in told["step"][0].change
    assert "180 s" in told["late"][0].problem
    assert "says memory = false" in told["no memory"][0].change
    assert "resolution" in told["pulse"][0].change


def test_a_sensor_may_have_its_own_hardware() -> None:
    text = changed(FLAT, "[privacy]", "[privacy]\nresolution = 0.0625\nnoise_floor = 0.04")
    site = parse_site(changed(text, "baseline = 19.0", "baseline = 19.0\nresolution = 0.01\nnoise_floor = 0.0"))
    assert site.resolutions is not None
    assert site.noise_floors is not None
    assert (site.resolutions.tolist(), site.noise_floors.tolist()) == ([0.0625, 0.01], [0.04, 0.0])
    assert (site.resolution_of("hall"), site.resolution_of("study")) == (0.0625, 0.01)
    cloak, plan = site.cloak(), freeze(site, site.cloak())
    assert cloak.rests_on_noise_floor
    assert [sensor.noise_floor for sensor in plan.sensors] == [0.04, 0.0]
    assert plan.cloak(site).rests_on_noise_floor
    assert (
        cloak.resolution_cost
        < parse_site(changed(text, "noise_floor = 0.04", "noise_floor = 0.0")).cloak().resolution_cost
    )
    assert "own, of at least 0 to 0.04" in " ".join(site.assumptions)


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


@pytest.mark.parametrize(("new", "line"), [("T = ", 7), ("T = 0.02\nT = 0.03", 8)])
def test_a_text_that_is_not_toml_is_refused_with_its_line(new: str, line: int) -> None:
    with pytest.raises(SiteError, match=f"TOML.*line {line}"):
        parse_site(changed(LINE, "T = 0.02", new))


@pytest.mark.parametrize(
    ("content", "word"),
    [(None, "cloakwork init"), (b"\xff\xfe\x00", "UTF-8"), (b"#" * 10_000_001, "10 MB")],
    ids=["missing", "no text", "huge"],
)
def test_a_file_that_is_no_site_is_refused(content: bytes | None, word: str, tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SiteError, match=word) as caught:
        load_site(path)
    assert caught.value.values["path"] == str(path)


def test_the_assumptions_of_a_claim_follow_the_file() -> None:
    told = " ".join(parse_site(FLAT).assumptions)
    assert [
        fact for fact in ("within 0.3 s", "1.5 m per second", "exact readings", "fresh noise") if fact not in told
    ] == []
    stepped = " ".join(parse_site(changed(LINE, 'window = "30min"', 'window = "30min"\nresolution = 0.25')).assumptions)
    assert [fact for fact in ("sources stay", "read a pulse", "in steps of 0.25") if fact not in stepped] == []
    alone = " ".join(parse_site(changed(FLAT, "[privacy]", '[privacy]\nscope = "sensor"')).assumptions)
    assert "within" not in alone


@pytest.mark.parametrize("text", [LINE, FLAT], ids=["line", "flat"])
def test_a_site_and_its_cloak_travel_to_other_processes(text: str) -> None:
    site = parse_site(text)
    cloak = site.cloak()
    there, its_cloak = pickle.loads(pickle.dumps((site, cloak)))  # noqa: S301 - our own
    assert there.digest == site.digest
    assert np.array_equal(its_cloak.sigmas, cloak.sigmas)
