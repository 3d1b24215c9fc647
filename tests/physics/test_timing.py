"""How far sources travel while the sensors of one frame measure."""

import math

import networkx as nx
import numpy as np
import pytest
from scipy import linalg

import cloakwork as cw
from cloakwork.physics import Family

PLAN = cw.FloorPlan(
    cw.Rooms.from_walls((4, 3), cell=0.5, walls=[((2, 0), (2, 3))], doors=[((2, 1), (2, 2))]),
    [(1, 1), (3, 2), (3, 1)],
    cw.Steady(reach=1.0),
    footprint=0.5,
)


@pytest.mark.parametrize("values", [{"spread": -1.0}, {"speed": -1.0}, {"speed": "fast"}, {"spread": math.nan}])
def test_a_timing_that_means_nothing_is_refused(values: dict[str, float]) -> None:
    with pytest.raises(cw.PhysicsError):
        cw.Timing(**values)


@pytest.mark.parametrize(
    "model",
    [PLAN, cw.HeatLine(n=20, m=5, T=0.01), cw.HeatPlane(n=(8, 8), m=(3, 3), T=0.01)],
    ids=["rooms", "line", "plane"],
)
def test_the_slope_of_a_frame_grows_from_that_of_one_instant_to_that_of_any_speed(model: cw.Physics) -> None:
    weights = np.linspace(1, 2, model.sensors)
    anywhere = float(np.linalg.norm(model.moves().each * weights))
    slopes = [Family(model, timing=cw.Timing(1.0, speed)).steepest(weights).value for speed in (0, 1e-9, 0.2, 5.0)]
    assert slopes[0] == model.moves().steepest(weights).value
    assert slopes[0] < slopes[1] < slopes[2] < slopes[3] <= anywhere * (1 + 1e-9)
    assert Family(model, timing=cw.Timing(1.0, "any")).steepest(weights).value == pytest.approx(anywhere)


@pytest.mark.parametrize("position", [0.0, 0.3])
@pytest.mark.parametrize("travel", [0.05, 0.3])
def test_the_slope_of_a_frame_is_the_least_that_holds_for_two_paths_at_any_distance(
    travel: float, position: float
) -> None:
    rng = np.random.default_rng(4)
    ring, length, sensors = nx.cycle_graph(24), 0.3, list(range(0, 24, 2))
    for *_, edge in ring.edges(data=True):
        edge.update(weight=float(rng.choice([0.2, 1.0, 4.0])), length=length)
    model = cw.Graph(ring, tau=0.5, sensors=sensors)
    heat = linalg.expm(-0.5 * nx.laplacian_matrix(ring).toarray())
    each = np.abs(np.array([heat[:, i] - heat[:, j] for i, j in ring.edges])) / length
    beside = (-1, 0, 1) if position else (0,)  # a sensor may be at the next node
    slopes = np.max([each[:, np.add(sensors, k) % 24] for k in beside], axis=0)
    far = dict(nx.all_pairs_shortest_path_length(ring))

    def swept(diameter: float) -> float:
        near = [[min(far[k][i], far[k][j]) * length <= diameter * (1 + 1e-9) for i, j in ring.edges] for k in ring]
        return max(float(np.linalg.norm(slopes[chosen].max(axis=0))) for chosen in near)

    at_once = np.linalg.norm(slopes, axis=1).max()
    shares = (np.arange(200) + 0.5) / 200
    table = {k: swept(k * length) for k in range(13)}
    needed = 0.0
    for apart in np.geomspace(0.01 * travel, 1000 * travel, 200):
        on_the_way = np.mean([table[min(12, int((travel + apart * share) / length))] for share in shares])
        needed = max(needed, min(on_the_way, at_once + travel / apart * swept(travel)))
    slope = Family(model, cw.Tolerance(position=position), cw.Timing(1.0, travel)).steepest().value
    assert 0.99 * needed <= slope <= 1.05 * min(needed, float(np.linalg.norm(slopes.max(axis=0))))
