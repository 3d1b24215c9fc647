"""How often 90 % vicinities hold their source, where the truth is drawn from the estimator's prior."""

from collections.abc import Sequence

import numpy as np
from rich.table import Table
from scipy.optimize import linear_sum_assignment

from cloakwork._checks import IntArray
from cloakwork.physics import FloorPlan, Rooms, Space, Steady
from cloakwork.privacy import Cloak
from cloakwork.recovery import PointSources, Source, recover
from papers.experiment import stream
from papers.trials import Setting, Strengths

LEVEL, TOLERATED, MOST, FRAMES = 0.9, 0.02, 3, 4000


def flat_cloak() -> Cloak:
    """Three rooms of 10 m x 10 m in 400 cells, 100 sensors, people with a reach of 1 m and a footprint of 0.5 m.

    A move by 0.3 m is hidden at (4, 1e-5).
    """
    walls = [((5, 0), (5, 10)), ((0, 5), (5, 5))]
    doors = [((5, 4), (5, 6)), ((2, 5), (3, 5))]
    rooms = Rooms.from_walls((10, 10), cell=0.5, walls=walls, doors=doors)
    along = np.arange(0.5, 10, 1.0)
    plan = FloorPlan(rooms, [(x, y) for x in along for y in along], Steady(1.0), footprint=0.5)
    return Cloak(plan, epsilon=4.0, delta=1e-5, alpha=0.3)


def run() -> tuple[Table, bool]:
    """The table, and whether the goals are met."""
    table = Table("", "contained, %", "frames", "goal 88 to 92", title="Sources that their 90 % vicinity contains")
    met = []
    for number, (name, cloak) in enumerate({"line": Setting().cloak(), "rooms": flat_cloak()}.items()):
        for strengths in Strengths:
            held, counts = contained(cloak, strengths, FRAMES, stream(1, number, list(Strengths).index(strengths)))
            share = held.sum() / counts.sum()
            # sources of one frame depend on each other, so the error is over frames
            error = np.sqrt(((held - counts * share) ** 2).sum()) / counts.sum()
            met.append(bool(abs(share - LEVEL) <= TOLERATED))
            percent = f"{100 * share:.1f} ± {100 * error:.1f}"
            table.add_row(f"{name}, {strengths}", percent, f"{FRAMES:,}", "met" if met[-1] else "MISSED")
    return table, all(met)


def contained(cloak: Cloak, strengths: Strengths, frames: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """The sources that their vicinities contain, and all sources, in each of some frames drawn from the prior.

    Counts are uniform from 1 to 3, places uniform, and anywhere in their cells where the physics allows positions
    between places.
    """
    physics, counts = cloak.physics, rng.integers(1, MOST + 1, frames)
    at = [rng.integers(0, physics.places, count) for count in counts]
    readings, along = np.empty((frames, physics.sensors)), physics.space.places
    for row, places in zip(readings, at, strict=True):
        off = float(physics.space.lengths.min()) * rng.uniform(-0.5, 0.5, (len(places), along.shape[1]))
        columns = physics.columns_at(along[places] + off)
        row[:] = (physics.matrix[:, places] if columns is None else columns) @ strengths.draw(rng, len(places))
    estimator = PointSources(strengths.prior, max_sources=MOST, min_sources=1, confidence=LEVEL)
    found = recover(cloak.simulate(readings, rng=rng), cloak, estimator=estimator).sources
    return np.array([matched(*pair, physics.space) for pair in zip(at, found, strict=True)]), counts


def matched(places: IntArray, listed: Sequence[Source], space: Space) -> int:
    """Count the sources in their own vicinity; the two are matched one to one by the distance between centres."""
    if not listed:
        return 0
    centres = np.array([source.place for source in listed], dtype=np.int64)
    apart = np.nan_to_num(space.distance_table[np.ix_(places, centres)], posinf=1e9)
    pairs = zip(*linear_sum_assignment(apart), strict=True)
    return sum(int(places[i]) in listed[int(j)].vicinity for i, j in pairs)
