"""Attack: locate a lone source better than the figures that are printed as beyond every method."""

import networkx as nx
import numpy as np
from numpy.typing import NDArray

import cloakwork as cw
from cloakwork.physics import Metric, Physics
from tests.attacks.conftest import Attack

Floats = NDArray[np.float64]


def flat() -> cw.FloorPlan:
    rooms = cw.Rooms.from_walls((6, 4), cell=0.25, walls=[((3, 0), (3, 4))], doors=[((3, 1), (3, 2))])
    sensors = [(x + 0.5, y + 0.5) for x in range(6) for y in range(4)]
    return cw.FloorPlan(rooms, sensors, cw.Steady(reach=1.0), footprint=0.5)


MODELS: dict[str, tuple[Physics, float]] = {  # with the distance to hide
    "line": (cw.HeatLine(n=80, m=40, T=0.02), 0.02),
    "plane": (cw.HeatPlane(n=(16, 12), m=(6, 5), T=0.01, size=(1.0, 0.8)), 0.03),
    "flat": (flat(), 0.15),
    "graph": (cw.Graph(nx.connected_watts_strogatz_graph(60, 4, 0.1, seed=3), tau=0.4), 0.4),
}


def straight(answers: Floats, places: Floats) -> Floats:
    return np.asarray(np.sqrt(((answers - places) ** 2).sum(axis=-1)))


def reached(physics: Physics, sigma: float, thousands: int, rng: np.random.Generator) -> tuple[list[Floats], Floats]:
    """The distances to the truth of each method, and 1 wherever the likeliest place is right, else 0."""
    errors, right = dict[str, list[Floats]](), []
    for _ in range(thousands):
        truth = rng.integers(0, physics.places, 1_000)
        readings = physics.matrix.T[truth] + rng.normal(0, sigma, (1_000, physics.sensors))
        misfits = [((readings - column) ** 2).sum(axis=1) / (2 * sigma**2) for column in physics.matrix.T]
        posterior = np.exp(np.min(misfits, axis=0) - misfits).T
        posterior /= posterior.sum(axis=1, keepdims=True)
        for method, distances in distances_of_methods(physics, posterior, truth).items():
            errors.setdefault(method, []).append(distances)
        right.append(posterior.argmax(axis=1) == truth)
    return [np.concatenate(parts) for parts in errors.values()], np.concatenate(right).astype(float)


def geometric_medians(posterior: Floats, places: Floats) -> Floats:
    """The points of least mean distance, by Weiszfeld's iteration from the posterior means."""
    answers = posterior @ places
    for _ in range(10):
        weights = posterior / np.maximum(straight(answers[:, None, :], places), 1e-9)
        answers = weights @ places / weights.sum(axis=1, keepdims=True)
    return answers


def distances_of_methods(physics: Physics, posterior: Floats, truth: NDArray[np.int64]) -> dict[str, Floats]:
    """Distance to the truth of several methods, each of shape (frames,)."""
    table, places = physics.space.distance_table.astype(float), physics.space.places
    likeliest, median = posterior.argmax(axis=1), (posterior @ table).argmin(axis=1)
    found = {"maximum likelihood": table[likeliest, truth], "posterior median": table[median, truth]}
    if physics.space.metric is Metric.PLANE:
        found["posterior mean"] = straight(posterior @ places, places[truth])
        found["geometric median"] = straight(geometric_medians(posterior, places), places[truth])
    elif places.shape[1]:  # along the axes and through walls, so never longer than the walk
        found["posterior mean"] = np.abs(posterior @ places - places[truth]).sum(axis=1)
    return found


def test_no_method_beats_the_printed_bounds(attack: Attack) -> None:
    """Locating a lone source with posterior means, medians and maximum likelihood.

    Claim: no method has a smaller mean distance than `limits` states, and none names the right place more often. What
    a method reaches counts with three standard errors in its favour: 2 % at full size, 5 % at quick size. The bounds
    are 1 to 14 % below what the best method reaches.
    """
    rng = np.random.default_rng(5)
    for name, (physics, alpha) in MODELS.items():
        for epsilon in (0.5, 1.5, 4.0, 8.0) if attack.full else (1.5,):
            sigma = float(np.max(cw.Cloak(physics, epsilon=epsilon, delta=1e-5, alpha=alpha).sigma))
            bounds = cw.limits(physics, sigma)
            errors, right = reached(physics, sigma, attack.size(1, 20), rng)
            tried = sum(method.size for method in errors)
            attack.compare(bounds.average_emd, [at_most(method) for method in errors], tried=tried)
            attack.compare(1 - bounds.right_place, at_most(1.0 - right))
            best = min(method.mean() for method in errors)
            assert bounds.average_emd > 0.8 * best, f"{name}: the best method is far above the bound"


def at_most(values: Floats) -> float:
    return float(values.mean() + 3 * values.std() / np.sqrt(len(values)))
