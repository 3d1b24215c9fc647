"""What a device reports about measuring: soon if nothing works, and never more often than every 16 readings."""

import random

import pytest

from cloakwork.sensor.measuring import BLOCK, FAILING, INVALID, ONLINE, MeasuringHealth, attempt


@pytest.mark.parametrize(
    "result", [None, 21, 21.5, float("nan"), "21", (21.5, 1), (85, 0), (85, -4), (True, 1), (1, 2, 3)]
)
def test_what_is_no_fraction_of_whole_numbers_is_invalid(result: object) -> None:
    assert attempt(lambda: result) == (None, INVALID)
    assert attempt(lambda: (85, 4)) == ((85, 4), ONLINE)


def test_the_status_changes_at_most_once_in_16_readings() -> None:
    rng, health = random.Random(5), MeasuringHealth()
    states = []
    for _ in range(100 * BLOCK):
        health.add(FAILING if rng.random() < 0.2 else ONLINE)
        states.append(health.state)
    changed = [turn + 1 for turn in range(1, len(states)) if states[turn] != states[turn - 1]]
    assert len(changed) > 10
    assert all(turn % BLOCK == 0 for turn in changed if turn > BLOCK)
    assert sum(turn <= BLOCK for turn in changed) <= 1
