"""Where in a TOML text a key was set."""

import pytest

from cloakwork.site.site_file import KeyPath, locate

TEXT = '''# a site
name = "a # not a comment [nor a table]"
"quoted key" = 1
[physics]   # the model
kind = "floorplan"
drawing = """
[privacy]
epsilon = 1
#..+..#
"""
walls = [
    [[1.0, 0.0], [1.0, 8.0]],  # [sources]
    [[6.0, 4.0],
     [10.0, 4.0]],
]
after = 1
literal = \'\'\'
name = 2
"""
\'\'\'
inline = { a = 1, b = [
  2,
] }
same = """one line""" # and on
last = 'a"b'
physics.dotted.key = 3
[physics.tolerance]
gain = 0.1
[[sensor]]
id = "one"
at = [1, 2]

[[sensor]]
id = "two"
[privacy]
epsilon = 1
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("name",), 2),
        (("physics",), 4),
        (("physics", "kind"), 5),
        (("physics", "walls"), 11),
        (("physics", "after"), 16),
        (("physics", "literal"), 17),
        (("physics", "inline"), 21),
        (("physics", "same"), 24),
        (("physics", "last"), 25),
        (("physics", "physics", "dotted", "key"), 26),
        (("physics", "tolerance", "gain"), 28),
        (("physics", "tolerance", "missing"), 27),
        (("physics", "missing"), 4),
        (("sensor", 0, "at"), 31),
        (("sensor", 1, "id"), 34),
        (("sensor", 1, "at"), 33),
        (("privacy", "epsilon"), 36),
        (("nothing",), 1),
    ],
)
def test_a_key_is_found_on_its_line(path: KeyPath, line: int) -> None:
    assert locate(TEXT, path) == line


@pytest.mark.parametrize("text", ["", "\n", "[", "= 3", '"""', "a = [[[", "a = 'b"])
def test_broken_texts_have_a_first_line(text: str) -> None:
    assert locate(text, ("x", "y")) == 1
