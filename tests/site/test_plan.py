"""The frozen plan: it is computed once, read back exactly, and refused for any other site."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cloakwork.errors import PlanError, SiteError
from cloakwork.privacy import Cloak
from cloakwork.site import Plan, Site, freeze, load_plan, load_site, parse_site, plan_beside
from tests.site.conftest import LINE

TAIL = '[sources]\nkind = "pulse"\n[privacy]\nepsilon = 4.0\ndelta = 1e-4\nalpha = 0.05\n'
GRAPH = 'name = "feeders"\nsensors = 3\n[physics]\nkind = "graph"\ntau = 0.5\nedges = "edges.csv"\n' + TAIL
MATRIX = 'name = "kitchen"\nsensors = 3\n[physics]\nkind = "matrix"\nfile = "m.csv"\npairs = "pairs.csv"\n' + TAIL
SITES = {
    "least error": LINE,
    "equal": LINE + 'design = "equal"\n',
    "given steps": LINE + "resolution = 0.01\nreadings_per_window = 7\n",
    "given steps, equal": LINE + 'resolution = 0.5\ndesign = "equal"\n',
    "one sensor": LINE + 'scope = "sensor"\n',
    "one sensor, given steps": LINE + 'scope = "sensor"\nresolution = 0.001\n',
    "a set of models": LINE.replace("T = 0.01\n", "T = 0.01\ntolerance = { diffusion = 0.1, gain = 0.05 }\n"),
    "graph": GRAPH,
    "matrix": MATRIX,
}


def written(folder: Path, text: str) -> Site:
    (folder / "m.csv").write_text("1,0.5,0,0\n0,0.5,1,0.3\n0.2,0.1,0.4,1\n")
    (folder / "pairs.csv").write_text("0,1,1\n1,2,1\n2,3,1\n")
    (folder / "edges.csv").write_text("a,b\nb,c\nc,d\nd,a\n")
    (folder / "site.toml").write_text(text)
    return load_site(folder / "site.toml")


def loaded(text: str, folder: Path) -> Plan:
    (folder / "p.json").write_text(text)
    return load_plan(folder / "p.json")


@pytest.fixture(scope="module", params=SITES)
def designed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, Cloak, Plan]:
    """Each site with its cloak and its frozen plan."""
    site = written(tmp_path_factory.mktemp("site"), SITES[request.param])
    cloak = site.cloak()
    return site, cloak, freeze(site, cloak)


def test_a_plan_is_read_back_as_it_was_written(designed: tuple[Site, Cloak, Plan]) -> None:
    site, _, plan = designed
    plan.write(plan_beside(site.folder / "site.toml"))
    again = load_plan(site.folder / "site.plan.json")
    assert again == plan
    assert again.digest == plan.digest


def test_the_cloak_of_a_plan_meets_the_claim_with_the_planned_noise(designed: tuple[Site, Cloak, Plan]) -> None:
    site, original, plan = designed
    cloak = plan.cloak(site)
    assert cloak.frame_mu <= cloak.allowance.mu
    assert cloak.profile.epsilon(cloak.delta) <= cloak.epsilon
    assert cloak.sigmas == pytest.approx(original.sigmas * (1 + 1e-9), rel=1e-15)
    assert (cloak.steps == original.steps).all()
    assert cloak.spent == 0
    for name_of_claim in ("epsilon", "delta", "alpha", "scope", "readings_per_window"):
        assert getattr(cloak, name_of_claim) == getattr(original, name_of_claim)
    # noise that is smaller by many roundings of the last digit, as another machine might compute it, is accepted
    site.cloak_with(cloak.sigmas * (1 - 1e-10), cloak.steps)


def test_a_new_version_does_not_take_an_unchanged_site_file_for_a_changed_one() -> None:
    """Its plan would be refused, and all devices would have to be provisioned again."""
    kept = "9173d046281d58368d3d6e08acdd6e94048634b0d1094f9210d4af35ac1deffd"
    assert parse_site(LINE).digest == kept
    assert parse_site(LINE + 'design = "least-error"\n').digest == kept, "the default, stated"
    assert parse_site(LINE + 'design = "equal"\n').digest != kept


def test_a_cloak_of_another_site_is_not_frozen() -> None:
    site, other = parse_site(LINE), parse_site(LINE)
    with pytest.raises(SiteError) as caught:
        freeze(site, other.cloak())
    assert caught.value.values["site"] == "pipe"


def test_the_digest_is_of_numbers_and_not_of_how_they_are_printed(
    plan: Plan, values: dict[str, Any], tmp_path: Path
) -> None:
    """Another program that writes the same numbers with 17 digits has written the same plan."""
    printed = re.sub(r"\d+\.\d+(e-?\d+)?", lambda found: f"{float(found.group()):.16e}", json.dumps(values))
    assert printed != json.dumps(values)
    assert loaded(printed, tmp_path) == plan


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (LINE, "alpha = 0.05", "alpha = 0.04"),
        (LINE, "baseline = 20.5", "baseline = 21.5"),
        (LINE, "sensors = 6", 'sensors = 6\nunit = "K"'),
        (LINE, "T = 0.01", "T = 0.011"),
        (LINE, "alpha = 0.05", 'alpha = 0.05\nperiod = "10min"'),
        (LINE, 'kind = "pulse"', 'kind = "pulse"\nmax_count = 2'),
        (GRAPH, "tau = 0.5", "tau = 0.6"),
    ],
)
def test_a_changed_site_file_is_refused(text: str, old: str, new: str, tmp_path: Path) -> None:
    site = written(tmp_path, text)
    plan = freeze(site, site.cloak())
    assert text.count(old) == 1
    changed = written(tmp_path, text.replace(old, new))
    with pytest.raises(PlanError) as caught:
        plan.cloak(changed)
    assert caught.value.values["reason"] == "changed"


@pytest.mark.parametrize(
    ("text", "file"), [(GRAPH, "edges.csv"), (MATRIX, "m.csv"), (MATRIX, "pairs.csv")], ids=["edges", "matrix", "pairs"]
)
def test_a_changed_file_that_the_site_names_is_refused(text: str, file: str, tmp_path: Path) -> None:
    site = written(tmp_path, text)
    plan = freeze(site, site.cloak())
    plan.cloak(load_site(tmp_path / "site.toml"))
    with (tmp_path / file).open("a") as more:
        more.write("# a comment\n")
    with pytest.raises(PlanError) as caught:
        plan.cloak(load_site(tmp_path / "site.toml"))
    assert caught.value.values["reason"] == "changed"
    (tmp_path / file).unlink()
    with pytest.raises(SiteError, match=file):
        plan.cloak(site)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name = "pipe"', '# mine\nname = "pipe"'),
        ("alpha = 0.05", 'window = "60min"\nalpha = 5e-2\nscope = "network"'),
        ("alpha = 0.05", 'alpha = 0.05\n[[zone]]\nid = "left"\nbetween = [0.0, 0.5]'),
        ("alpha = 0.05", 'alpha = 0.05\n[motion]\nabsent = "1h"\nhold = 5\n[[entrance]]\nat = 0.5'),
        ("alpha = 0.05", "alpha = 0.05\n[drift]\nsensor = 0.1\n[[heat]]\nat = 0.5\nstrength = 1.0"),
    ],
    ids=["comment", "defaults", "zone", "motion", "drift"],
)
def test_what_has_no_part_in_the_claim_does_not_change_a_plan(old: str, new: str, plan: Plan, tmp_path: Path) -> None:
    changed = written(tmp_path, LINE.replace(old, new))
    assert changed.digest == plan.site_digest
    assert plan.cloak(changed).sigmas.tolist() == [sensor.sigma for sensor in plan.sensors]


def test_the_plan_of_another_site_is_refused(plan: Plan) -> None:
    other = parse_site(LINE.replace('"pipe"', '"tube"'), name="my tube.toml")
    with pytest.raises(PlanError) as caught:
        plan.cloak(other, file="p.json")
    assert caught.value.values == {"reason": "site", "plan": "p.json", "site": "my tube.toml", "rewrite": False}
