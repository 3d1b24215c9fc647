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


@pytest.mark.parametrize("scope", ["network", "sensor"])
def test_people_who_move_in_a_room_that_remembers(attack: Attack, scope: str, rng: np.random.Generator) -> None:
    """Histories of many ages, found by turns: the worst pair at each age, then the direction of their sum.

    Claim: with `memory` in the tolerance, no history within alpha at every instant shifts a frame further than the
    cloak's mu, whatever the time constant of the room.
    """
    plan, values, vectors, pairs = flat()
    at = [int(y / CELL) * COLUMNS + int(x / CELL) for x, y in plan.sensors_at]
    edges = np.linspace(0, 1, attack.size(60, 200) + 1)
    ages = -np.log1p(-(edges[:-1] + edges[1:]) / 2)  # equal shares of a reading, in time constants
    spread = np.exp(-((REACH / CELL) ** 2 * ages[:, None] + (0.4 / CELL) ** 2 / 2) * values)
    differences = (vectors[pairs[:, 0]] - vectors[pairs[:, 1]]) / CELL
    kernels = np.stack([5.0 / CELL**2 * (vectors[at] * each) @ differences.T for each in spread]) / len(ages)
    claim: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "alpha": 0.2, "scope": scope, "design": "least-error"}
    for memory in (True, False):
        cloak = cw.Cloak(plan, **claim, tolerance=cw.Tolerance(memory=memory))
        worst = 0.0
        for _ in range(attack.size(20, 200)):
            direction = rng.normal(size=len(at)) if scope == "network" else np.eye(len(at))[rng.integers(len(at))]
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
