"""Attack: an interval as long as the window that holds late sensors of one frame and early sensors of a later one."""

import random
from collections.abc import Iterator
from dataclasses import asdict

import pytest

from cloakwork.site import Schedule, make_schedule
from tests.attacks.conftest import Attack
from tests.clocks import Measurement, VirtualBoard, VirtualServer, World

SLOTS = 70
EARLY, LATE = (1.0, 5_000), (0.0, 180_000)  # part of the round trip that the request takes, microseconds of measuring


def board(rng: random.Random, schedule: Schedule, uneven: float, takes: int) -> list[Measurement]:
    """What a board measures that asks for the time over a network that delays one direction only."""
    world = World(1_900_000_000_000_000 + rng.randrange(1_000_000))
    trip = 1000 * round(1.7 * schedule.clock_ms)  # just good enough to measure, so the clock is as wrong as it may be
    server = VirtualServer(world, lambda: (round(uneven * trip), round((1 - uneven) * trip)))
    rate = rng.choice([0.0, -1e-5, 1e-5])
    plan, seed = asdict(schedule), rng.randrange(2**32)
    one = VirtualBoard(world, server, schedule=plan, rate=rate, takes=lambda: takes, seed=seed)
    one.run(SLOTS * schedule.period_ms / 1000)
    assert len(one.measurements()) > schedule.allowed
    return one.measurements()


def frames_in_intervals(found: list[Measurement], window: float) -> Iterator[int]:
    """How many frames have a part in each interval of `window` seconds that begins when a measurement ends."""
    for start in {taken.ended for taken in found}:
        end = start + 1e6 * window
        yield len({taken.frame for taken in found if taken.ended >= start and taken.began < end})


@pytest.mark.parametrize(
    ("window", "allowed", "period"),
    [(60.0, 1, None), (60.0, 20, None), (60.0, 6, 2.008)],
    ids=["one a minute", "20 a minute", "six, then a pause"],
)
def test_any_interval_of_a_network(attack: Attack, window: float, allowed: int, period: float | None) -> None:
    """Late sensors of one frame and early sensors of a later one, in one interval as long as the window.

    Claim: an interval as long as the window, wherever it begins, has a part of at most `readings_per_window` frames,
    over all sensors of the site together.
    """
    schedule = make_schedule(window=window, allowed=allowed, period=period)
    for seed in range(attack.size(1, 20)):
        rng = random.Random(seed)
        network = [EARLY, LATE, *((rng.random(), rng.randrange(150_000)) for _ in range(attack.size(0, 4)))]
        found = [taken for uneven, takes in network for taken in board(rng, schedule, uneven, takes)]
        attack.compare(list(frames_in_intervals(found, window)), allowed)
