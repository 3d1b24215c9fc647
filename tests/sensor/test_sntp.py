"""Time from a server: the bound holds whatever the network does, and a server that cannot be right is refused."""

import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from cloakwork.sensor.link import Datagrams
from cloakwork.sensor.sntp import LONGEST, NetworkTime
from tests import micropython
from tests.clocks import VirtualBoard, VirtualServer, World, answer, running_time_server
from tests.waiting import PATIENCE

SCHEDULE = {"period_ms": 2011, "offset_ms": 1000, "late_ms": 200, "clock_ms": 50, "window_slots": 30, "allowed": 30}


def wait_for_time(known: NetworkTime, seconds: float = PATIENCE) -> bool:
    """Serve in real time until the time is known."""
    deadline = time.monotonic() + seconds
    while not known.unix() and time.monotonic() < deadline:
        time.sleep(min(known.serve(True), 20) / 1000)
    return known.unix() > 0


def serve(known: NetworkTime, world: World, seconds: float) -> None:
    """Serve in virtual time."""
    end = world.now + round(seconds * 1e6)
    while world.now < end:
        world.now += 1000 * min(known.serve(True), 1000)


def known_in(world: World, server: VirtualServer, *, allowed: int = 50, rate: float = 0.0) -> NetworkTime:
    return NetworkTime(server, allowed, lambda _: None, ticks=world.ticks(rate=rate))


def test_on_micropython_a_real_server_over_udp_gives_the_time(tmp_path: Path) -> None:
    micropython.copy_sensor(tmp_path)
    with running_time_server() as port:
        args = {"time": ["127.0.0.1", port]}
        done = micropython.run(micropython.PROGRAMS / "time_of_day.py", folder=tmp_path, args=args)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    ahead, error, board = done.stdout.splitlines()[-1].split()
    assert abs(int(ahead)) <= int(error) + 1
    assert board == "True"


def test_an_answer_from_another_address_never_arrives() -> None:
    asked: list[bytes] = []

    def respond(request: bytes, received: int) -> bytes:
        asked.append(request)
        return answer(request, received)

    with running_time_server(respond, elsewhere=True) as port:
        known = NetworkTime(Datagrams("127.0.0.1", port), 5000, lambda _: None)
        assert not wait_for_time(known, 3.0)
        known.close()
    assert asked


@pytest.mark.parametrize(
    "fault",
    [
        partial(answer, leap=3),
        partial(answer, stratum=16),
        partial(answer, stratum=0),
        partial(answer, originate=bytes(8)),
        partial(answer, originate=bytes(range(8))),
        partial(answer, mode=3),
        partial(answer, mode=5),
        partial(answer, root_dispersion=0.2),
        partial(answer, root_delay=0.4),
        lambda request, received: answer(request, received)[:47],
        lambda request, received: answer(request, received, answered=received - 10_000),
        lambda request, received: answer(request, received - 500_000, answered=received + 500_000),
        lambda _, __: None,
    ],
    ids=range(13),
)
def test_answers_that_cannot_be_trusted_leave_the_time_unknown(fault: Callable[[bytes, int], bytes | None]) -> None:
    world = World()
    server = VirtualServer(world, lambda: (3000, 3000), respond=fault)
    known = known_in(world, server)
    serve(known, world, 600)
    assert known.unix() == 0
    assert 1 <= len(server.asked) < 20
    server.respond = answer
    serve(known, world, LONGEST / 1000 + 60)
    assert abs(known.unix() - world.now / 1000) <= known.error() <= 50


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_holds_for_every_delay_and_drift(seed: int) -> None:
    rng = random.Random(seed)
    world = World()
    uneven = rng.choice([0.0, 1.0, rng.random()])
    loss = rng.choice([0.0, 0.5])

    def delays() -> tuple[int, int] | None:
        there_and_back = rng.choice([500, 5000, 50_000, rng.randrange(900_000)])
        return None if rng.random() < loss else (round(uneven * there_and_back), round((1 - uneven) * there_and_back))

    server = VirtualServer(world, delays, wrong=rng.randrange(-5000, 5000))
    server.respond = partial(answer, root_delay=0.004, root_dispersion=0.003)
    known = known_in(world, server, rate=rng.choice([-1e-4, 1e-4, rng.uniform(-1e-4, 1e-4)]))
    moments = 0
    for _ in range(2000):
        serve(known, world, rng.choice([0.001, 0.1, 10]))
        unix = known.unix()
        if unix:
            moments += 1
            assert abs(unix - world.now / 1000) <= known.error() <= 50
    assert moments > 1000


def test_the_seconds_wrap_in_2036() -> None:
    world = World(2_085_978_496_000_000 - 100_000_000)  # 7 February 2036, 06:28:16, less 100 seconds
    known = known_in(world, VirtualServer(world, lambda: (1000, 1000)))
    for _ in range(4):
        serve(known, world, 60)
        assert abs(known.unix() - world.now / 1000) <= known.error() <= 50


def test_requests_leave_at_times_that_do_not_depend_on_measuring() -> None:
    asked, sent = [], []
    for takes in (lambda: 1000, lambda: 180_000):
        world = World()
        server = VirtualServer(world, lambda: (450_000, 450_000))
        server.respond = partial(answer, root_dispersion=0.01)
        board = VirtualBoard(world, server, schedule=SCHEDULE | {"clock_ms": 500}, takes=takes, jitter=101)
        board.run(120)
        asked.append([moment // 20_000 for moment in server.asked])
        sent.append([moment % 2_011_000 for moment in server.asked[3:]])
    assert asked[0] == asked[1]
    assert len(asked[0]) > 5
    assert all(moment > 990_000 for moments in sent for moment in moments)
