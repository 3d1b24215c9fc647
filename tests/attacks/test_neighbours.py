"""Attacks: move weight between places, on every physics, through matrices that were built without the product.

Claim of all of them: moving weight over a total of alpha (earth mover distance) shifts the readings, rounded to steps,
by at most `frame_mu` standard deviations of the noise, for equal and designed noise, in both scopes.
"""

from collections.abc import Iterator
from functools import partial

import networkx as nx
import numpy as np
from scipy import linalg, sparse
from scipy.sparse import csgraph
from scipy.sparse import linalg as sparse_linalg

import cloakwork as cw
from tests.attacks.conftest import Attack
from tests.attacks.neighbours import Floats, attack_places

DRAWING = """
################
#......#.......#
#......+.......#
#......#.......#
###+########.###
#......#.......#
#......+.......#
#......#.......#
################
"""
CELL = 0.5


def cloaks(physics: cw.Physics, alpha: float, tolerance: cw.Tolerance | None = None) -> Iterator[cw.Cloak]:
    """Equal and designed noise, both scopes, fine and coarse steps."""
    made = partial(
        cw.Cloak, physics, epsilon=2.0, delta=1e-5, alpha=alpha, assumptions=cw.Assumptions(tolerance or cw.Tolerance())
    )
    equal = made()
    yield equal
    yield made(design="least-error")
    yield made(scope="sensor")
    yield made(hardware=cw.Hardware(resolution=0.2 * equal.sigma))


def kernel(sensors: Floats, places: Floats, T: float) -> Floats:
    """The heat kernel in extended precision, where the machine has it."""
    apart = np.asarray(sensors, dtype=np.longdouble)[:, None] - np.asarray(places, dtype=np.longdouble)
    return np.asarray(
        np.exp(-(apart**2) / (4 * np.longdouble(T))) / np.sqrt(4 * np.pi * np.longdouble(T)), dtype=np.float64
    )


def test_line(attack: Attack, rng: np.random.Generator) -> None:
    """Weight moved on a line; the kernel in extended precision."""
    for n, m, T in ((60, 12, 0.004), (200, 25, 0.0005), (25, 40, 0.05))[: attack.size(1, 3)]:
        places = np.arange(1, n + 1) / n
        matrix = kernel(np.arange(1, m + 1) / m, places, T)
        for cloak in cloaks(cw.HeatLine(n=n, m=m, T=T), alpha=0.02):
            attack_places(attack, cloak, matrix, np.abs(places[:, None] - places), rng, attack.size(5_000, 100_000))


def test_plane(attack: Attack, rng: np.random.Generator) -> None:
    """Weight moved on a plane, in every direction; the product of two kernels in extended precision."""
    n, m, size, T = (20, 14), (5, 4), (3.0, 2.0), 0.05
    axes = [[side * np.arange(1, k + 1) / k for side, k in zip(size, number, strict=True)] for number in (n, m)]
    x, y = (kernel(axes[1][k], axes[0][k], T) for k in range(2))
    matrix = np.asarray(np.kron(x, y), dtype=np.float64)
    places = np.stack(np.meshgrid(*axes[0], indexing="ij"), axis=-1).reshape(-1, 2)
    distances = np.sqrt(((places[:, None] - places) ** 2).sum(axis=2))
    for cloak in cloaks(cw.HeatPlane(n=n, m=m, T=T, size=size), alpha=0.1):
        attack_places(attack, cloak, matrix, distances, rng, attack.size(5_000, 100_000))


