"""Attack: the clocks of the boards disagree, so that sensors of one frame measure at different times."""

import random
from functools import partial

from cloakwork.sensor.sntp import NetworkTime
from tests.attacks.conftest import Attack
from tests.clocks import Measurement, VirtualBoard, VirtualServer, World

SCHEDULE = {"period_ms": 60_018, "offset_ms": 1000, "late_ms": 200, "clock_ms": 50, "window_slots": 60, "allowed": 60}
FRAMES = 19


def board(rng: random.Random, *, behind: int, rate: float) -> list[Measurement]:
    """What a board measures that starts `behind` milliseconds, whose network is as uneven as it can be."""
    world = World(1_900_000_000_000_000 + rng.randrange(60_000_000))
    uneven = rng.choice([0.0, 1.0, rng.random()])
    server = VirtualServer(world, lambda: None)

    def delays() -> tuple[int, int] | None:
        if rng.random() < 0.1:
            return None
        round_trip = rng.choice([2000, 20_000, 80_000, rng.randrange(200_000)])
        return round(uneven * round_trip), round((1 - uneven) * round_trip)

    server.delays = delays
    one = VirtualBoard(
        world,
        server,
        schedule=SCHEDULE,
        rate=rate,
        takes=lambda: rng.choice([5_000, 60_000, 150_000]),
        unix=partial(behind_by, world, behind),
        seed=rng.randrange(2**32),
    )
    one.run(60.018 * 32)
    return one.measurements()


def spreads(boards: list[list[Measurement]]) -> list[float]:
    """Milliseconds from the first to the last measuring instant of each frame that all boards share."""
    frames = [{found.frame: found for found in measured} for measured in boards]
    shared = set(frames[0]).intersection(*frames[1:])
    assert len(shared) >= FRAMES
    ends = {frame: max(own[frame].ended for own in frames) for frame in shared}
    return [(ends[frame] - min(own[frame].began for own in frames)) / 1000 for frame in shared]


def test_sensors_of_a_frame_measure_together(attack: Attack) -> None:
    """Boards whose clocks start wrong, drift and ask for the time over the most uneven networks.

    Claim: all sensors of a frame measure within 2 `clock_ms` + `late_ms`. Oscillators are off by up to 100 parts per
    million; a request or its answer takes the whole round trip, or gets lost.
    """
    for seed in range(attack.size(1, 30)):
        rng = random.Random(seed)
        rates = [1e-4, -1e-4, *(rng.uniform(-1e-4, 1e-4) for _ in range(2))]
        measured = [board(rng, behind=behind, rate=rate) for behind, rate in zip((50, 950, 0, 500), rates, strict=True)]
        attack.compare(spreads(measured), 2 * SCHEDULE["clock_ms"] + SCHEDULE["late_ms"])


def test_a_forger_cannot_move_a_running_clock(attack: Attack) -> None:
    """Forged answers to a running device: jumps, small steps and the edge of its bounds, between honest ones.

    Claim: a device whose first answers are honest either does not measure, or its clock is wrong by at most `clock_ms`
    and 200 parts per million of the time since the forging began.
    """
    for seed in range(attack.size(4, 60)):
        rng = random.Random(seed)
        world = World()
        server = VirtualServer(world, lambda: (1000, 1000))
        known = NetworkTime(server, 50, lambda _: None, ticks=world.ticks(rate=rng.choice([-1e-4, 1e-4])))
        steps = rng.choice([[900_000], [0, 3_600_000_000], [5_000, 20_000, 60_000], [-60_000, 0, 60_000]])
        began = world.now + 200_000_000
        pull = rng.choice([0.0, 1e-4, 2e-4])
        while world.now < began + 3_000_000_000:
            world.now += 1000 * min(known.serve(True), 1000)
            since = max(0, world.now - began)
            server.wrong = round(pull * since) + rng.choice(steps) if since else 0
            if known.unix():
                attack.compare(abs(known.unix() - world.now / 1000), 50 + 2e-4 * since / 1000)
        assert not server.wrong or attack.tried > 100


def test_boards_that_drop_fractions_of_a_second_measure_apart() -> None:
    found = []
    for behind in (50, 950):
        world = World()
        one = VirtualBoard(world, None, schedule=SCHEDULE, unix=partial(behind_by, world, behind))
        one.run(60.018 * 32)
        found.append(one.measurements())
    assert min(spreads(found)) > 850  # so the attack above would notice


def behind_by(world: World, behind: int) -> int:
    return world.now // 1000 - behind
