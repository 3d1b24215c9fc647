"""Files that are no plan, or not the plan that was written: each is refused, with what to do."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloakwork.errors import PlanError, SiteError
from cloakwork.site import Plan, load_plan, parse_site
from tests.site.conftest import LINE

Change = Callable[[dict[str, Any]], object]


def signed(values: dict[str, Any]) -> str:
    """The values with their right digest, as a forger who knows the format would write them."""
    body = {key: value for key, value in values.items() if key != "digest"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return json.dumps(body | {"digest": hashlib.sha256(text.encode()).hexdigest()})


def loaded(text: str, folder: Path) -> Plan:
    (folder / "p.json").write_text(text)
    return load_plan(folder / "p.json")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.integers(0, 10**9), letter=st.characters(max_codepoint=126))
def test_a_changed_letter_never_makes_another_plan(where: int, letter: str, plan: Plan, tmp_path: Path) -> None:
    if not (tmp_path / "whole.json").exists():
        plan.write(tmp_path / "whole.json")
    text = (tmp_path / "whole.json").read_text()
    where %= len(text)
    try:
        found = loaded(text[:where] + letter + text[where + 1 :], tmp_path)
    except SiteError:
        return
    assert found == plan


@pytest.mark.parametrize(
    ("content", "reasons"),
    [
        (None, "file"),
        (b"", "file"),
        (b'{"name": "flat"}', "form"),
        (b'{"v": 2, "digest": ""}', "version"),
        (b'{"v": 1, "digest": ""}', "digest"),
        (b'{"v": 1, "v": 1, "digest": ""}', "file"),
        (b'{"v": 1, "mu": NaN, "digest": ""}', "file"),
        (b'{"v": 1, "digest": "", "site": "\\ud800"}', "digest"),
        (b'{"v": ' + b"[" * 100_000, "file"),
        (b'{"v": 1, "digest": "", "mu": ' + b"[" * 900 + b"]" * 900 + b"}", "digest file"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(content: bytes | None, reasons: str, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PlanError) as caught:
        load_plan(path)
    assert caught.value.values["reason"] in reasons.split()
    assert (caught.value.values["plan"], caught.value.values["rewrite"]) == (str(path), True)


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
    (lambda v: v.pop("mu"), "mu"),
    (lambda v: v.update(note="hello"), "note"),
    (lambda v: v["sensors"][2].update(true_reading=21.5), "sensors[2].true_reading"),
    (lambda v: v.update(site="two words"), "site"),
    (lambda v: v.update(mu=0.0), "mu"),
    (lambda v: v.update(mu=1), "NUMBERS"),
    (lambda v: v.update(sensors=[]), "sensors"),
    (lambda v: v["sensors"][0].update(sigma=-1.0), "sensors[0].sigma"),
    (lambda v: v["sensors"][0].update(id="s 1"), "sensors[0].id"),
    (lambda v: v["sensors"][0].update(id="s2"), ""),
    (lambda v: v["sensors"][0].update(table="b" * 64), ""),
    (lambda v: v["tables"].update({"b" * 64: first_table(v)}), ""),
    (lambda v: v["sensors"][0].update(ratio=1.0), ""),
    (lambda v: v["sensors"][0].update(sigma=1e-6), ""),
    (lambda v: v["claim"].update(scope="world"), "claim.scope"),
    (lambda v: v["claim"].update(readings_per_window=2), ""),
    (lambda v: v["claim"].update(window=7200.0), ""),
    (lambda v: v["schedule"].update(period_ms=1_800_000), ""),
    (lambda v: v["schedule"].update(block=0), "schedule"),
    (lambda v: first_table(v).update(bytes=16), ""),
    (lambda v: first_table(v).update(levels=[]), "tables.TABLE.levels"),
    (lambda v: first_table(v).update(error=1.5), "tables.TABLE.error"),
]


@pytest.mark.parametrize(("change", "key"), WRONG)
def test_a_plan_that_makes_no_sense_is_refused_even_with_its_digest(
    change: Change, key: str, values: dict[str, Any], tmp_path: Path
) -> None:
    table = next(iter(values["tables"]))
    change(values)
    with pytest.raises(PlanError) as caught:
        loaded(signed(values), tmp_path)
    if key == "NUMBERS":
        assert caught.value.values["reason"] == "numbers"
    else:
        assert caught.value.values["reason"] == "content"
        assert caught.value.values["key"] == key.replace("TABLE", table)
    with pytest.raises(PlanError):
        loaded(json.dumps(values), tmp_path)


@pytest.mark.parametrize(
    ("change", "reason"), [(other_sigma(0.999), "noise"), (other_sigma(1 + 1e-13), "ratio"), (other_table, "table")]
)
def test_noise_that_this_version_would_not_make_is_refused(
    change: Change, reason: str, values: dict[str, Any], tmp_path: Path
) -> None:
    change(values)
    forged = loaded(signed(values), tmp_path)
    with pytest.raises(PlanError) as caught:
        forged.cloak(parse_site(LINE, name="site.toml"), file="p.json")
    assert caught.value.values == {"reason": reason, "plan": "p.json", "site": "site.toml", "rewrite": True}