def test_graph(attack: Attack, rng: np.random.Generator) -> None:
    """Weight moved over networks with weights and lengths; the dense exponential of their Laplacian."""
    for seed in range(attack.size(1, 6)):
        graph = nx.connected_watts_strogatz_graph(60, 4, 0.3, seed=seed)
        for *_, data in graph.edges(data=True):
            data["weight"], data["length"] = rng.uniform(0.2, 3.0), rng.uniform(0.5, 2.0)
        laplacian = nx.laplacian_matrix(graph, weight="weight").toarray()
        sensors = sorted(rng.choice(60, 20, replace=False).tolist())
        matrix = linalg.expm(-0.4 * laplacian)[sensors]
        distances = np.asarray(nx.floyd_warshall_numpy(graph, weight="length"))
        for cloak in cloaks(cw.Graph(graph, tau=0.4, sensors=sensors), alpha=0.3):
            attack_places(attack, cloak, matrix, distances, rng, attack.size(3_000, 40_000))


class Plan:
    """The drawing, read again: its cells, their neighbours with some doors shut, and the physics of `FloorPlan`."""

    def __init__(self, shut: frozenset[int] = frozenset()) -> None:
        rows = DRAWING.strip().splitlines()[::-1]
        marks = {(row, column): mark for row, line in enumerate(rows) for column, mark in enumerate(line)}
        self.cells = sorted(place for place, mark in marks.items() if mark in ".+")
        number = {cell: k for k, cell in enumerate(self.cells)}
        doors = sorted(place for place, mark in marks.items() if mark == "+")
        closed = {doors[k] for k in shut}
        edges = [
            (number[a], number[b])
            for a in self.cells
            for b in ((a[0], a[1] + 1), (a[0] + 1, a[1]))
            if b in number and not {a, b} & closed
        ]
        i, j = np.array(edges).T
        half = sparse.coo_array((np.ones(len(i)), (i, j)), shape=(len(self.cells),) * 2)
        adjacency = (half + half.T).tocsr()
        degrees = np.asarray(adjacency.sum(axis=1)).ravel()
        self.laplacian = sparse.csc_array(sparse.diags_array(degrees) - adjacency)
        self.distances = CELL * csgraph.dijkstra(adjacency, directed=False, unweighted=True)

    def cell_of(self, x: float, y: float) -> int:
        return self.cells.index((int(y // CELL), int(x // CELL)))

    def steady(self, sensors: list[int], reach: float, footprint: float) -> Floats:
        eye = sparse.identity(len(self.cells), format="csc")
        solved = sparse_linalg.spsolve(((reach / CELL) ** 2 * self.laplacian + eye).tocsc(), eye.toarray())
        return np.asarray((self.exponential((footprint / CELL) ** 2 / 2) @ solved)[sensors] / CELL**2)

    def exponential(self, tau: float) -> Floats:
        values, vectors = np.linalg.eigh(self.laplacian.toarray())
        return np.asarray(vectors * np.exp(-tau * values) @ vectors.T)


AT = [(x, y) for x in (1.2, 2.7, 4.6, 6.9) for y in (0.9, 1.6, 2.8, 3.3)]
ROOMS = cw.Rooms.from_text(DRAWING, cell=CELL)


def test_floor_plan(attack: Attack, rng: np.random.Generator) -> None:
    """Weight carried through rooms and doors; a sparse solve and a dense spectrum, on the drawing read again."""
    plan = Plan()
    sensors = [plan.cell_of(x, y) for x, y in AT]
    steady = cw.FloorPlan(ROOMS, AT, cw.Steady(1.2), footprint=0.4, gain=3.0)
    pulse = cw.FloorPlan(ROOMS, AT, cw.Pulse(0.8), gain=3.0)
    matrices = (3 * plan.steady(sensors, 1.2, 0.4), 3 * plan.exponential((0.8 / CELL) ** 2 / 2)[sensors] / CELL**2)
    for physics, matrix in zip((steady, pulse), matrices, strict=True):
        for cloak in cloaks(physics, alpha=0.3):
            attack_places(attack, cloak, matrix, plan.distances, rng, attack.size(3_000, 100_000))


def test_matrix(attack: Attack, rng: np.random.Generator) -> None:
    """Weight moved under matrices of any kind, also of very different scales."""
    for _ in range(attack.size(2, 20)):
        m, n = int(rng.integers(1, 12)), int(rng.integers(3, 60))
        matrix = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-4, 4, (m, 1))
        tree = nx.random_labeled_tree(n, seed=int(rng.integers(1 << 30)))
        lengths = rng.uniform(0.1, 3.0, n - 1)
        for edge, length in zip(tree.edges, lengths, strict=True):
            tree.edges[edge]["length"] = length
        space = cw.Space.path(np.array(tree.edges), lengths, places=n)
        distances = np.asarray(nx.floyd_warshall_numpy(tree, nodelist=range(n), weight="length"))
        for cloak in cloaks(cw.Matrix(matrix, space), alpha=0.2):
            attack_places(attack, cloak, matrix, distances, rng, attack.size(1_000, 10_000))


def test_tolerance_of_a_line(attack: Attack, rng: np.random.Generator) -> None:
    """Models anywhere in the declared tolerance of a line: diffusion, gain of each sensor, position of each sensor.

    Claim: the noise covers every model of the declared set.
    """
    n, m, T = 40, 10, 0.004
    places, sensors = np.arange(1, n + 1) / n, np.arange(1, m + 1) / m
    tolerance = cw.Tolerance(diffusion=0.3, gain=0.1, position=0.02)
    distances = np.abs(places[:, None] - places)
    for cloak in cloaks(cw.HeatLine(n=n, m=m, T=T), 0.02, tolerance):
        for number in range(attack.size(8, 100)):
            extreme = number % 2 == 0  # half of the models at the ends of the set
            T_true = T * (1 + 0.3 * (rng.choice([-1, 1]) if extreme else rng.uniform(-1, 1)))
            gains = 1 + 0.1 * (1.0 if extreme else rng.uniform(-1, 1, (m, 1)))
            moved = sensors + 0.02 * (rng.choice([-1, 1], m) if extreme else rng.uniform(-1, 1, m))
            attack_places(attack, cloak, gains * kernel(moved, places, T_true), distances, rng, 1_000)


def test_tolerance_of_a_floor_plan(attack: Attack, rng: np.random.Generator) -> None:
    """Models anywhere in the declared tolerance of rooms: diffusion, gains, positions, and every set of shut doors.

    Claim: the noise covers every model of the declared set; a shut door is a wall, so that distance goes around it.
    """
    tolerance = cw.Tolerance(diffusion=0.3, gain=0.1, position=0.3, doors=True)
    flat = cw.FloorPlan(ROOMS, AT[::4], cw.Steady(1.2), footprint=0.4)
    doors = [frozenset(k for k in range(3) if number >> k & 1) for number in range(8)]
    plans = [Plan(shut) for shut in doors]
    made = list(cloaks(flat, 0.3, tolerance))
    for number in range(attack.size(8, 160)):
        plan = plans[number % 8]
        reach = 1.2 * np.sqrt(1 + 0.3 * (rng.choice([-1, 1]) if number % 3 else rng.uniform(-1, 1)))
        sensors = [plan.cell_of(*_moved(plan, at, rng)) for at in AT[::4]]
        gains = rng.uniform(0.9, 1.1, (len(sensors), 1)) if number % 2 else 1.1
        matrix = gains * plan.steady(sensors, float(reach), 0.4)
        for cloak in made:
            attack_places(attack, cloak, matrix, plan.distances, rng, attack.size(500, 2_000))


def _moved(plan: Plan, at: tuple[float, float], rng: np.random.Generator) -> tuple[float, float]:
    """A point of the floor within 0.3 of a sensor."""
    while True:
        angle, away = rng.uniform(0, 2 * np.pi), 0.3 * np.sqrt(rng.random())
        x, y = at[0] + away * np.cos(angle), at[1] + away * np.sin(angle)
        if (int(y // CELL), int(x // CELL)) in plan.cells:
            return float(x), float(y)
