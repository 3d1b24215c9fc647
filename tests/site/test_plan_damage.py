"""Files that are no plan, or not the plan that was written: each is refused, with what to do."""

import hashlib
import json
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloakwork.errors import SiteError
from cloakwork.site import Plan, freeze, load_plan, parse_site

LINE = """name = "pipe"
baseline = 20.5
sensors = 6
[physics]
kind = "line"
places = 20
T = 0.01
[sources]
kind = "pulse"
[privacy]
epsilon = 4.0
delta = 1e-4
alpha = 0.05
"""
Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def plan() -> Plan:
    site = parse_site(LINE, name="site.toml")
    return freeze(site, site.cloak())


@pytest.fixture
def values(plan: Plan, tmp_path: Path) -> dict[str, Any]:
    """What the file of the plan holds."""
    plan.write(tmp_path / "values.json")
    found: dict[str, Any] = json.loads((tmp_path / "values.json").read_text())
    return found


def signed(values: dict[str, Any]) -> str:
    """The values with the digest that belongs to them, as someone would write who knows the format."""
    body = {key: value for key, value in values.items() if key != "digest"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return json.dumps(body | {"digest": hashlib.sha256(text.encode()).hexdigest()})


def loaded(text: str, folder: Path) -> Plan:
    (folder / "p.json").write_text(text)
    return load_plan(folder / "p.json")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.integers(0, 10**9), letter=st.characters(max_codepoint=126))
def test_a_changed_letter_never_makes_another_plan(where: int, letter: str, plan: Plan, tmp_path: Path) -> None:
    plan.write(tmp_path / "p.json")
    text = (tmp_path / "p.json").read_text()
    where %= len(text)
    try:
        found = loaded(text[:where] + letter + text[where + 1 :], tmp_path)
    except SiteError:
        return
    assert found == plan


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "p.json: No such file or directory"),
        (b"", "not valid JSON"),
        (b"\xff\xfe", "not a text file in UTF-8"),
        (b"[1, 2]", "not a plan of Cloakwork"),
        (b'{"name": "flat"}', "not a plan of Cloakwork"),
        (b'{"v": 1, "digest": 3}', "not a plan of Cloakwork"),
        (b'{"v": 2, "digest": ""}', "a plan of version 2, where this Cloakwork reads version 1"),
        (b'{"v": true, "digest": ""}', "a plan of version True, where"),
        (b'{"v": 1, "digest": ""}', "changed or damaged since it was written"),
        (b'{"v": 1, "v": 1, "digest": ""}', "not valid JSON"),
        (b'{"v": 1, "mu": NaN, "digest": ""}', "a number in it is not finite"),
        (b'{"v": 1, "mu": 1e999, "digest": ""}', "a number in it is not finite"),
        (b'{"v": 1, "mu": ' + b"9" * 5000 + b', "digest": ""}', "not valid JSON"),
        (b'{"v": 1, "digest": "", "site": "\\ud800"}', "changed or damaged since it was written"),
        (b'{"v": ' + b"[" * 100_000, "not valid JSON"),
        (b'{"v": 1, "digest": "", "mu": ' + b"[" * 900 + b"]" * 900 + b"}", "changed or damaged|not valid JSON"),
    ],
)
def test_what_is_no_plan_is_refused(content: bytes | None, says: str, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SiteError) as caught:
        load_plan(path)
    assert re.search(says, str(caught.value)), str(caught.value)
    assert f"cloakwork plan SITE --out {path}" in str(caught.value)


def test_a_folder_or_a_huge_file_is_no_plan(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="Is a directory"):
        load_plan(tmp_path)
    with (tmp_path / "p.json").open("wb") as file:
        file.truncate(50_000_001)
    with pytest.raises(SiteError, match="larger than 50 MB"):
        load_plan(tmp_path / "p.json")


