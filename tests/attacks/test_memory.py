"""Attack: rooms remember, so that moves of the past add up in one frame.

A reading is a mean over the past: heat of age a counts with e^(-a/theta), theta the time constant of the room, after it
has spread for a. Neighbours are within alpha at every instant, but at each age another pair may be the worst. The
kernels are built here from the eigenvectors of the floor, not by the package.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import cloakwork as cw
from tests.attacks.conftest import Attack

Floats = NDArray[np.float64]
CELL, REACH, ROWS, COLUMNS = 0.25, 1.0, 12, 20


def flat() -> tuple[cw.FloorPlan, Floats, Floats, NDArray[np.int64]]:
    """Two rooms with a door, with the eigenvalues and eigenvectors of their floor, and the pairs of open neighbours."""
    number = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    pairs = [(number[r, c], number[r + 1, c]) for r in range(ROWS - 1) for c in range(COLUMNS)]
    pairs += [(number[r, c], number[r, c + 1]) for r in range(ROWS) for c in range(COLUMNS - 1) if c != 9 or 4 <= r < 7]
    laplacian = np.zeros((ROWS * COLUMNS,) * 2)
    for i, j in pairs:
        laplacian[[i, j], [i, j]] += 1
        laplacian[[i, j], [j, i]] -= 1
    rooms = cw.Rooms.from_walls((5, 3), cell=CELL, walls=[((2.5, 0), (2.5, 3))], doors=[((2.5, 1), (2.5, 1.75))])
    at = [(0.6 + 0.9 * i, 0.6 + 0.8 * j) for j in range(3) for i in range(5)]
    values, vectors = np.linalg.eigh(laplacian)
    return cw.FloorPlan(rooms, at, cw.Steady(REACH), footprint=0.4, gain=5.0), values, vectors, np.array(pairs)


def kernels_by_age(number: int) -> tuple[cw.FloorPlan, Floats, Floats]:
    """The flat, `number` ages with equal shares of a reading, and what each adds to slopes, shape (ages, m, pairs)."""
    plan, values, vectors, pairs = flat()
    at = [int(y / CELL) * COLUMNS + int(x / CELL) for x, y in plan.sensors_at]
    edges = np.linspace(0, 1, number + 1)
    ages = -np.log1p(-(edges[:-1] + edges[1:]) / 2)  # in time constants
    spread = np.exp(-((REACH / CELL) ** 2 * ages[:, None] + (0.4 / CELL) ** 2 / 2) * values)
    differences = (vectors[pairs[:, 0]] - vectors[pairs[:, 1]]) / CELL
    return plan, ages, np.stack([5.0 / CELL**2 * (vectors[at] * each) @ differences.T for each in spread]) / number


@pytest.mark.parametrize("scope", ["network", "sensor"])
def test_people_who_move_in_a_room_that_remembers(attack: Attack, scope: str, rng: np.random.Generator) -> None:
    """Histories of many ages, found by turns: the worst pair at each age, then the direction of their sum.

    Claim: with `memory` in the tolerance, no history within alpha at every instant shifts a frame further than the
    cloak's mu, whatever the time constant of the room.
    """
    plan, ages, kernels = kernels_by_age(attack.size(60, 200))
    claim: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "alpha": 0.2, "scope": scope, "design": "least-error"}
    for memory in (True, False):
        cloak = cw.Cloak(plan, **claim, assumptions=cw.Assumptions(tolerance=cw.Tolerance(memory=memory)))
        worst = 0.0
        for _ in range(attack.size(20, 200)):
            each = np.eye(plan.sensors)[rng.integers(plan.sensors)]
            direction = rng.normal(size=plan.sensors) if scope == "network" else each
            for _ in range(10 if scope == "network" else 1):
                seen = np.einsum("m,ame->ae", direction / cloak.sigmas, kernels)
                chosen = np.abs(seen).argmax(axis=1)
                signs = np.sign(seen[np.arange(len(ages)), chosen])
                shift = cloak.alpha * (kernels[np.arange(len(ages)), :, chosen] * signs[:, None]).sum(axis=0)
                shift /= cloak.sigmas
                direction = shift / np.linalg.norm(shift) if scope == "network" else direction
            reached = float(np.linalg.norm(shift) if scope == "network" else np.abs(shift @ direction))
            worst = max(worst, reached)
            if memory:
                attack.compare(reached, cloak.frame_mu, tried=len(ages))
        too_weak = not memory and scope == "network" and worst < 1.05 * cloak.frame_mu
        assert not too_weak, "the attack breaks nothing without the memory"


@pytest.mark.parametrize(("reach", "footprint"), [(0.636, 1.0), (0.6097, 0.9258), (0.6166, 0.9235)])
def test_heat_between_the_ages_that_are_evaluated(attack: Attack, reach: float, footprint: float) -> None:
    """Heat that bends around a wall towards one sensor, over all its ages by an own spectrum and a fine quadrature.

    Claim: the slope of a room that remembers covers the integral over all ages, not only the ages between which the
    product interpolates. These floors are the worst that a search of small floors found.
    """
    rooms = cw.Rooms.from_walls((2.0, 2.0), cell=0.5, walls=[((1.5, 0), (1.5, 2.0))], doors=[((1.5, 1.0), (1.5, 1.5))])
    plan = cw.FloorPlan(rooms, [(0.25, 0.75)], cw.Steady(reach=reach), footprint=footprint)
    laplacian = np.zeros((len(rooms.space),) * 2)
    for i, j in rooms.pairs:
        laplacian[[i, j], [i, j]] += 1
        laplacian[[i, j], [j, i]] -= 1
    values, vectors = np.linalg.eigh(laplacian)
    seen = vectors[plan.sensor_places] * np.exp(-((footprint / 0.5) ** 2) / 2 * values) / 0.5**2
    moves = vectors[rooms.pairs[:, 0]] - vectors[rooms.pairs[:, 1]]
    ages = np.append(0.0, np.geomspace(1e-6, 40.0, attack.size(2_000, 20_000)))
    steepest = np.array([np.abs((seen * np.exp(-age * (reach / 0.5) ** 2 * values)) @ moves.T).max() for age in ages])
    weighed = steepest / 0.5 * np.exp(-ages)
    true = float(((weighed[1:] + weighed[:-1]) / 2 * np.diff(ages)).sum())
    remembering = cw.Assumptions(tolerance=cw.Tolerance(memory=True))
    cloak = cw.Cloak(plan, epsilon=1.0, delta=1e-6, alpha=0.1, assumptions=remembering)
    attack.compare(0.1 * true, cloak.sensitivity, tried=len(ages))


@pytest.mark.parametrize("design", ["equal", "least-error"])
def test_people_who_sit_down_and_get_up_in_a_room_that_remembers(
    attack: Attack, design: str, rng: np.random.Generator
) -> None:
    """Stays whose warmth lingers, from all readings there are, with every rounding against us.

    Claim: with a stay and `memory`, no source that sits down and gets up at any time, in a room with any time constant,
    shifts all readings by more than the mu of the stay. Each reading adds up what the source left at every age. All
    readings until the warmth is gone are kept, and every sensor rounds each of them to the worse side.
    """
    plan, ages, kernels = kernels_by_age(attack.size(60, 200))
    readings = 48
    claim: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-5, "alpha": 0.2, "readings_per_window": 8, "design": design}
    stay = cw.Stay(readings, epsilon=6.0, delta=1e-5)
    cloak = cw.Cloak(
        plan,
        **claim,
        hardware=cw.Hardware(resolution=4e-3, step=4e-3),
        assumptions=cw.Assumptions(tolerance=cw.Tolerance(memory=True)),
        stay=stay,
    )
    assert cloak.slow is not None
    before, frames = 4 * readings, 18 * readings  # known before the source sits down, and in all
    blocks = np.arange(frames) // cloak.slow.renew
    over_time = cloak.slow.fade ** np.abs(np.subtract.outer(blocks, blocks))
    shares = (cloak.slow.deviations(cloak.steps) / cloak.sigmas) ** 2
    precisions = {share: np.linalg.inv(np.eye(frames) + share * over_time) for share in set(shares.tolist())}
    claimed, fresh = cloak.stay_mu(readings), 0.0
    for _ in range(attack.size(30, 600)):
        sits = before + rng.integers(cloak.slow.renew)
        leaves = sits + (readings if rng.random() < 0.7 else rng.integers(1, readings + 1))
        constant = readings * rng.choice([0.0, 0.02, 0.1, 0.3, 0.75])  # of the room, in readings
        born = np.arange(frames)[:, None] - constant * ages  # when the heat of each age left the source
        pair = rng.choice(np.abs(kernels[rng.integers(len(ages))] / cloak.sigmas[:, None]).sum(axis=0).argsort()[-9:])
        shift = cloak.alpha * ((born >= sits) & (born < leaves)) @ kernels[:, :, pair]
        rounded = np.sign(shift) * np.where(shift, np.abs(shift) + cloak.roundings, 0.0) / cloak.sigmas
        told = [row @ precisions[share] @ row for row, share in zip(rounded.T, shares.tolist(), strict=True)]
        attack.compare(np.sqrt(sum(told)), claimed)
        fresh = max(fresh, float(np.linalg.norm(rounded)))
    assert fresh > claimed, "without offsets, such a stay tells more"
