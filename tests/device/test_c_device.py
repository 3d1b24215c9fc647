"""The device in C: equal to Python to the bit, safe under damage, and silent where it was built wrong."""

import ctypes
import json
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cloakwork.device import Target, provision
from cloakwork.device.c_plan import plan_header
from cloakwork.errors import InputError
from cloakwork.keys import load_keys, new_keys, save_keys
from cloakwork.mqtt import BrokerAddress
from cloakwork.privacy import noise_table
from cloakwork.sensor.keystream import sequence
from cloakwork.sensor.sntp import NetworkTime
from cloakwork.sensor.wire import read_reading, read_status, write_reading
from cloakwork.site import Plan, freeze, parse_site
from tests import parts
from tests.device.c_twin import HERE, SOURCES, WARNINGS, CBoard, build, compare
from tests.device.test_provision import SITE
from tests.devices import GENERATION, config, first_state

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "keystream.json").read_text(encoding="utf-8"))["cases"]
CUTS = noise_table(2.5).cuts
DATA, STATUS = "cloakwork/v1/flat/s07/reading", "cloakwork/v1/flat/s07/status"
UNIX = 1_800_000_000_000


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    parts.needs("gcc")
    return build(tmp_path_factory.mktemp("c"))


def new_board(bench: ctypes.CDLL, device_config: dict[str, Any] | None = None, denominator: int = 16) -> CBoard:
    device_config = device_config or config()
    board = CBoard(bench, device_config, CUTS, denominator)
    for copy, data in enumerate(first_state(device_config).values()):
        board.put(copy, data)
    return board


@pytest.mark.parametrize("case", VECTORS)
def test_c_reproduces_the_published_vectors(bench: ctypes.CDLL, case: dict[str, Any]) -> None:
    key, out = bytes.fromhex(case["device_key"]), ctypes.create_string_buffer(32 * 8)
    keys = [key]
    for _ in range(2):
        bench.bench_ratchet(keys[-1], out)
        keys.append(out.raw[:32])
    assert [one.hex() for one in keys] == case["epoch_keys"]
    names = case["site"].encode(), case["sensor"].encode(), case["generation"]
    for reading in case["readings"]:
        epoch = reading["seq"] % 2**28 // 64
        bench.bench_words(keys[epoch], *names, epoch, ctypes.c_uint64(reading["seq"]), out, 8)
        assert out.raw.hex().startswith("".join(reading["words"]))


def test_c_and_python_decide_send_and_store_the_same_from_random_states(bench: ctypes.CDLL) -> None:
    compare(bench, 1000, random.randrange(1 << 30))


def test_random_power_cuts_damage_and_messages_pass_the_sanitizers(tmp_path: Path) -> None:
    """The program stops if a number repeats, a window is overspent, or memory is misused."""
    parts.needs("gcc")
    (tmp_path / "plan.h").write_bytes(plan_header(config(together=False), CUTS))
    made = tmp_path / "fuzz"
    flags = "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DRANDOM_LOOP"
    line = ["gcc", *WARNINGS, *flags, f"-I{SOURCES}", f"-I{tmp_path}", str(HERE / "fuzz.c"), "-o", str(made)]
    subprocess.run(line, check=True)
    # the code has no heap, and the search for leaks takes seconds
    quiet = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run([made, "150"], check=True, capture_output=True, text=True, env=quiet)
    assert int(done.stdout.split()[0]) > 200


class Answering:
    """A time server whose answers a test makes up, for the Python side."""

    host = "server"

    def __init__(self) -> None:
        self.sent = b""
        self.answer = b""

    def open(self) -> None: ...

    def send(self, data: bytes) -> None:
        self.sent = data

    def receive(self) -> bytes:
        answer, self.answer = self.answer, b""
        return answer

    def close(self) -> None: ...


