"""The device in C beside the one in Python: random states, clocks and messages, compared to the bit."""

import ctypes
import importlib
import os
import random
import subprocess
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cloakwork.device.c_plan import plan_fields
from cloakwork.privacy import noise_table
from cloakwork.sensor.device import FARTHEST, Device
from cloakwork.sensor.errors import RandomError, StateError
from cloakwork.sensor.keystream import LARGEST_COUNTER, LARGEST_GENERATION, sequence
from cloakwork.sensor.state import COPIES, State
from cloakwork.sensor.wire import LARGEST, write_reading
from tests.devices import config

device_noise: Any = importlib.import_module("cloakwork.sensor.noise")
HERE = Path(__file__).parent / "c"
SOURCES = Path(__file__).parents[2] / "src" / "cloakwork" / "device" / "c"
WARNINGS = "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"
VERDICTS = {0: "wait", 2: "take", 3: "spent"}
REFUSALS = {
    "no copy of the state": -3,
    "contradict": -4,
    "does not belong": -5,
    "all numbers": -9,
    "a copy of this device": -10,
    "far ahead": -11,
    "provisioned again later": -12,
    "random generator": -13,
}
RATIOS = 0.7, 0.7, 2.5, 2.5, 40.0, 3017.0
PLANS = 40


def build(folder: Path) -> ctypes.CDLL:
    """Compile the bench, with undefined behaviour as an error."""
    made = folder / "bench.so"
    flags = "-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all", "-fPIC", "-shared", f"-I{SOURCES}"
    subprocess.run(["gcc", *WARNINGS, *flags, str(HERE / "bench.c"), "-o", str(made)], check=True)  # noqa: S607
    bench = ctypes.CDLL(str(made))
    bench.bench_size.restype = ctypes.c_size_t
    bench.bench_now.restype = ctypes.c_int64
    bench.bench_wait.restype = ctypes.c_uint32
    return bench


class CBoard:
    """A device in C with storage, clock and broker in memory."""

    def __init__(self, bench: ctypes.CDLL, device_config: dict[str, Any], cuts: bytes, denominator: int = 1) -> None:
        self._bench = bench
        self._room = ctypes.create_string_buffer(bench.bench_size())
        self._text = ctypes.create_string_buffer(2048)
        fields = plan_fields(device_config, cuts)
        names = [fields.pop(name).encode() for name in ("site", "sensor")]
        digest, check = fields.pop("noise_digest"), fields.pop("check")
        words = [word for row in fields.pop("cuts") for word in row]
        levels = [number for level in fields.pop("level") for number in level]
        self._cuts = (ctypes.c_uint32 * len(words))(*words)
        numbers = (ctypes.c_int64 * len(fields))(*fields.values())
        self.call(
            "new",
            *names,
            numbers,
            (ctypes.c_int64 * len(levels))(*levels),
            self._cuts,
            digest,
            check,
            ctypes.c_int64(denominator),
        )

    def call(self, name: str, *arguments: Any) -> int:
        return int(getattr(self._bench, "bench_" + name)(self._room, *arguments) or 0)

    def text(self, name: str, *arguments: Any) -> bytes:
        self.call(name, *arguments, self._text)
        return self._text.value

    def put(self, copy: int, data: bytes | None) -> None:
        self.call("put", copy, data, -1 if data is None else len(data))

    def get(self, copy: int) -> bytes | None:
        size = self.call("get", copy, self._text)
        return None if size < 0 else self._text.raw[:size]

    def cloak(self, number: int | None, time: int) -> bytes | int:
        given = int(number is None), ctypes.c_int64(number or 0), ctypes.c_int64(time)
        return self.call("cloak", *given, self._text) or self._text.value

    def set(self, ticks: int, unix: int = 0, writes_left: int = 1 << 30, *, refuses: bool = False) -> None:
        self.call("set", ctypes.c_uint32(ticks & 0xFFFFFFFF), ctypes.c_int64(unix), writes_left, int(refuses))


class Flash:
    """Storage in memory for the device in Python; it fails after some writes."""

    def __init__(self, cuts: bytes, copies: list[bytes | None]) -> None:
        self.files = dict(zip(COPIES, copies, strict=True))
        self._cuts = cuts
        self.writes_left = 1 << 30

    def read(self, name: str) -> bytes | None:
        return self.files[name]

    def write(self, name: str, data: bytes) -> None:
        self.writes_left -= 1
        if self.writes_left < 0:
            raise OSError
        self.files[name] = data

    def lock(self) -> None:
        return None

    def table(self, _: str) -> BytesIO:
        return BytesIO(self._cuts)


