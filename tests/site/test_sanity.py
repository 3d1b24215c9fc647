"""What is odd about a site file is named with the key to change; what is impossible is refused."""

from importlib.resources import files

import pytest

from cloakwork.site import oddities, parse_site

FLAT = """\
name = "flat"
baseline = 21.0
unit = "°C"
[physics]
kind = "floorplan"
cell = 0.25
size = [9.0, 7.0]
walls = [[[5.0, 0.0], [5.0, 7.0]]]
doors = [[[5.0, 2.0], [5.0, 3.0]]]
regime = "steady"
reach = 2.0
footprint = 0.5
[sources]
kind = "lasting"
strength = 5.0
[privacy]
epsilon = 2.0
delta = 1e-5
alpha = 0.1
resolution = 0.0625
noise_floor = 0.04
[[sensor]]
id = "hall"
at = [1.0, 2.5]
[[sensor]]
id = "kitchen"
at = [7.0, 5.0]
[[zone]]
id = "left"
room = [1.0, 1.0]
[[zone]]
id = "right"
room = [8.0, 1.0]
"""


def changed(old: str, new: str) -> str:
    assert old in FLAT
    return FLAT.replace(old, new)


def test_sites_as_they_should_be_are_not_odd() -> None:
    assert oddities(parse_site(FLAT)) == ()
    example = files("cloakwork.site").joinpath("example.toml").read_text(encoding="utf-8")
    assert oddities(parse_site(example)) == ()


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("reach = 2.0", "reach = 100.0", ("physics", "reach")),
        ('regime = "steady"\nreach = 2.0', 'regime = "pulse"\nlength = 200.0', ("physics", "length")),
        ("strength = 5.0", "strength = 0.01", ("sources", "strength")),
    ],
)
def test_the_impossible_is_marked(old: str, new: str, key: tuple[str, str]) -> None:
    text = changed(old, new).replace('"lasting"', '"pulse"' if "length" in new else '"lasting"')
    found = oddities(parse_site(text))
    assert (found[0].key, found[0].impossible) == (key, True)
    assert "Write" in found[0].change or "write" in found[0].change or "Check" in found[0].change


@pytest.mark.parametrize(
    ("old", "new", "key", "says"),
    [
        ("reach = 2.0", "reach = 15.0", ("physics", "reach"), "write reach = 0.15"),
        ("reach = 2.0", "reach = 5.0", ("physics", "reach"), "read nearly the same"),
        ("delta = 1e-5", "delta = 0.5", ("privacy", "delta"), "may fail"),
        ("epsilon = 2.0", "epsilon = 12.0", ("privacy", "epsilon"), "nearly always right"),
        ("alpha = 0.1", "alpha = 10.0", ("privacy", "alpha"), "larger than the whole space"),
        ("alpha = 0.1", "alpha = 0.001", ("privacy", "alpha"), "write alpha = 0.1"),
        ("strength = 5.0", "strength = 0.2", ("sources", "strength"), "best sensor"),
        ("resolution = 0.0625\nnoise_floor = 0.04\n", "", None, ""),
        ("at = [7.0, 5.0]", "at = [5.0, 6.0]", ("sensor", 1, "at"), "on the line of a wall"),
        ("at = [7.0, 5.0]", "at = [5.0, 2.5]", None, ""),
        ('[[zone]]\nid = "right"\nroom = [8.0, 1.0]\n', "", ("zone",), "Add a [[zone]]"),
    ],
)
def test_the_implausible_is_named_with_the_line_to_change(
    old: str, new: str, key: tuple[str | int, ...] | None, says: str
) -> None:
    found = [each for each in oddities(parse_site(changed(old, new))) if not each.impossible]
    if key is None:
        assert found == []
        return
    assert key in [each.key for each in found]
    assert says in " ".join(str(each) for each in found)
