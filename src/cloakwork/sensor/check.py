"""Check a device on the spot: read at rest, then while someone drives the reading, and judge it. Nothing is sent.

What a check shows are true readings. It is for the person who installs the device, and for no log that others read.
"""

import sys

from cloakwork.sensor.board import UNSTATED, read_config, say
from cloakwork.sensor.clock import Clock, board_ticks
from cloakwork.sensor.device import MAX_STEPS
from cloakwork.sensor.errors import SensorError
from cloakwork.sensor.measuring import FAILING, INVALID, SLOW, attempt
from cloakwork.sensor.ramp import Ramp
from cloakwork.sensor.resting_noise import LINK, RestingNoise
from cloakwork.sensor.store import Folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

COUNT = 300
AGAIN = 3  # times as many readings, if these leave open whether the noise is what the plan rests on
FEWEST = 50  # readings that say anything about noise
ROUNDS = 4  # of readings on a ramp, at most: whoever drives it begins late, and large noise takes more
NOTICE = "These are true readings. Nothing is sent. Do not publish this output."
_TEXTS = 3  # different failures that are shown in full
_TOLERATED = 100  # one failure in so many readings
_JUMP = 6  # standard deviations


class Readings:
    """Readings: those that worked, how many failed and why, and how long they took, in milliseconds."""

    def __init__(self) -> None:
        self.values: list[tuple[int, int]] = []
        self.failures = {FAILING: 0, INVALID: 0, SLOW: 0}
        self.texts: list[str] = []
        self.slowest = 0
        self.elapsed = 0
        self.turn = 0  # readings begun

    def take(
        self, read: "Callable[[], tuple[int, int]]", count: int, late: int, show: "Callable[[int], object]"
    ) -> None:
        """Read as often as stated; `late` is the time that a reading may take."""
        clock = Clock(0, board_ticks)
        for turn in range(count):
            show(turn)
            self.turn = turn + 1
            start = clock.now()
            reading, state = attempt(read, self.explain)
            self.elapsed = clock.now()
            took = self.elapsed - start
            self.slowest = max(self.slowest, took)
            if reading is not None:
                self.values.append(reading)
            if took >= late or reading is None:
                self.failures[SLOW if took >= late else state] += 1
        show(count)

    def explain(self, cause: "Any") -> None:
        """Keep in full why a reading failed, once and only the first few: its error, or a result that is no reading."""
        text = _traceback(cause) if isinstance(cause, Exception) else "read() returned " + repr(cause)[:200]
        if text not in self.texts and len(self.texts) < _TEXTS:
            self.texts.append(text)


def check(
    config: "dict[str, Any]", take: "Callable[[int], Readings]", count: int, note: "Callable[[str], object]"
) -> "dict[str, Any]":
    """Check a device at rest, and on a ramp if its plan rests on a noise floor; returns the report.

    `take` reads this often. The device is `ready` if there are no `reasons` against it.
    """
    report = judge(config, take(count))
    floor, planned = report["noise_floor"], config.get("noise_floor")
    if planned and floor and len(report["reasons"]) == 1 and floor["low"] < planned <= floor["high"]:
        note(f"{count} readings leave the noise floor open: reading {AGAIN * count} more")
        report = judge(config, take(AGAIN * count))
    if planned and not report["reasons"]:
        note(
            "Now warm or cool the sensor slowly and evenly, by three to ten steps of its hardware in "
            f"{count} readings, until this check ends: it must show that the noise arises before the hardware rounds"
        )
        _judge_ramp(report, config, lambda: take(count))
    report["ready"] = not report["reasons"]
    return report


def judge(config: "dict[str, Any]", taken: Readings) -> "dict[str, Any]":
    """Judge a device by its readings at rest: a report with `facts`, `remarks` and the `reasons` against it."""
    common = 1
    for _, denominator in taken.values:
        common *= denominator // _gcd(common, denominator)
    numbers = [numerator * (common // denominator) for numerator, denominator in taken.values]
    different = sorted(set(numbers))
    gap = min([b - a for a, b in zip(different, different[1:])]) if len(different) > 1 else 0
    unit = (" " + config["unit"]) if config["unit"] else ""
    late, step, values = config["schedule"]["late_ms"], config["step"], config["values"]
    facts = [config["sensor"] + ": " + NOTICE] + taken.texts
    facts.append(
        f"{taken.turn} readings in {taken.elapsed / 1000:.1f} s; the slowest took {taken.slowest} ms, and {late} ms "
        "are allowed"
    )
    if different:
        facts.append(
            f"values: {different[0] / common:.6g} to {different[-1] / common:.6g}{unit}; the baseline is "
            f"{config['fallback'] * step[0] / step[1]:.6g}"
        )
    report: dict[str, Any] = {"facts": facts, "remarks": [], "reasons": [], "noise_floor": None, "ramp": None}
    reasons = report["reasons"]
    if config["resolution"] is None and not values:
        reasons.append(UNSTATED)
    _judge_failures(taken, late, report)
    if len(numbers) < FEWEST:
        reasons.append(f"only {len(numbers)} readings worked, and a check needs {FEWEST}")
    elif values:
        if [number for number in different if number % common or not 0 <= number // common < values]:
            reasons.append(f"this sensor has the values 0 to {values - 1}, and read() returned others")
    elif not gap:
        reasons.append(
            f"all {len(numbers)} readings are the same: the sensor is dead or stuck, or has no noise of its own. Warm "
            "it with a hand during a check; if its readings stay the same, replace it"
        )
    else:
        if max(-different[0], different[-1]) * step[1] > MAX_STEPS * step[0] * common:
            reasons.append("readings are larger than the device can send, and would be cut: check their unit")
        _judge_step(report, config["resolution"], gap, common, unit)
        steps = [(number - numbers[0]) / gap for number in numbers]
        _judge_noise(report, steps, gap / common, config.get("noise_floor"), unit)
    return report


def _judge_failures(taken: Readings, late: int, report: "dict[str, Any]") -> None:
    what = {
        FAILING: "failed with an error",
        INVALID: "were not two whole numbers, the second above 0",
        SLOW: f"took longer than {late} ms: measure faster, or set a longer late in the site file",
    }
    for state, count in taken.failures.items():
        if count:
            texts = report["reasons" if count * _TOLERATED > taken.turn else "remarks"]
            texts.append(f"{count} of {taken.turn} readings {what[state]}")


def _judge_step(report: "dict[str, Any]", resolution: "list[int] | None", gap: int, common: int, unit: str) -> None:
    stated = "none" if resolution is None else f"{resolution[0] / resolution[1]:.6g}"
    report["facts"].append(f"step: {gap / common:.6g}{unit} seen, {stated} stated as the resolution")
    if resolution is not None and gap * resolution[1] > resolution[0] * common:
        report["reasons"].append(
            f"the readings lie {gap / common:.6g} apart, coarser than the resolution {stated} that the plan covers. "
            "Return every digit of the hardware, or set resolution to the coarser step, then plan and provision again"
        )


def _judge_noise(
    report: "dict[str, Any]", steps: "list[float]", size: float, planned: "float | None", unit: str
) -> None:
    """Judge the noise of readings that are given in steps of this size."""
    reasons, remarks = report["reasons"], report["remarks"]
    noise = RestingNoise(steps)
    low, high, deviation = noise.low * size, noise.high * size, noise.variance**0.5
    report["noise_floor"] = {"estimate": noise.sd * size, "low": low, "high": high}
    report["rest"] = size, noise.variance, noise.link, len(steps)
    report["facts"].append(
        f"noise floor: {noise.sd * size:.3g}{unit}, from {low:.3g} to {high:.3g} with 95 % confidence, {noise.sd:.2f} "
        "steps; the plan rests on " + (f"{planned:.3g}" if planned else "none")
    )
    if planned and low < planned:
        reasons.append(
            f"the plan rests on a noise floor of {planned:.4g}, and the readings show only {low:.4g} or more. "
            + (f"State at most {low:.2g}" if low else "State no noise_floor")
            + ", then plan and provision again; or check again with more readings"
        )
    elif low and not planned:
        remarks.append(
            f"the plan does not rest on a noise floor; noise_floor = {low:.2g} in the site file may cost less noise"
        )
    if abs(noise.link) > LINK:
        remarks.append(
            "readings are linked, as by a running mean in the chip or by fading, and only the smallest part of the "
            "spectrum of their noise counts. Switch a filter off, read more slowly than it averages, and let the "
            "sensor measure in each call of read()"
        )
    if noise.farthest > _JUMP * deviation + 0.5:
        reasons.append(
            f"a reading jumps {noise.farthest / deviation:.0f} times the noise: check the wiring, and that no one is "
            "near"
        )
    drift = noise.rise * len(steps)
    if abs(drift) > 4 * deviation:
        remarks.append(f"the readings drift by {drift * size:.3g}: check again when the room has come to rest")


def _judge_ramp(report: "dict[str, Any]", config: "dict[str, Any]", take: "Callable[[], Readings]") -> None:
    """Read on a ramp until it shows that the noise arises before the rounding, and add the verdict to the report."""
    numerator, denominator = config["resolution"]
    seen, variance, link, count = report["rest"]
    size = seen * denominator / numerator  # the noise is in steps that were seen, a ramp in those planned
    most = variance * size * size * (1 + (2 / count) ** 0.5)
    rounds: list[list[float]] = []
    ramp = None
    while len(rounds) < ROUNDS and (ramp is None or ramp.fault):
        taken = take()
        if len(taken.values) < FEWEST:
            report["reasons"].append("readings failed while the sensor was warmed or cooled: check again")
            return
        rounds.append([value * denominator / (parts * numerator) for value, parts in taken.values])
        for first in reversed(range(len(rounds))):  # the latest alone may be even where the beginning is not
            ramp = Ramp([value for values in rounds[first:] for value in values], link, most)
            if not ramp.fault:
                break
    if ramp is not None:
        total = sum([len(values) for values in rounds])
        report["ramp"] = ramp
        report["facts"].append(
            f"ramp: {ramp.steps:.1f} steps in {total} readings; the noise "
            + ("is not shown to blur them" if ramp.fault else "blurs them")
        )
        if ramp.fault:
            report["reasons"].append(
                f"{ramp.fault}. Check again, and warm or cool the sensor slowly and evenly in the second part; or "
                "state no noise_floor, then plan and provision again"
            )


def lines(report: "dict[str, Any]") -> "list[str]":
    """The report as lines of text."""
    shown: list[str] = report["facts"] + ["remark: " + text for text in report["remarks"]]
    return shown + ["problem: " + text for text in report["reasons"]] + ["READY" if report["ready"] else "NOT READY"]


def run(folder: str, read: "Callable[[], tuple[int, int]]", count: int = COUNT) -> None:
    """Check the device of a folder, print the report, and exit: with code 1 if the device is not ready."""
    store = Folder(folder)
    try:
        config = read_config(store)
        held = store.lock()
    except SensorError as problem:
        say(str(problem))
        sys.exit(2)

    def take(number: int) -> Readings:
        taken = Readings()
        taken.take(read, number, config["schedule"]["late_ms"], _progress)
        return taken

    report = check(config, take, count, say)
    if held is not None:
        held.close()
    for line in lines(report):
        say(line)
    sys.exit(0 if report["ready"] else 1)


def _progress(done: int) -> None:
    if done % 25 == 0:
        say(f"{done} readings")


def _traceback(problem: Exception) -> str:
    if hasattr(sys, "print_exception"):  # MicroPython
        import io  # noqa: PLC0415

        text = io.StringIO()
        sys.print_exception(problem, text)
        return text.getvalue().strip()
    import traceback  # noqa: PLC0415 - boards do not have it

    return "".join(traceback.format_exception(problem)).strip()


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a