def test_c_and_python_know_the_same_time(bench: ctypes.CDLL) -> None:
    rng = random.Random(7)
    bench.cw_time_unix.restype = ctypes.c_int64
    known = 0
    for _ in range(60):
        allowed, now, skew = rng.choice([5, 50, 500]), 0, rng.randrange(10**6)
        link, ours = Answering(), ctypes.create_string_buffer(256)
        theirs = NetworkTime(link, allowed, lambda _: None, ticks=lambda: now)  # noqa: B023 - called in this turn
        bench.cw_time_open(ours, ctypes.c_int64(allowed), 0)
        for _ in range(40):
            now += rng.choice([1, 500, 2000, 70_000, 1_100_000])
            theirs.drop()
            bench.cw_time_drop(ours)
            link.sent, packet = b"", ctypes.create_string_buffer(48)
            theirs.serve(True)
            nonce = link.sent[40:] or bytes(8)
            assert bench.cw_time_serve(ours, ctypes.c_uint32(now), 1, nonce, packet) == bool(link.sent)
            if link.sent:
                assert packet.raw == link.sent
                sent, now = now, now + rng.choice([0, 3, 40, 400])
                at = UNIX + skew + rng.randrange(sent, now + 1) + rng.choice([0, 0, 0, 0, 0, 60, -5000])
                stamp = ((at // 1000 + 2_208_988_800) % 2**32).to_bytes(4, "big") + (
                    at % 1000 * 2**32 // 1000
                ).to_bytes(4, "big")
                head = bytes([rng.choice([0x24, 0x24, 0x24, 0xE4]), rng.choice([0, 1, 1, 2, 3, 16])])
                rest = bytes(2) + (rng.randrange(400)).to_bytes(4, "big") + rng.randrange(400).to_bytes(4, "big")
                link.answer = head + rest + bytes(12) + nonce + stamp + stamp
                bench.cw_time_answer(ours, ctypes.c_uint32(now), link.answer, 48)
                theirs.serve(False)
            assert bench.cw_time_unix(ours, ctypes.c_uint32(now)) == theirs.unix()
            known += theirs.unix() > 0
    assert known > 300


@pytest.mark.parametrize(
    ("mistake", "code"),
    [
        ("an edited plan", -1),
        ("a plan of another version", -1),
        ("an edited table", -2),
        ("a state of another sensor", -3),
        ("a state of another generation", -3),
        ("erased flash", -3),
        ("flash full of zeros", -3),
        ("no key", -5),
        ("no resolution", -6),
        ("readings coarser than the plan covers", -7),
        ("no random generator", -13),
    ],
)
def test_a_board_that_was_built_wrong_refuses_to_send(bench: ctypes.CDLL, mistake: str, code: int) -> None:
    planned = config(resolution=[1, 16], keyed=mistake != "no random generator")
    state, cuts, denominator = first_state(planned)["state.0"], CUTS, 16
    if mistake == "an edited table":
        cuts = CUTS[:20] + bytes([CUTS[20] ^ 1]) + CUTS[21:]
    if mistake == "a state of another sensor":
        state = first_state(config(sensor="s08"))["state.0"]
    if mistake == "a state of another generation":
        state = first_state(config(generation=GENERATION - 1))["state.0"]
    if mistake == "no key":
        state = first_state(config(keyed=False))["state.0"]
    if mistake == "no resolution":
        planned["resolution"] = None
    if mistake == "readings coarser than the plan covers":
        denominator = 10
    board = CBoard(bench, planned, cuts, denominator)
    if mistake == "an edited plan":
        board.call("edit", 4)
    if mistake == "a plan of another version":
        board.call("edit", 2)
    stored = {"erased flash": b"\xff" * 2048, "flash full of zeros": bytes(2048)}.get(mistake, state)
    board.put(0, stored)
    board.put(1, stored)
    board.call("random_set", bytes(64), 64, 99)
    assert board.call("open") == code
    board.call("link", 1)
    for now in range(0, 3000, 20):
        board.set(now, UNIX + now)
        assert board.call("step") == code
    assert board.text("sent") == b""
    assert board.get(0) == stored


class World:
    """A board, its broker and the time, in steps of a millisecond."""

    def __init__(self, board: CBoard, start: int = 0) -> None:
        self.board = board
        self.now = start
        self.sent: list[tuple[int, str, bytes]] = []
        self.measured: list[int] = []
        self.echo = True
        self.writes = 1 << 30
        self.read: Callable[[], int | None] = lambda: 340
        self.result = 0

    def run(self, milliseconds: int) -> None:
        for _ in range(milliseconds):
            self.now += 1
            self.board.set(self.now, UNIX + self.now, self.writes)
            self.result = self.board.call("step")
            self.now += self.board.call("delayed")
            if self.result == 1:
                self.measured.append(self.now)
                number = self.read()
                if number is not None:
                    assert self.board.call("measured", ctypes.c_int64(number)) == 0
            while line := self.board.text("sent"):
                topic, message = line.split(b" ")
                self.sent.append((self.now, topic.decode(), message))
                if self.echo:
                    self.board.call("receive", topic, message)

    def readings(self) -> list[tuple[int, int, int]]:
        return [read_reading(message) for _, topic, message in self.sent if topic == DATA]

    def states(self) -> list[str]:
        return [read_status(message)[0] for _, topic, message in self.sent if topic == STATUS]


@pytest.fixture
def world(bench: ctypes.CDLL) -> World:
    board = new_board(bench)
    assert board.call("open") == 0
    board.call("link", 1)
    return World(board)


def test_the_loop_measures_in_slots_sends_at_the_offset_and_keeps_the_budget(world: World) -> None:
    world.run(4000)
    readings = world.readings()
    assert len(readings) >= 10
    assert [seq for seq, _, _ in readings] == [sequence(GENERATION, k) for k in range(len(readings))]
    assert all(time % 100 == 0 and UNIX < time <= UNIX + 4000 for _, time, _ in readings)
    assert len({time for _, time, _ in readings}) == len(readings)
    assert all((UNIX + now) % 100 < 10 for now in world.measured)
    assert all(40 <= (UNIX + now) % 100 < 43 for now, topic, _ in world.sent[1:] if topic == DATA)
    # four slots of any ten, and all devices of the site pause in the same ones
    assert all(time // 100 % 10 < 4 for _, time, _ in readings)
    assert {"online", "spent"} <= set(world.states())


def test_nothing_is_measured_before_the_broker_has_answered_and_the_time_is_known(world: World) -> None:
    world.echo = False
    world.run(3000)
    assert (world.measured, world.readings()) == ([], [])
    world.echo = True
    world.run(12_000)  # the device asks again after ten seconds
    assert world.readings()


def test_a_restored_board_moves_past_what_the_broker_retained_and_waits_a_window(bench: ctypes.CDLL) -> None:
    board = new_board(bench)
    assert board.call("open") == 0
    board.call("link", 1)
    world = World(board)
    board.call("receive", DATA.encode(), write_reading(sequence(GENERATION, 70), UNIX, 5))
    world.run(3000)
    assert world.readings()[0][0] == sequence(GENERATION, 71)
    assert world.measured[0] > 1000  # ten slots of 100 ms
    board.call("receive", DATA.encode(), write_reading(sequence(GENERATION, 100), UNIX, 5))
    world.run(200)
    assert world.result == -10  # a copy runs elsewhere
    count = len(world.readings())
    world.run(2000)
    assert len(world.readings()) == count


def test_a_restored_board_drops_its_unsent_readings_even_if_the_storage_fails_just_then(bench: ctypes.CDLL) -> None:
    board = new_board(bench)
    assert board.call("open") == 0
    board.call("link", 1)
    world = World(board)
    world.run(1500)
    before = len(world.readings())
    assert board.call("open") == 0  # from here on as after a backup: the broker knows more
    world.run(2000)
    assert len(world.measured) > before
    board.call("link", 1)
    board.call("receive", DATA.encode(), write_reading(sequence(GENERATION, 70), UNIX, 5))
    world.writes = 0
    while world.result != -8:
        world.run(1)
    world.writes = 1 << 30
    world.run(4000)
    later = [seq for seq, _, _ in world.readings()[before:]]
    assert later
    assert min(later) > sequence(GENERATION, 70)


@pytest.fixture(scope="module")
def plan() -> Plan:
    site = parse_site(SITE.replace("alpha = 0.0625", "alpha = 0.0625\nresolution = 0.0625"))
    return freeze(site, site.cloak())


def test_the_folder_for_c_builds_and_runs_and_holds_its_key_in_its_state_only(plan: Plan, tmp_path: Path) -> None:
    parts.needs("gcc", "make")
    save_keys(new_keys("two-rooms"), tmp_path / "keys.json")
    made = provision(
        plan,
        "hall",
        tmp_path / "hall",
        broker=BrokerAddress(),
        keys=tmp_path / "keys.json",
        resolution=0.0625,
        bench=True,
        period=0.4,
        target=Target.C,
    )
    key = load_keys(tmp_path / "keys.json").generations("hall")[-1].key.hex()
    assert [path.name for path in sorted(made.folder.iterdir()) if key in path.read_text()] == ["state.0", "state.1"]
    assert "device.json" not in {path.name for path in made.folder.iterdir()}  # no other program may run this state
    make = parts.program("make") or "make"
    subprocess.run([make, "-s", "CFLAGS=-O0 " + " ".join(WARNINGS)], cwd=made.folder, check=True)
    lines: list[str] = []
    for _ in range(2):
        done = subprocess.run(["./board", "3"], cwd=made.folder, check=True, capture_output=True, text=True)
        lines += done.stdout.splitlines()
    numbers = [read_reading(line.split(" ")[1].encode())[0] for line in lines if "/bench " in line]
    assert numbers == sorted(set(numbers))
    assert len(numbers) >= 2
    assert {number >> 28 for number in numbers} == {made.generation}
    (made.folder / "state.0").write_bytes(b"")
    (made.folder / "state.1").unlink()
    refused = subprocess.run(["./board", "4"], cwd=made.folder, check=False, capture_output=True, text=True)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Provision this device again" in refused.stderr


def test_a_step_that_c_cannot_hold_is_refused() -> None:
    with pytest.raises(InputError) as problem:
        plan_header(config(step=[1, 3]), CUTS)
    assert problem.value.values == {"step": [1, 3]}
