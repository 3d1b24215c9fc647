"""Simulated calibration walks."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cloakwork.physics import FloorPlan, Steady
from cloakwork.site import Site, parse_site

STATED = """\
# two rooms
name = "flat"
baseline = 20.0
sensors = 12

[physics]
kind = "floorplan"
cell = 0.5
size = [6.0, 4.0]
walls = [[[3.0, 0.0], [3.0, 4.0]]]
doors = [[[3.0, 1.0], [3.0, 2.0]]]
regime = "steady"
reach = 1.0                # a guess
footprint = 0.3

[sources]
kind = "lasting"
strength = 3.0             # another guess

[privacy]
epsilon = 4.0
delta = 1e-5
alpha = 0.2
"""
SPOTS = [(x, y) for x in (0.6, 1.7, 2.6, 3.4, 4.4, 5.5) for y in (0.7, 2.1, 3.3)]


def stated() -> Site:
    return parse_site(STATED)


def true_plan(site: Site, reach: float = 1.6, strength: float = 5.0, footprint: float = 0.5) -> FloorPlan:
    assert isinstance(site.physics, FloorPlan)
    return replace(site.physics, regime=Steady(reach), gain=strength, footprint=footprint)


def true_readings(
    plan: FloorPlan, gains: NDArray[np.float64], baselines: NDArray[np.float64], spots: list[tuple[float, float] | None]
) -> NDArray[np.float64]:
    """What each sensor reads at each spot, (spots, sensors); None is nobody there."""
    rows = []
    for spot in spots:
        weights = np.zeros(plan.places)
        for cell, share in plan.rooms.shares(*spot) if spot else []:
            weights[cell] += share
        rows.append(baselines + gains * (plan.matrix @ weights))
    return np.array(rows)


def write_walk(
    folder: Path,
    site: Site,
    readings: NDArray[np.float64],
    spots: list[tuple[float, float] | None],
    *,
    noise: float = 0.05,
    reads: int = 20,
    step: float = 0.0,
    seed: int = 0,
) -> tuple[Path, Path]:
    """Write walk.csv and raw.csv: a minute at each spot."""
    rng, walk, raw = np.random.default_rng(seed), ["start,end,x,y"], ["time,sensor,value"]
    for number, (spot, row) in enumerate(zip(spots, readings, strict=True)):
        start = 1_790_000_000_000 + 100_000 * number
        x, y = spot or ("", "")
        walk.append(f"{start},{start + 60_000},{x},{y}")
        for read in range(reads):
            for sensor, value in zip(site.sensor_ids, row + noise * rng.standard_normal(len(row)), strict=True):
                shown = step * round(value / step) if step else value
                raw.append(f"{start + 1000 + 2000 * read},{sensor},{shown:.6f}")
    paths = folder / "walk.csv", folder / "raw.csv"
    for path, lines in zip(paths, (walk, raw), strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths
