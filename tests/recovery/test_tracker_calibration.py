"""What a tracker states is true as often as it states: vicinities and counts of people who move as assumed."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

import cloakwork as cw
from cloakwork.recovery.motion import MotionModel
from cloakwork.recovery.path_steps import predict

MOST, FRAMES, MINUTE = 3, 40, 60.0
MOTION = cw.Motion(stay=600.0, walk=20.0, present=3600.0, absent=1800.0)


def flat() -> cw.FloorPlan:
    rooms = cw.Rooms.from_walls((6, 4), cell=0.5, walls=[((3, 0), (3, 4))], doors=[((3, 1), (3, 2))])
    at = [(x, y) for x in np.arange(0.5, 6).tolist() for y in np.arange(0.5, 4).tolist()]
    return cw.FloorPlan(rooms, at, cw.Steady(reach=1.0), footprint=0.5)


def people(plan: cw.FloorPlan, rng: np.random.Generator) -> list[list[int]]:
    """The places of everyone, minute by minute."""
    n = plan.places
    moves = MotionModel(MOTION, plan.space.distance_table, plan.rooms.cell).over(MINUTE)
    to = np.empty((2 * n + 1, 2 * n + 1), dtype=np.float32)
    predict(moves.step, np.eye(2 * n + 1, dtype=np.float32), to)
    to = np.cumsum(to, axis=1, dtype=np.float64)
    count = int(rng.integers(MOST + 1))
    states = [int(rng.integers(n)) if k < count else 2 * n for k in range(MOST)]
    scene = []
    for _ in range(FRAMES):
        scene.append([state % n for state in states if state < 2 * n])
        states = [min(int(np.searchsorted(to[state], rng.random() * to[state, -1])), 2 * n) for state in states]
    return scene


def test_vicinities_and_counts_are_calibrated() -> None:
    plan = flat()
    cloak = cw.Cloak(plan, epsilon=2.0, delta=1e-5, alpha=0.1, readings_per_window=10, design="least-error")
    held: dict[str, list[bool]] = {"filtered": [], "smoothed": []}
    counted: dict[str, list[tuple[float, bool]]] = {"filtered": [], "smoothed": []}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        scene = people(plan, rng)
        noisy = cloak.simulate(np.array([plan.matrix[:, places].sum(axis=1) for places in scene]), rng=rng)
        times = MINUTE * np.arange(FRAMES)
        tracker = cw.Tracker(cloak, motion=MOTION, most=MOST, seed=seed)
        live = [tracker.step(frame, float(time)) for frame, time in zip(noisy, times, strict=True)]
        past = cw.track(noisy, cloak, times=times, motion=MOTION, most=MOST, seed=seed).moments
        for name, moments in (("filtered", live), ("smoothed", past)):
            for moment, places in zip(moments, scene, strict=True):
                held[name] += in_vicinity(moment, places, plan.space.distance_table)
                likeliest = int(moment.counts.argmax())
                counted[name].append((float(moment.counts[likeliest]), likeliest == len(places)))
    for name, inside in held.items():
        # some hundred places that depend on each other: a standard error of about 2 %
        assert 0.84 <= np.mean(inside) <= 0.95, (name, np.mean(inside), len(inside))
        stated, right = np.mean(counted[name], axis=0)
        assert abs(stated - right) < 0.08, (name, stated, right)


def in_vicinity(moment: cw.Tracked, places: list[int], distances: NDArray[np.float32]) -> list[bool]:
    """For each person matched to a source, whether its vicinity holds the person."""
    cost = distances[np.ix_([source.place for source in moment.sources], places)]
    rows, columns = linear_sum_assignment(cost)
    return [places[j] in moment.sources[i].vicinity for i, j in zip(rows.tolist(), columns.tolist(), strict=True)]