def outcome(work: Callable[[], Any]) -> Any:
    """What the device in Python does, in the terms of the one in C."""
    try:
        return work()
    except OSError:
        return -8
    except (StateError, RandomError) as problem:
        return next(code for part, code in REFUSALS.items() if part in str(problem))


def random_plan(rng: random.Random) -> tuple[dict[str, Any], bytes, int]:
    ratio = rng.choice(RATIOS)
    period, window = rng.choice([10, 60, 1000, 60018]), rng.choice([1, 4, 30, 200])
    late = rng.randrange(1, period)
    schedule = {"period_ms": period, "offset_ms": period // 2, "late_ms": late, "window_slots": window}
    schedule |= {"allowed": rng.randrange(window + 1), "block": rng.choice([1, 2, 5, 64])}
    step = rng.choice([0.25, 1.0, 0.0625 / 64, 0.0635 / 64, 3.0, rng.uniform(1e-9, 1e6)])
    planned = config(
        ratio=ratio,
        schedule=schedule,
        site=rng.choice(["flat", "a", "x" * 64]),
        sensor=rng.choice(["s07", "b-_9", "y" * 64]),
        generation=rng.choice([0, 1, 41, LARGEST_GENERATION]),
        kind=rng.choice(["reading", "bench"]),
        step=list(step.as_integer_ratio()),
        fallback=rng.randrange(-1000, 1000),
        values=rng.choice([0, 0, 0, 2, 7]),
        keyed=rng.random() < 0.8,
    )
    return planned, noise_table(ratio).cuts, rng.choice([1, 3, 16, 100, 1 << 40, (1 << 63) - 1])


def random_state(rng: random.Random, planned: dict[str, Any]) -> State:
    period, window = planned["schedule"]["period_ms"], planned["schedule"]["window_slots"]
    slot, runs = rng.choice([0, 5, rng.randrange(1 << 30)]), []
    count = rng.choice([0, 1, 3, 31, 32])
    widest = max(1, window // (2 + 4 * count))  # many runs lie close together, so that gaps must be closed
    for _ in range(count):
        first = slot + rng.randrange(2, 2 + widest)
        slot = first + rng.randrange(widest)
        runs.append([first, slot])
    counter = rng.choice([0, 1, 63, 64, 127, LARGEST_COUNTER - 64, LARGEST_COUNTER, rng.randrange(LARGEST_COUNTER)])
    return State(
        planned["site"],
        planned["sensor"],
        planned["generation"] if rng.random() < 0.98 else 7,
        rng.randbytes(32) if planned["keyed"] or rng.random() < 0.02 else None,
        version=rng.choice([0, 1, 9, 10, 1 << 31]),
        counter=counter,
        clock=slot * period + rng.randrange(-period, 3 * period),
        runs=runs,
        blocked=rng.choice([0, 0, 0, slot + rng.randrange(window + 2)]),
    )


def random_copies(rng: random.Random, state: State) -> list[bytes | None]:
    """Both copies of the state: whole, or one older, torn, missing or contradicting."""
    good = state.pack()
    state.version += rng.choice([0, 1, -1]) if state.version else 1
    state.counter += 1 if state.counter < LARGEST_COUNTER else 0
    spoilt = bytearray(good)
    spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)
    other = rng.choice([good, good, good, good[: rng.randrange(len(good))], bytes(spoilt), None, state.pack()])
    return rng.sample([good, other], 2) if rng.random() < 0.98 else [other, other]


class Twins:
    """One device in both languages, from the same state; each method returns what both did, and they must agree."""

    def __init__(self, board: CBoard, planned: dict[str, Any], cuts: bytes, denominator: int, seed: int) -> None:
        rng = self._rng = random.Random(seed)
        self._planned = planned
        self._denominator = denominator
        copies = random_copies(rng, random_state(rng, planned))
        self._flash, self._board = Flash(cuts, copies), board
        for copy, data in enumerate(copies):
            self._board.put(copy, data)
        self._ticks = rng.choice([0, (1 << 32) - 5, rng.randrange(1 << 40)])

    def run(self) -> None:
        self._open()
        for _ in range(self._rng.randrange(1, 6)):
            if self._device is None:
                return
            work = self._rng.choice([self._slot, self._slot, self._slot, self._heard, self._hold, self._status])
            work()
            self._agree(list(self._flash.files.values()), [self._board.get(0), self._board.get(1)])

    def _agree(self, python: Any, c: Any) -> None:
        assert python == c, (python, c)

    def _prepare(self, elapsed: int) -> None:
        """Move both clocks, decide how many writes succeed, and fill both generators."""
        rng = self._rng
        self._ticks += elapsed
        self._flash.writes_left = rng.choice([0, 1, 99, 99, 99])
        self._board.set(self._ticks, 0, self._flash.writes_left)
        drawn = rng.randbytes(16 * 8) if rng.random() < 0.98 else bytes(128)
        self._board.call("random_set", drawn, len(drawn), 99)
        source = BytesIO(drawn)
        device_noise.os = SimpleNamespace(urandom=source.read)

    def _open(self) -> None:
        self._prepare(0)
        made = outcome(lambda: Device(self._planned, self._flash, lambda: self._ticks))  # type: ignore[arg-type]
        self._device = made if isinstance(made, Device) else None
        self._agree(0 if self._device else made, self._board.call("open"))

    def _slot(self) -> None:
        rng, device = self._rng, self._device
        assert device is not None
        period = device.period
        self._prepare(rng.choice([0, 1, period, period, period - device.clock.now() % period, rng.randrange(1 << 30)]))
        pause = rng.random() < 0.1
        verdict = outcome(lambda: device.begin(device.clock.now(), pause=pause))
        told = self._board.call("begin", int(pause))
        self._agree(verdict, VERDICTS.get(told, told))
        size = 1 << rng.randrange(1, 64)
        number = rng.choice([None, rng.randrange(-size, size), rng.randrange(-30, 30) * self._denominator])
        number = None if number is None else max(-(1 << 63), min((1 << 63) - 1, number))
        time = rng.choice([0, 1700000000000, LARGEST])
        reading = None if number is None else (number, self._denominator)
        if verdict == "take":
            message = outcome(lambda: device.cloak(reading, time))
            self._agree(message, self._board.cloak(number, time))

    def _heard(self) -> None:
        rng, device = self._rng, self._device
        assert device is not None
        self._prepare(rng.randrange(3 * device.period))
        own = self._planned["generation"]
        near = device._state.counter + rng.choice([-1, 0, 7, 300, FARTHEST + 1] if rng.random() < 0.99 else [FARTHEST])  # noqa: SLF001
        counter = max(0, min(LARGEST_COUNTER, near))
        seq = sequence(max(0, min(LARGEST_GENERATION, own + rng.choice([0, 0, 0, -1, 1]))), counter)
        message = bytearray(write_reading(seq, 0, rng.randrange(-9, 9)))
        if rng.random() < 0.2:
            message[rng.randrange(len(message))] = rng.randrange(1, 256)
        retained = rng.random() < 0.8
        moved = outcome(lambda: device.heard(bytes(message), retained, device.clock.now()))
        self._agree(int(moved), self._board.call("heard", bytes(message), len(message), int(retained)))

    def _hold(self) -> None:
        device = self._device
        assert device is not None
        self._prepare(self._rng.randrange(100))
        amount = self._rng.randrange(-5, 2 * device.period)
        self._agree(outcome(lambda: device.hold(amount)) or 0, self._board.call("hold", ctypes.c_int64(amount)))

    def _status(self) -> None:
        device = self._device
        assert device is not None
        spent = self._rng.random() < 0.5
        self._board.call("now")
        status = device.status("spent" if spent else "online", device.clock.now())
        self._agree(status, self._board.text("status", int(spent)))


def compare(bench: ctypes.CDLL, states: int, seed: int) -> None:
    """Compare both devices from so many random states; raises AssertionError with the seed of one that differs."""
    rng = random.Random(seed)
    plans = [random_plan(rng) for _ in range(PLANS)]
    boards = [CBoard(bench, *plan) for plan in plans]
    try:
        for turn in range(states):
            own = rng.getrandbits(64)
            try:
                Twins(boards[turn % PLANS], *plans[turn % PLANS], own).run()
            except AssertionError as problem:
                raise AssertionError(f"plan {turn % PLANS} of seed {seed}, state {own}: {problem}") from problem
    finally:
        device_noise.os = os
