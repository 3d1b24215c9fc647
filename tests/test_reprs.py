"""The repr of a public object is one line, and shows no entry of an array."""

from importlib.resources import files

import networkx as nx
import numpy as np
import pytest

import cloakwork as cw

LINE = cw.HeatLine(n=6, m=3, T=0.05)
FLIP = cw.Flip(epsilon=3.0, readings_per_window=1)
OFFICE = cw.Blocks([[0.5, 0.1], [0.1, 0.5]])
ROOMS = cw.Rooms.from_text("...\n...", cell=0.5)


@pytest.mark.parametrize(
    "thing",
    [
        LINE,
        cw.Graph(nx.path_graph(5), tau=0.1),
        cw.Matrix(np.eye(40), cw.Space.line(40)),
        cw.FloorPlan(ROOMS, [(0.3, 0.3)], cw.Steady(1.0)),
        ROOMS.space,
        OFFICE,
        OFFICE.sample(20, rng=np.random.default_rng(1)),
        cw.plan_communities(n=50, blocks=OFFICE, epsilon=1.0),
        cw.RunningSum(),
        cw.Experts(["a", "b"], np.eye(2)),
        cw.tally([1000, 5_000_000], cw.Bins.between(0, 36_000_000, every=3_600_000)),
        cw.publish([3, 0, 4], cw.RunningSum(), epsilon=1.0, delta=1e-6),
        FLIP.shares([0] * 6 + [1] * 4),
        cw.simulated_day(LINE.space, people=1, hours=1, habits=cw.Habits()),
        cw.ReadingsFile("readings.csv", ("hall",)),
        cw.load_site(str(files("cloakwork.site") / "example.toml")),
        cw.Tradeoff((), zone="room", window=600.0, frames=24),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_a_repr_is_one_short_line(thing: object) -> None:
    text = repr(thing)
    assert type(thing).__name__ in text
    assert len(text) < 300
    assert not [part for part in ("\n", "array(", " at 0x") if part in text]
