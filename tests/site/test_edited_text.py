"""Numbers of a site file change in place; comments and layout stay."""

import tomllib
from importlib.resources import files

import pytest

from cloakwork.errors import SiteError
from cloakwork.site import edited, parse_site

EXAMPLE = files("cloakwork.site").joinpath("example.toml").read_text(encoding="utf-8")
CHANGES: dict[tuple[str | int, ...], float] = {
    ("physics", "reach"): 1.75,
    ("physics", "tolerance", "diffusion"): 0.1,
    ("physics", "tolerance", "gain"): 0.02,
    ("sources", "strength"): 4.5,
    ("baseline",): 20.25,
}


def test_only_the_changed_lines_change() -> None:
    new = edited(EXAMPLE, CHANGES)
    old_lines = EXAMPLE.splitlines()
    added = [line for line in new.splitlines() if line not in old_lines]
    assert [line.split("#")[0].strip() for line in added] == [
        "baseline = 20.25",
        "reach = 1.75",
        "diffusion = 0.1",
        "gain = 0.02",
        "strength = 4.5",
    ]
    assert "# warmth fades to 1/e over this distance" in new
    assert parse_site(new).tolerance.gain == 0.02


def test_keys_in_a_drawing_or_in_brackets_are_no_keys() -> None:
    text = 'note = """\n[physics]\nreach = 9\n"""\n[physics]\nwalls = [\n  1,\n]\n'
    new = edited(text, {("physics", "reach"): 2.0})
    assert tomllib.loads(new)["physics"] == {"walls": [1], "reach": 2.0}
    assert tomllib.loads(new)["note"] == tomllib.loads(text)["note"]


def test_a_layout_that_cannot_be_edited_is_refused_with_the_values() -> None:
    with pytest.raises(SiteError) as refusal:
        edited('physics = {kind = "line", reach = 1.0}\n', {("physics", "reach"): 2.0})
    assert refusal.value.changes == {("physics", "reach"): 2.0}
