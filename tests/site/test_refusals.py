"""What is wrong in a site file is named with its key and its line: one table for every part of the file."""

import pytest

from cloakwork.errors import SiteError
from cloakwork.site import parse_any_site
from tests.device.test_bits import SITE as BITS
from tests.device.test_stays import SITE as STAYS
from tests.site.test_following import MANY
from tests.site.test_site import FLAT, LINE
from tests.site.test_zones import GRAPH, PLANE, ROOMS

# a text, what to replace in it (None: add to its end), the new text, and the line of each wrong key; -1 is the last
WRONG: list[tuple[str, str | None, str, dict[str, int]]] = [
    (LINE, "T = 0.02", "T = 0.02\nspeed = 3", {"physics.speed": 8}),
    (LINE, "alpha = 0.02\n", "", {"privacy.alpha": 10}),
    (LINE, 'name = "corridor"\n', "", {"name": 1}),
    (LINE, "T = 0.02", 'T = "slow"', {"physics.T": 7}),
    (LINE, "places = 30", "places = 2.5", {"physics.places": 6}),
    (LINE, 'kind = "line"', 'kind = "tube"', {"physics.kind": 5}),
    (LINE, "delta = 1e-4", "delta = 0.0", {"privacy.delta": 12}),
    (LINE, "alpha = 0.02", "alpha = 0", {"privacy.alpha": 13}),
    (LINE, '"30min"', '"half an hour"', {"privacy.window": 14}),
    (LINE, "readings_per_window = 2", "readings_per_window = 0", {"privacy.readings_per_window": 15}),
    (LINE, '"pulse"', '"lasting"', {"": 1}),
    (LINE, '"corridor"', '"a b"', {"name": 1}),
    (LINE, "sensors = 5\n", "", {"": 1}),
    (LINE, "baseline = 20.5", "baseline = nan", {"baseline": 3}),
    (FLAT, 'id = "study"', 'id = "hall"', {"sensor": 11}),
    (FLAT, "at = [2.3, 0.3]", "at = [9.0, 0.3]", {"sensor[2].at": 16}),
    (FLAT, "at = [2.3, 0.3]\n", "", {"sensor[2].at": 14}),
    (FLAT, 'name = "flat"', 'name = "flat"\nsensors = 4', {"": 1}),
    (FLAT, "..#..", "..x..", {"physics.drawing": 5}),
    (FLAT, "..+..", "..#..", {"physics": 2}),
    (FLAT, 'regime = "steady"\nreach = 1.0', 'regime = "pulse"\nlength = 1.0', {"": 1}),
    (FLAT, "cell = 0.5", "cell = 0.5\nsize = [1.0, 1.0]", {"physics": 2}),
    (FLAT, "reach = 1.0", "rech = 1.0", {"physics.rech": 10}),
    (FLAT, "[privacy]", "[privacy]\nnoise_floor = 0.04", {"": 1}),
    (FLAT, "baseline = 19.0", "baseline = 19.0\nresolution = 0.01", {"": 1}),
    (FLAT, "[privacy]", "[privacy]\nresolution = 0.0625\nnoise_floor = -0.04", {"privacy.noise_floor": 22}),
    (LINE, 'kind = "pulse"', 'kind = "pulse"\nstrength = [4.0, 1.0]', {"sources.strength": 10}),
    (LINE, 'kind = "pulse"', 'kind = "pulse"\nstrength = -1.0', {"sources.strength": 10}),
    (ROOMS, None, '[motion]\nkind = "cats"', {"motion.kind": -1}),
    (ROOMS, None, '[motion]\nkind = "still"\nspeed = 0.5', {"motion.speed": -1}),
    (ROOMS, None, '[motion]\nkind = "still"\nstay = "1h"', {"motion.stay": -1}),
    (ROOMS, None, '[motion]\nspeed = "fast"', {"motion.speed": -1}),
    (ROOMS, None, '[motion]\nhold = "-30s"', {"motion.hold": -1}),
    (LINE, None, "[motion]\nspeed = 0.5", {"motion.speed": -1}),
    (MANY, None, "[motion]\nhold = 60\nwalk = 3", {"motion.walk": -1}),
    (ROOMS, None, "[[entrance]]\nat = [1, 2, 3]", {"entrance[1].at": -1}),
    (ROOMS, None, "[[entrance]]\nat = [0.1, 0.1]", {"entrance[1].at": -1}),
    (LINE, None, "[[entrance]]\nat = 3.5", {"entrance[1].at": -1}),
    (GRAPH, None, '[[entrance]]\nat = "q"', {"entrance[1].at": -1}),
    (MANY, None, "[[entrance]]\nat = [1, 1]", {"entrance[1].at": -1}),
    (ROOMS, None, '[[zone]]\nid = "z"\nroom = [2.25, 0.75]', {"zone[1].room": -1}),
    (ROOMS, None, '[[zone]]\nid = "z"\nbetween = [0, 1]', {"zone[1].between": -1}),
    (PLANE, None, '[[zone]]\nid = "z"\ncorners = [[0, 0], [0.2, 0.2]]', {"zone[1].corners": -1}),
    (LINE, None, '[[zone]]\nid = "z"\nbetween = [0.5, 2.5]', {"zone[1].between": -1}),
    (LINE, None, '[[zone]]\nid = "z"\nbetween = [0.5, 0.5]', {"zone[1].between": -1}),
    (GRAPH, None, '[[zone]]\nid = "z"\nplaces = ["a", "q"]', {"zone[1].places": -1}),
    (GRAPH, None, '[[zone]]\nid = "z"\nlabel = "z"', {"zone[1]": -3}),
    (LINE, None, '[[zone]]\nid = "z"\nbetween = [0, 1]\nplaces = ["a"]', {"zone[1]": -4}),
    (LINE, None, '[[zone]]\nid = "z"\nbetween = [0, 1]\nlabel = "\\n"', {"zone[1].label": -1}),
    (LINE, None, '[[zone]]\nid = "z"\nbetween = [0, 1]\n[[zone]]\nid = "z"\nbetween = [0.5, 1]', {"zone": -6}),
    (FLAT, None, "[drift]\nall = -1.0", {"drift.all": -1}),
    (FLAT, None, "[drift]\nover = 0", {"drift.over": -1}),
    (FLAT, None, "[[heat]]\nat = [9.0, 0.1]\nstrength = 1.0", {"heat[1].at": -2}),
    (LINE, None, "[drift]\nroom = 1.0", {"drift.room": -1}),
    (LINE, None, "[[heat]]\nat = 4.0\nstrength = 1.0", {"heat[1].at": -2}),
    (STAYS, 'length = "2h"', 'length = "30s"', {"privacy.stay": 19}),
    (STAYS, "epsilon = 20.0", "epsilon = 0.0", {"privacy.stay.epsilon": 21}),
    (STAYS, "epsilon = 20.0\ndelta = 1e-5", "epsilon = 20.0\ndelta = 0.0", {"privacy.stay.delta": 22}),
    (STAYS, '[sources]\nkind = "lasting"', '[sources]\nkind = "pulse"', {"privacy.stay": 19}),
    (BITS, 'zone = "left"\n', 'zone = "right"\n', {"": 1}),
    (BITS, "readings_per_window = 60\n", "", {"bits.readings_per_window": 2}),
    (BITS, "epsilon = 2.0", "epsilon = 1000.0", {"bits.epsilon": 3}),
    (BITS, "[bits]\n", "[bits]\nalpha = 1.0\n", {"bits.alpha": 3}),
    (BITS, '[[zone]]\nid = "left"\n', "", {"zone": 1}),
    (BITS, None, '[[sensor]]\nid = "door"\nzone = "left"', {"sensor": -6}),
    (FLAT, 'regime = "steady"\nreach = 1.0', 'regime = "pulse"\nlength = 1.0\nlag = 60', {"physics": 2}),
]


@pytest.mark.parametrize(("text", "old", "new", "lines"), WRONG, ids=[repr(new)[1:-1] for _, _, new, _ in WRONG])
def test_what_is_wrong_is_named_with_its_key_and_line(
    text: str, old: str | None, new: str, lines: dict[str, int]
) -> None:
    assert old is None or text.count(old) == 1
    changed = f"{text}{new}\n" if old is None else text.replace(old, new)
    last = len(changed.splitlines())
    with pytest.raises(SiteError) as caught:
        parse_any_site(changed, name="site.toml")
    assert caught.value.values["path"] == "site.toml"
    assert caught.value.values["lines"] == {key: line if line > 0 else last + 1 + line for key, line in lines.items()}
    assert str(caught.value).count("site.toml, line ") == len(str(caught.value).splitlines())
