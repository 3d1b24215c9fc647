"""Recorded people, cloaked: how many are counted right and how near they are found, over ten seeds.

Movement: people of whole recordings that nothing is fitted on (all of 2021-05-05) walk through a room; how they move is
fitted on the recordings of the other day. Pictures: there is one sequence only, so the model of a body is fitted on its
first eight pictures and tried on the other thirty, which show the same people, mirrored and shifted.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from rich.table import Table
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from cloakwork._checks import FloatArray
from cloakwork.physics import FloorPlan, Rooms, Steady
from cloakwork.privacy import Cloak
from cloakwork.recovery import Motion, Tracker
from papers import bodies
from papers.bodies import Method, Trial
from papers.experiment import stream
from papers.recordings import Infrared, read_infrared, read_positions

SEEDS = 10
EPSILONS = (2.0, 8.0, 32.0)
HELD_OUT = "2021-05-05"
SIZE, PIXELS = (8.0, 6.0), (32.0, 24.0)  # metres, and pixels of the camera
EVERY, SECONDS, WINDOW = 6, 3.0, 20  # frames of the recording a reading; the claim covers a minute
READINGS, LEAD = 30, 5  # of a stretch; the first are not judged
MOST, MISSED = 5, 4.0  # people, and metres that one who is not found counts with
FITTED, REACH = 8, 2.0  # pictures, and pixels
PICTURES = 6  # of those that are tried, for each seed

People = Sequence[FloatArray]  # positions in metres, one array a reading


def recordings() -> dict[str, People]:
    """The positions of all people in each recording, a reading every three seconds."""
    scale = np.array(SIZE) / PIXELS
    return {
        name: [np.array(frame).reshape(-1, 2) * scale * (1, -1) + (0, SIZE[1]) for frame in frames[::EVERY]]
        for name, frames in read_positions().items()
    }


def fitted_motion(fitted: Sequence[People]) -> Motion:
    """How long people stay and how fast they walk, by steps between readings with equally many people."""
    steps = []
    for before, after in (pair for people in fitted for pair in pairwise(people) if len(pair[0]) == len(pair[1]) > 0):
        apart = cdist(before, after)
        steps += apart[linear_sum_assignment(apart)].tolist()
    moved = np.array([step for step in steps if step > 0.5])
    return Motion(mean_sit_s=SECONDS * len(steps) / max(1, len(moved)), speed=float(np.median(moved)) / SECONDS)


def room() -> FloorPlan:
    rooms = Rooms.from_walls(SIZE, cell=0.25)
    at = [(x, y) for x in np.arange(0.5, SIZE[0]).tolist() for y in np.arange(0.5, SIZE[1]).tolist()]
    return FloorPlan(rooms, at, Steady(2.0), footprint=0.5, gain=5.0)


Judged = list[tuple[int, bool, float]]  # number of people, whether it was found, their mean distance


def followed(plan: FloorPlan, people: People, cloak: Cloak, motion: Motion, seed: int) -> Judged:
    """Cloak and follow a stretch, and judge its readings."""
    places = [[plan.rooms.cell_at(*np.clip(at, 0, SIZE).tolist()) for at in frame] for frame in people]
    true = np.array([plan.matrix[:, frame].sum(axis=1) for frame in places])
    tracker, judged = Tracker(cloak, motion=motion, max_sources=MOST, seed=seed), []
    for k, readings in enumerate(cloak.simulate(true, rng=np.random.default_rng([seed, 3]))):
        moment, count = tracker.step(readings, SECONDS * k), len(places[k])
        if k < LEAD:
            continue
        found = [source.place for source in moment.sources]
        cost = np.full((count, max(count, len(found))), MISSED)
        cost[:, : len(found)] = np.minimum(plan.space.distance_table[np.ix_(places[k], found)], MISSED)
        far = float(cost[linear_sum_assignment(cost)].mean()) if count else np.nan
        judged.append((count, int(moment.counts.argmax()) == count, far))
    return judged


def movement(table: Table) -> None:
    """Add rows of the people who were followed."""
    known = recordings()
    motion = fitted_motion([people for name, people in known.items() if HELD_OUT not in name])
    held_out = [people for name, people in known.items() if HELD_OUT in name]
    plan = room()
    for epsilon in EPSILONS:
        cloak = Cloak(plan, epsilon=epsilon, delta=1e-5, alpha=0.1, readings_per_window=WINDOW, design="least-error")
        judged = []
        for seed in range(SEEDS):
            rng = np.random.default_rng([seed, 2])
            for number, people in enumerate(held_out):
                start = int(rng.integers(len(people) - READINGS))
                stretch = people[start : start + READINGS]
                judged += [(seed, *one) for one in followed(plan, stretch, cloak, motion, 10 * seed + number)]
        values = np.array(judged)
        for name, column, scale in (("count right, %", 2, 100), ("mean distance, m", 3, 1)):
            cells = [_over_seeds(values[values[:, 1] == count][:, [0, column]], scale) for count in range(MOST + 1)]
            table.add_row(f"movement, {name}", f"{epsilon:g}", *cells, _over_seeds(values[:, [0, column]], scale))


def pictures(table: Table) -> None:
    """Add rows of the people who were found in single pictures."""
    real = read_infrared()
    body = bodies.fit(bodies.blocks(real.frames[:FITTED]), real.people[:FITTED])
    for epsilon in EPSILONS:
        for method in (Method.OURS, Method.PAPERS):
            rows = []
            for seed in range(SEEDS):
                rng = stream(seed, 300)
                chosen = FITTED + rng.permutation(len(real) - FITTED)[:PICTURES]
                moved = bodies.shifted(Infrared(real.frames[chosen], tuple(real.people[k] for k in chosen)), rng)
                trial = Trial(body, body.camera, bodies.blocks(moved.frames) - body.floor, moved.people)
                _, found = trial.look(method, epsilon, (seed, 301))
                for at, listed in zip(moved.people, found, strict=True):
                    near = bodies.near(at, np.array(listed).reshape(-1, 2))[:, bodies.WITHIN.index(REACH)]
                    rows.append((seed, float(near.mean()), len(at)))
            values = np.array(rows)
            cells = [_over_seeds(values[values[:, 2] == count], 100) for count in range(MOST + 1)]
            name = f"pictures, found within {REACH:g} pixels, %: {method}"
            table.add_row(name, f"{epsilon:g}", *cells, _over_seeds(values, 100))


def _over_seeds(values: FloatArray, scale: float) -> str:
    """The mean over the seeds, each by its own mean, with its standard error; values are (seed, value)."""
    kept = values[~np.isnan(values[:, 1])]
    means = np.array([kept[kept[:, 0] == seed, 1].mean() for seed in np.unique(kept[:, 0])]) * scale
    if len(means) < 2:
        return "-"
    digits = 0 if scale > 1 else 2
    error = means.std(ddof=1) / np.sqrt(len(means))
    return f"{means.mean():.{digits}f} ± {error:.{digits}f}" + ("" if len(means) == SEEDS else f" ({len(means)})")


def run() -> tuple[Table, bool]:
    """The table; it has no goals."""
    table = Table(title=f"Recorded people by how many there are: mean and standard error over {SEEDS} seeds")
    for name in ("", "epsilon", *map(str, range(MOST + 1)), "all"):
        table.add_column(name, justify="left" if not name else "right")
    movement(table)
    pictures(table)
    table.caption = (
        "In brackets: seeds with so many people. The claim (epsilon, 1e-5) is for a minute, or for one picture."
    )
    return table, True
