"""Models from site files: sensors, edges, matrices, and the files that they name."""

from pathlib import Path

import pytest

from cloakwork.errors import SiteError
from cloakwork.site import Site, parse_site

TAIL = """[sources]
kind = "pulse"
strength = 2.0
[privacy]
epsilon = 2.0
delta = 1e-4
alpha = 0.02
"""


def site(head: str, folder: Path | None = None) -> Site:
    return parse_site(f'name = "x"\n{head}\n{TAIL}', name="site.toml", folder=folder)


def refusal(head: str, folder: Path | None = None) -> object:
    """Which keys are refused, and on which lines."""
    with pytest.raises(SiteError) as caught:
        site(head, folder)
    return caught.value.values["lines"]


def test_strength_multiplies_every_model(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("1,2\n")
    matrix = site('sensors = 1\n[physics]\nkind = "matrix"\nfile = "m.csv"', tmp_path).physics
    graph = site('sensors = 2\n[physics]\nkind = "graph"\nedges = [["a", "b"]]\ntau = 0.0').physics
    assert matrix.matrix.tolist() == [[2.0, 4.0]]
    assert graph.matrix.tolist() == [[2.0, 0.0], [0.0, 2.0]]


def test_graph_sensors_stand_on_the_node_of_their_id_or_of_at() -> None:
    head = '[physics]\nkind = "graph"\nedges = [["a", "b"], ["b", "c"]]\ntau = 0.0\n'
    named = site(head + '[[sensor]]\nid = "c"\n[[sensor]]\nid = "first"\nat = "a"')
    assert named.sensor_ids == ("c", "first")
    assert named.physics.apply([1.0, 2.0, 3.0]).tolist() == [6.0, 2.0]


@pytest.mark.parametrize(
    "text",
    [
        "# from,to,weight,length\na,b,2,5\n\nb,c\n",
        "from,to,weight,length\na,b,2,5\nb,c,1,1\n",
        "Length, Target, Source\n5, b, a\n1, c, b\n",
    ],
)
def test_edges_may_be_a_file_with_or_without_a_header(tmp_path: Path, text: str) -> None:
    (tmp_path / "edges.csv").write_text(text)
    head = 'sensors = 3\n[physics]\nkind = "graph"\nedges = "edges.csv"\ntau = 0.5'
    space = site(head, tmp_path).physics.space
    assert space.distances(space.index("a")).tolist() == [0.0, 5.0, 6.0]


GRAPH = 'sensors = 1\n[physics]\nkind = "graph"\ntau = 0.5\n'
MATRIX = 'sensors = 1\n[physics]\nkind = "matrix"\n'
LINE = '[physics]\nkind = "line"\nplaces = 4\nT = 0.1\n'


@pytest.mark.parametrize(
    ("head", "lines"),
    [
        (GRAPH + 'edges = [["a"]]', {"physics.edges": 6}),
        (GRAPH + 'edges = [["a", "b", -1]]', {"physics": 3}),
        (GRAPH + 'edges = [["a", "b"], ["c", "d"]]', {"physics": 3}),
        (GRAPH + 'edges = "missing.csv"', {"physics.edges": 6}),
        (GRAPH.replace("sensors = 1", "sensors = 9") + 'edges = [["a", "b"]]', {"sensors": 2}),
        (GRAPH.replace("sensors = 1\n", "") + 'edges = [["a", "b"]]\n[[sensor]]\nid = "z"', {"sensor[1].at": 6}),
        (MATRIX + 'file = "missing.csv"', {"physics.file": 5}),
        (LINE + '[[sensor]]\nid = "a"\nat = 1.5', {"sensor[1].at": 8}),
        (LINE + '[[sensor]]\nid = "a"\nat = [0.5, 0.5]', {"sensor[1].at": 8}),
        (LINE + '[[sensor]]\nid = "a"', {"sensor[1].at": 6}),
    ],
)
def test_what_the_model_refuses_is_named_with_its_line(head: str, lines: dict[str, int], tmp_path: Path) -> None:
    assert refusal(head, tmp_path) == lines


@pytest.mark.parametrize(
    ("name", "content", "key"),
    [
        ("m.csv", b"1,2\n3\n", "physics.file"),
        ("m.csv", b"1,warm\n", "physics.file"),
        ("m.csv", b"1,nan\n", "physics"),
        ("m.csv", b"\xff\xfe\x00\x01", "physics.file"),
        ("m.npy", b"not numpy at all", "physics.file"),
    ],
)
def test_bad_matrix_files_are_refused(name: str, content: bytes, key: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert refusal(MATRIX + f'file = "{name}"', tmp_path) == {key: 3 if key == "physics" else 5}
