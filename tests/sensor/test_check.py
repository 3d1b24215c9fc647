"""The check of a device: what it refuses to call ready, on both interpreters, and that nothing leaves."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloakwork.sensor.check import NOTICE, Readings, check, judge, lines
from cloakwork.sensor.resting_noise import RestingNoise
from tests import micropython
from tests.devices import config, make_folder

STEP = 16  # sixteenths, as of a DS18B20
BOARD = Path(__file__).parents[2] / "src" / "cloakwork" / "device" / "board"
Read = Callable[[], tuple[int, int]]


def device(**changed: Any) -> dict[str, Any]:
    told = {"resolution": [1, STEP], "step": [1, 64 * STEP], "fallback": 21 * 64 * STEP, "noise_floor": 0.03}
    return config(**told | {"schedule": {"late_ms": 60_000}} | changed)


def noisy(sd: float = 0.04, *, at: float = 21.0, coarse: int = 1) -> Read:
    rng = np.random.default_rng(11)

    def read() -> tuple[int, int]:
        return round((at + sd * rng.standard_normal()) * STEP / coarse) * coarse, STEP

    return read


def taken(read: Read, count: int, late: int = 60_000) -> Readings:
    readings = Readings()
    readings.take(read, count, late, lambda _: None)
    return readings


def checked(read: Read, count: int = 200, **changed: Any) -> dict[str, Any]:
    """The verdict at rest."""
    told = device(**changed)
    return judge(told, taken(read, count, told["schedule"]["late_ms"]))


def driven(sensor: Callable[[float], float], *, climb: float = 4.0, **changed: Any) -> dict[str, Any]:
    """The whole check of a sensor that turns a true reading, in steps, into what it reports."""
    told, turn = device(**changed), [0]
    at = 21 * STEP + np.random.default_rng(turn[0]).random()

    def read() -> tuple[int, int]:
        turn[0] += 1
        return round(sensor(at + climb * max(0, turn[0] - 300) / 300)), STEP

    return check(told, lambda count: taken(read, count), 300, lambda _: None)


def fluttering(seed: int) -> Callable[[float], float]:
    """Warmth that flutters by a quarter of a step as it climbs, and noise after the rounding."""
    rng, turn = np.random.default_rng(seed), [0]

    def sensor(x: float) -> float:
        turn[0] += 1
        flutter = 0.25 * rng.standard_normal() if turn[0] > 300 else 0.0
        return round(x + flutter) + round(0.64 * rng.standard_normal())

    return sensor


def honest(floor: float, seed: int = 0) -> Callable[[float], float]:
    rng = np.random.default_rng(seed)
    return lambda x: round(x + floor * rng.standard_normal())


def rounded_first(seed: int) -> Callable[[float], float]:
    rng = np.random.default_rng(seed)
    return lambda x: round(x) + round(0.64 * rng.standard_normal())


def tossed(seed: int) -> Callable[[float], float]:
    rng = np.random.default_rng(seed)
    return lambda x: round(x) + int(rng.integers(-1, 2))


def inner_converter(seed: int) -> Callable[[float], float]:
    """An inner step of 0.25 degrees, and noise before the outer one of 0.0625."""
    rng = np.random.default_rng(seed)
    return lambda x: round(4 * round(x / 4) + 0.64 * rng.standard_normal())


@pytest.mark.parametrize("floor", [0.5, 1.0])
def test_rounded_gaussian_noise_is_ready_after_a_ramp(floor: float) -> None:
    reports = [driven(honest(floor, seed), climb=2.5, noise_floor=0.8 * floor / STEP) for seed in range(5)]
    assert sum(report["ready"] for report in reports) >= 4, [report["reasons"] for report in reports]
    assert not any(report["ramp"].fault for report in reports if report["ready"])


@pytest.mark.parametrize("fake", [rounded_first, tossed, inner_converter])
def test_noise_that_arises_after_a_rounding_is_not_ready(fake: Callable[[int], Any]) -> None:
    reports = [driven(fake(seed), climb=3.0) for seed in range(5)]
    assert not any(report["ready"] for report in reports)
    assert sum(report["ramp"] is not None and bool(report["ramp"].fault) for report in reports) >= 4


def test_warmth_that_flutters_does_not_stand_in_for_noise() -> None:
    reports = [driven(fluttering(seed), climb=3.0) for seed in range(5)]
    assert sum(report["ready"] for report in reports) <= 1
    assert any("scatter more than at rest" in reason for report in reports for reason in report["reasons"])


def test_a_plan_that_rests_on_noise_floor_needs_a_ramp() -> None:
    still = driven(honest(0.64), climb=0.0)
    assert not still["ready"]
    assert "moved by 0." in still["reasons"][0]
    assert driven(honest(0.64), climb=0.0, noise_floor=0.0)["ready"], "without a noise floor there is nothing to show"


def test_an_honest_sensor_is_ready() -> None:
    report = checked(noisy(), 300)
    assert not report["reasons"]
    assert "step: 0.0625 °C seen, 0.0625 stated as the resolution" in report["facts"]
    assert report["noise_floor"]["estimate"] == pytest.approx(0.04, rel=0.2)
    assert lines(report | {"ready": True})[0].endswith(NOTICE)


def filtered(length: int, sd: float, seed: int) -> Read:
    """A chip that returns the running mean of its last readings, then rounds."""
    rng = np.random.default_rng([length, seed])
    last = list(sd * rng.standard_normal(length))

    def read() -> tuple[int, int]:
        last[:] = [*last[1:], sd * rng.standard_normal()]
        return round((21.0 + sum(last) / length) * STEP), STEP

    return read


@pytest.mark.parametrize(("length", "share"), [(2, 0.41), (4, 0.19), (8, 0.09)])
def test_a_running_mean_in_the_chip_does_not_pass_as_white_noise(length: int, share: float) -> None:
    """What carries over to the next reading alone would leave this share of the noise that goes in; the truth is 0."""
    passing = 0.8 * share * 0.2
    assert checked(filtered(length, 0.2, 0), 300, noise_floor=passing)["reasons"]
    chips = [filtered(length, 0.2, seed) for seed in range(100)]
    low = np.array([RestingNoise([float(read()[0]) for _ in range(300)]).low / STEP for read in chips])
    assert (low >= passing).mean() <= 0.05


@pytest.mark.parametrize(
    ("read", "changed", "said"),
    [
        (noisy(0.04), {"noise_floor": 0.06}, "State at most 0.03"),
        (noisy(0.001), {}, "all 200 readings are the same"),
        (noisy(0.002, at=21.03125), {}, "State no noise_floor"),
        (noisy(0.2, coarse=2), {}, "coarser than the resolution 0.0625"),
        (noisy(0.04), {"resolution": None}, "Set resolution"),
        (noisy(0.04), {"schedule": {"late_ms": -1}}, "200 of 200 readings took longer than -1 ms: measure faster"),
    ],
)
def test_a_device_that_is_not_as_stated_is_not_ready_and_hears_why(
    read: Read, changed: dict[str, Any], said: str
) -> None:
    report = checked(read, **changed)
    assert any(said in reason for reason in report["reasons"]), report["reasons"]


def test_readings_that_repeat_earlier_ones_are_not_noise() -> None:
    fresh, turn, held = noisy(0.06), [0], [(0, 1)]

    def read() -> tuple[int, int]:
        turn[0] += 1
        if turn[0] % 8 == 1:
            held[0] = fresh()
        return held[0]

    report = checked(read, 300)
    assert any("State no noise_floor" in reason for reason in report["reasons"]), report["reasons"]
    assert any("linked" in remark for remark in report["remarks"])
    assert not any("linked" in remark for remark in checked(fresh, 300)["remarks"])


@pytest.mark.parametrize(("result", "kind"), [(None, "invalid"), (float("nan"), "invalid"), (None, "failing")])
def test_errors_are_shown_in_full_and_never_ready(result: Any, kind: str) -> None:
    def read() -> tuple[int, int]:
        if kind == "failing":
            raise OSError("no acknowledgement from 0x69")
        return result  # type: ignore[no-any-return]

    report = check(device(), lambda count: taken(read, count), 200, lambda _: None)
    assert not report["ready"]
    assert any(reason.startswith("200 of 200 readings") for reason in report["reasons"])
    text = report["facts"][1]
    assert ('raise OSError("no ack' in text) if kind == "failing" else (repr(result) in text)


MEASURE = """
state = [12345]
turn = [0]