def test_half_a_plan_is_refused(values: dict[str, Any], tmp_path: Path) -> None:
    text = json.dumps(values)
    with pytest.raises(SiteError, match="not valid JSON"):
        loaded(text[: len(text) // 2], tmp_path)


def other_table(values: dict[str, Any]) -> None:
    """The same table under another digest."""
    (table,) = values["tables"].values()
    values["tables"] = {"a" * 64: table}
    for sensor in values["sensors"]:
        sensor["table"] = "a" * 64


def other_sigma(factor: float) -> Change:
    def change(values: dict[str, Any]) -> None:
        for one in (*values["sensors"], *values["tables"].values()):
            one["ratio"] *= factor
        for sensor in values["sensors"]:
            sensor["sigma"] *= factor

    return change


def first_table(values: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(iter(values["tables"].values()))
    return found


WRONG: list[tuple[Change, str]] = [
    (lambda v: v.pop("mu"), r"mu: .*required"),
    (lambda v: v.update(note="hello"), r"note: Unexpected keyword argument"),
    (lambda v: v["claim"].update(note=1), r"claim\.note: Unexpected keyword argument"),
    (lambda v: v["schedule"].update(note=1), r"schedule\.note: Unexpected keyword argument"),
    (lambda v: v["sensors"][2].update(true_reading=21.5), r"sensors\[2\]\.true_reading: Unexpected keyword"),
    (lambda v: v.update(site="two words"), r"site: String should match"),
    (lambda v: v.update(site_digest="A" * 64), r"site_digest: String should match"),
    (lambda v: v.update(mu=0.0), r"mu: Input should be greater than 0"),
    (lambda v: v.update(mu=1), "its numbers are not written as Cloakwork writes them"),
    (lambda v: v.update(sensors={}), r"sensors: Input should be a valid (array|tuple)"),
    (lambda v: v.update(sensors=[]), r"sensors: Tuple should have at least 1 item"),
    (lambda v: v["sensors"][0].update(sigma=-1.0), r"sensors\[0\]\.sigma: Input should be greater than 0"),
    (lambda v: v["sensors"][0].update(sigma="1.0"), r"sensors\[0\]\.sigma: Input should be a valid number"),
    (lambda v: v["sensors"][0].update(sigma=True), r"sensors\[0\]\.sigma: Input should be a valid number"),
    (lambda v: v["sensors"][0].update(baseline=None), r"sensors\[0\]\.baseline: Input should be a valid number"),
    (lambda v: v["sensors"][0].update(id="s 1"), r"sensors\[0\]\.id: String should match"),
    (lambda v: v["sensors"][0].update(id="s2"), "two sensors have the same id"),
    (lambda v: v["sensors"][0].update(table="b" * 64), "the tables are not those that the sensors use"),
    (lambda v: v["tables"].update({"b" * 64: first_table(v)}), "the tables are not those that the sensors use"),
    (lambda v: v["sensors"][0].update(ratio=1.0), 'the ratio of sensor "s1" is not that of its noise to its step'),
    (lambda v: v["sensors"][0].update(sigma=1e-6), 'the ratio of sensor "s1" is not that of its noise to its step'),
    (lambda v: v["claim"].update(scope="world"), r"claim\.scope: Input should be 'network' or 'sensor'"),
    (lambda v: v["claim"].update(readings_per_window=1.0), r"claim\.readings_per_window: Input should be a valid int"),
    (lambda v: v["claim"].update(readings_per_window=2), "allows more readings in a window than the claim covers"),
    (lambda v: v["claim"].update(window=7200.0), "allows more readings in a window than the claim covers"),
    (lambda v: v["schedule"].update(period_ms=1_800_000), "allows more readings in a window than the claim covers"),
    (lambda v: v["schedule"].update(late_ms=3_000), "allows more readings in a window than the claim covers"),
    (lambda v: v["schedule"].update(period_ms=3602000.0), r"schedule\.period_ms: Input should be a valid int"),
    (lambda v: v["schedule"].update(block=0), "block=0: give a whole number from 1"),
    (lambda v: first_table(v).update(bytes=16), "a table has another size than its levels"),
    (lambda v: first_table(v).update(bytes=10**7), r"tables\.\w+\.bytes: Input should be less than"),
    (lambda v: first_table(v).update(levels=[]), r"tables\.\w+\.levels: Tuple should have at least 1 item"),
    (lambda v: first_table(v).update(levels=[[0, 5]]), r"tables\.\w+\.levels\[0\]\[0\]: Input should be greater"),
    (lambda v: first_table(v).update(error=1.5), r"tables\.\w+\.error: Input should be less than 1"),
]


@pytest.mark.parametrize(("change", "says"), WRONG, ids=[says for _, says in WRONG])
def test_a_plan_that_makes_no_sense_is_refused_even_with_its_digest(
    change: Change, says: str, values: dict[str, Any], tmp_path: Path
) -> None:
    changed = deepcopy(values)
    change(changed)
    with pytest.raises(SiteError, match=says) as caught:
        loaded(signed(changed), tmp_path)
    assert "Write it again with: cloakwork plan SITE --out" in str(caught.value)
    with pytest.raises(SiteError):
        loaded(json.dumps(changed), tmp_path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (other_sigma(0.999), "this noise gives mu=.* multiply sigma by at least"),
        (other_sigma(1 + 1e-13), "other ratios of noise to step than this version makes"),
        (other_table, "other tables of noise than this version makes"),
    ],
    ids=["too little noise", "another ratio", "another table"],
)
def test_noise_that_this_version_would_not_make_is_refused(
    change: Change, says: str, values: dict[str, Any], tmp_path: Path
) -> None:
    change(values)
    forged = loaded(signed(values), tmp_path)
    with pytest.raises(SiteError, match=says) as caught:
        forged.cloak(parse_site(LINE, name="site.toml"), file="p.json")
    assert str(caught.value).endswith("Write the plan again with: cloakwork plan site.toml --out p.json")
