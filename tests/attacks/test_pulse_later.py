"""Attack: one pulse, read several times in a window, where its slopes grow after the model's time.

Where the heat has hardly reached a sensor at T, a later reading tells more about the place of the source than one at T.
The readings are recomputed here from the heat kernel and from matrix exponentials, not by the package.
"""

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

import cloakwork as cw
from tests.attacks.conftest import Attack

Floats = NDArray[np.float64]
Later = Callable[[float], Floats]  # from a multiple of the model's time to slopes (m, moves)
READINGS = 4


def line(rng: np.random.Generator) -> tuple[cw.HeatLine, Later]:
    """A line whose sensors may be far from the nearest place, with sources at the places or anywhere."""
    T, places, anywhere = 10 ** rng.uniform(-4, -1.5), int(rng.integers(4, 12)), rng.random() < 0.3
    sensors = np.sort(rng.uniform(0, 0.5 / places if rng.random() < 0.7 else 1.0, rng.integers(1, 5)))
    model = cw.HeatLine(n=places, m=sensors.tolist(), T=T, placement="anywhere" if anywhere else "grid")
    at = np.linspace(0, 1, 1001) if anywhere else np.arange(1, places + 1) / places

    def slopes(factor: float) -> Floats:
        heat = np.exp(-((at - sensors[:, None]) ** 2) / (4 * T * factor)) / np.sqrt(4 * np.pi * T * factor)
        return np.asarray(np.diff(heat, axis=1) / np.diff(at))

    return model, slopes


def heat_after(laplacian: Floats) -> Callable[[float], Floats]:
    """exp(-tau L) as a function of tau."""
    values, vectors = np.linalg.eigh(laplacian)
    return lambda tau: np.asarray((vectors * np.exp(-tau * values)) @ vectors.T)


def network(rng: np.random.Generator) -> tuple[cw.Graph, Later]:
    """A tree whose edges have lengths of their own, watched from two of its nodes."""
    graph = nx.Graph((k, int(rng.integers(k))) for k in range(1, 10))
    for *_, edge in graph.edges(data=True):
        edge.update(weight=float(rng.choice([0.05, 1, 5])), length=float(rng.choice([0.1, 1, 3])))
    tau, sensors = float(rng.choice([0.02, 0.1, 0.3])), rng.choice(10, size=2, replace=False)
    names = list(graph)
    heat_at = heat_after(nx.laplacian_matrix(graph).toarray())
    edges = [(names.index(u), names.index(v), data["length"]) for u, v, data in graph.edges(data=True)]

    def slopes(factor: float) -> Floats:
        heat = heat_at(tau * factor)[sensors]
        return np.stack([(heat[:, i] - heat[:, j]) / length for i, j, length in edges], axis=1)

    return cw.Graph(graph, tau=tau, sensors=[names[k] for k in sensors]), slopes


def rooms(rng: np.random.Generator) -> tuple[cw.FloorPlan, Later]:
    """Two rooms with a door; the sensors are in one of them."""
    columns, rows, door = 8, 4, int(rng.integers(4))
    plan = cw.Rooms.from_walls((4, 2), cell=0.5, walls=[((2, 0), (2, 2))], doors=[((2, door / 2), (2, door / 2 + 0.5))])
    number = np.arange(columns * rows).reshape(rows, columns)
    pairs = [(number[r, c], number[r + 1, c]) for r in range(rows - 1) for c in range(columns)]
    pairs += [(number[r, c], number[r, c + 1]) for r in range(rows) for c in range(columns - 1) if c != 3 or r == door]
    L = np.zeros((columns * rows,) * 2)
    for i, j in pairs:
        L[[i, j], [i, j]] += 1
        L[[i, j], [j, i]] -= 1
    heat_at = heat_after(L)
    places, length = rng.choice(number[:, :2].ravel(), size=2, replace=False), rng.uniform(0.2, 0.6)
    at = [((k % columns + 0.5) / 2, (k // columns + 0.5) / 2) for k in places]

    def slopes(factor: float) -> Floats:
        heat = heat_at(length**2 * factor / 0.5**2 / 2)[places] / 0.5**2
        return np.stack([(heat[:, i] - heat[:, j]) / 0.5 for i, j in pairs], axis=1)

    return cw.FloorPlan(plan, at, cw.Pulse(length)), slopes


@pytest.mark.parametrize("kind", [line, network, rooms])
def test_a_pulse_is_read_several_times(
    attack: Attack, kind: Callable[[np.random.Generator], tuple[cw.Physics, Later]], rng: np.random.Generator
) -> None:
    """Random models; every move at the readings of a window, for many first times from T on and many periods.

    Claim: the readings of one pulse in a window, the first of them T after its emission or later, shift together by at
    most the mu of the window, in both scopes and with equal and with designed noise.
    """
    factors = np.geomspace(1, 300, attack.size(60, 200))
    grown = 0.0
    for _ in range(attack.size(10, 200)):
        model, slopes = kind(rng)
        table = np.stack([slopes(float(factor)) for factor in factors])
        for scope in ("network", "sensor"):
            cloak = cw.Cloak(
                model,
                epsilon=2.0,
                delta=1e-5,
                alpha=0.05,
                scope=scope,
                readings_per_window=READINGS,
                design="least-error" if rng.random() < 0.5 else "equal",
            )
            shares = (cloak.alpha * table / cloak.sigmas[:, None]) ** 2  # time, sensor, move
            frame = shares.sum(axis=1) if scope == "network" else shares.transpose(0, 2, 1).reshape(len(factors), -1)
            grown = max(grown, float(np.sqrt(frame.max() / frame[0].max())))
            for first in range(0, len(factors), 3):
                for period in np.geomspace(0.01, 100, attack.size(5, 20)):
                    later = factors[first] + period * np.arange(READINGS)
                    seen = np.searchsorted(factors, later[later <= factors[-1]])
                    attack.compare(np.sqrt(frame[seen].sum(axis=0).max()), cloak.profile.mu)
    assert kind is rooms or grown > 1.5, "no slope grows after the model's time, so that the attack tries nothing"