def uniform():
    state[0] = (1103515245 * state[0] + 12345) % 2147483648
    return state[0] / 2147483648

def read():
    turn[0] += 1
    if turn[0] == 7:
        raise OSError("no acknowledgement")
    warmth = 21.03 + max(0, turn[0] - 300) / 1200  # warmed after the readings at rest
    return round((warmth + SD * (sum([uniform() for _ in range(12)]) - 6)) * 16), 16
"""


@pytest.mark.parametrize(("sd", "code"), [("0.04", 0), ("0.02", 1)])
def test_the_check_of_the_folder_says_the_same_on_a_board_and_on_a_computer(tmp_path: Path, sd: str, code: int) -> None:
    folder = tmp_path / "s07"
    make_folder(folder, **{key: device()[key] for key in ("resolution", "step", "fallback", "noise_floor", "schedule")})
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    micropython.copy_sensor(folder)
    shutil.copy(BOARD / "check.py", folder)
    (folder / "measure.py").write_text(MEASURE.replace("SD", sd))
    (tmp_path / "start.py").write_text("import check")  # as `mpremote exec` does
    computer = subprocess.run([sys.executable, folder / "check.py"], capture_output=True, text=True, check=False)
    board = micropython.run(tmp_path / "start.py", folder=folder)
    for done in (computer, board):
        assert done.returncode == code, done.stdout + done.stderr
        assert done.stdout.count(NOTICE) == 1
        assert ("NOT READY" in done.stdout) == bool(code)
        assert 'raise OSError("no ack' in done.stdout or "OSError: no ack" in done.stdout
        assert ("the noise blurs them" in done.stdout) == (not code)
    ours, theirs = ([line for line in done.stdout.splitlines() if "steps" in line] for done in (computer, board))
    assert ours == theirs != []
    assert {name: (folder / name).read_bytes() for name in before} == before, "a check spends no budget and no number"
