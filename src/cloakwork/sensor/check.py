"""Check a device, beside it: read at rest, then while someone drives the reading, and judge it. Nothing is sent.

What a check shows are true readings. It is for the person who installs the device, and for no log that others read.
"""

import sys

from cloakwork.sensor.board import UNSTATED, read_config, say
from cloakwork.sensor.clock import Clock, board_ticks
from cloakwork.sensor.device import MAX_STEPS
from cloakwork.sensor.errors import SensorError
from cloakwork.sensor.measuring import FAILING, INVALID, SLOW, attempt
from cloakwork.sensor.ramp import FEWEST_STEPS, Ramp
from cloakwork.sensor.rounded_noise import LINK, RoundedNoise, slope, smallest_spectrum
from cloakwork.sensor.store import Folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

COUNT = 300
AGAIN = 3  # times as many readings, if these leave open whether the noise is what the plan rests on
FEWEST = 50  # readings that say anything about noise
ROUNDS = 4  # of readings on a ramp, at most: whoever drives it begins late, and large noise takes more
DRIVE = (
    "Now warm or cool the sensor slowly and evenly, by three to ten steps of its hardware in {} readings, until this "
    "check ends: it reads on to see whether the noise arises before the hardware rounds"
)
PIXEL_FRAMES = 50
NOTICE = "These are true readings. Nothing is sent. Do not publish this output."
UNWRITTEN = "measure.py is as provision wrote it"
_TEXTS = 3  # different failures that are shown in full
_TOLERATED = 100  # one failure in so many readings
_FILTERED = 0.6  # smallest part of the spectrum, as a share of the noise: less than this is a filter
_WILD = 8  # times the usual range of a pixel
_CELLS = 200  # steps across the range of the readings; finer steps make no difference to the noise


class Readings:
    """Readings at rest: those that worked, how many failed and why, and how long they took, in milliseconds."""

    def __init__(self) -> None:
        self.values: list[tuple[int, int]] = []
        self.failures = {FAILING: 0, INVALID: 0, SLOW: 0}
        self.texts: list[str] = []
        self.slowest = 0
        self.elapsed = 0
        self.turn = 0  # readings begun
        self.hanging = False
        self.ranges: list[tuple[int, int]] | None = None  # the lowest and highest of each pixel
        self.pixels_failed = False

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

    def take_pixels(self, pixels: "Callable[[], list[int]]") -> None:
        """Read all pixels some times, after the readings."""
        for _ in range(PIXEL_FRAMES):
            try:
                frame = [(int(pixel), int(pixel)) for pixel in pixels()]
            except Exception as problem:
                self.tell(_traceback(problem))
                self.pixels_failed = True
                return
            ranges = self.ranges or frame
            self.pixels_failed = not frame or len(frame) != len(ranges)
            if self.pixels_failed:
                return
            self.ranges = [(min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(ranges, frame)]

    def explain(self, cause: "Any") -> None:
        """Keep in full why a reading failed: its error, or a result that is no reading."""
        if isinstance(cause, NotImplementedError) and UNWRITTEN in str(cause):
            self.tell(f"{UNWRITTEN}: write how this device measures")
        else:
            self.tell(_traceback(cause) if isinstance(cause, Exception) else "read() returned " + repr(cause)[:200])

    def tell(self, text: str) -> None:
        """Keep a text for the report, once; and only the first few."""
        if text not in self.texts and len(self.texts) < _TEXTS:
            self.texts.append(text)


def judge(config: "dict[str, Any]", taken: Readings) -> "dict[str, Any]":
    """Judge a device by its readings, as a report; it is `ready` if there are no `reasons` against it."""
    common = 1
    for _, denominator in taken.values:
        common *= denominator // _gcd(common, denominator)
    numbers = [numerator * (common // denominator) for numerator, denominator in taken.values]
    different = sorted(set(numbers))
    report = _facts(config, taken, different, common)
    reasons, values = report["reasons"], config["values"]
    if config["resolution"] is None and not values:
        reasons.append(UNSTATED)
    _judge_failures(taken, report["late_ms"], reasons, report["remarks"])
    _judge_pixels(taken, report)
    if len(numbers) < FEWEST:
        reasons.append(f"only {len(numbers)} readings worked, and a check needs {FEWEST}")
    elif values:
        if [number for number in different if number % common or not 0 <= number // common < values]:
            reasons.append(f"this sensor has the values 0 to {values - 1}, and read() returned others")
    elif len(different) < 2:
        reasons.append(
            f"all {len(numbers)} readings are the same: the sensor is dead or stuck, or has no noise of its own. Warm "
            "it with a hand during a check; if its readings stay the same, replace it"
        )
    else:
        _judge_step(report, config["resolution"], _gap(different), common)
        _judge_noise(report, numbers, _gap(different), common)
        _judge_range(numbers, different, reasons)
    if numbers and not values:
        _judge_unit(config, sorted(numbers)[len(numbers) // 2] / common, different, common, reasons)
    report["ready"] = not reasons
    return report


def _facts(config: "dict[str, Any]", taken: Readings, different: "list[int]", common: int) -> "dict[str, Any]":
    """A report of what was read, without a verdict yet; `different` are the values read, in parts of `common`."""
    resolution = config["resolution"]
    return {
        "sensor": config["sensor"],
        "unit": config["unit"],
        "notice": NOTICE,
        "readings": taken.turn,
        "failures": taken.failures,
        "errors": taken.texts,
        "seconds": taken.elapsed / 1000,
        "slowest_ms": taken.slowest,
        "late_ms": config["schedule"]["late_ms"],
        "lowest": different[0] / common if different else None,
        "highest": different[-1] / common if different else None,
        "step": _gap(different) / common if len(different) > 1 else None,
        "resolution": None if resolution is None else resolution[0] / resolution[1],
        "noise_floor": None,
        "planned_noise_floor": config.get("noise_floor"),
        "drift": None,
        "ramp": None,
        "pixels": None,
        "reasons": [],
        "remarks": [],
    }


def _gap(different: "list[int]") -> int:
    """The least distance between two values."""
    return min([b - a for a, b in zip(different, different[1:])])


def undecided(report: "dict[str, Any]") -> bool:
    """Whether all that is wrong is that more readings might show the noise floor that the plan rests on."""
    noise, planned = report["noise_floor"], report["planned_noise_floor"]
    return bool(planned and noise and len(report["reasons"]) == 1 and noise["low"] < planned <= noise["high"])


def once_more(count: int) -> str:
    """Explain that a check reads again."""
    return f"{count} readings do not show the noise floor of a sensor that may have it: reading {AGAIN * count} anew"


def needs_ramp(report: "dict[str, Any]") -> bool:
    """Whether all is well at rest, and it is open only whether the noise that the plan rests on blurs the steps."""
    return bool(report["ready"] and report["planned_noise_floor"])


def judge_ramp(report: "dict[str, Any]", config: "dict[str, Any]", take: "Callable[[], Readings]") -> None:
    """Read on a ramp until it shows that the noise arises before the rounding, and add the verdict to the report."""
    numerator, denominator = config["resolution"]
    noise = report["noise_floor"]
    carry, steps = noise["carry"], (noise["estimate"] + noise["high"]) / 2 * denominator / numerator
    most = (steps * (1 + abs(carry))) ** 2 / (1 - carry * carry) + 1 / 12  # of readings at rest, rounding included
    rounds: list[list[float]] = []
    ramp = None
    while len(rounds) < ROUNDS and (ramp is None or not ramp.blurs):
        taken = take()
        if taken.hanging or len(taken.values) < FEWEST:
            report["reasons"].append("readings failed while the sensor was warmed or cooled: check again")
            break
        rounds.append([value * denominator / (parts * numerator) for value, parts in taken.values])
        for first in reversed(range(len(rounds))):  # the latest alone may be even where the beginning is not
            ramp = Ramp([value for values in rounds[first:] for value in values], carry, most)
            if ramp.blurs:
                break
    if ramp is not None:
        report["ramp"] = {"readings": sum([len(values) for values in rounds]), "steps": ramp.steps, "blurs": ramp.blurs}
        if not ramp.blurs:
            report["reasons"].append(_unblurred(ramp))
    report["ready"] = not report["reasons"]


def _unblurred(ramp: Ramp) -> str:
    otherwise = "or state no noise_floor, then plan and provision again"
    if ramp.steps < FEWEST_STEPS:
        return (
            f"the reading moved by {ramp.steps:.1f} steps, and only a move by {FEWEST_STEPS:.0f} or more shows where "
            f"its noise arises: check again, and warm or cool the sensor in the second part, {otherwise}"
        )
    if not ramp.even:
        return (
            "the readings moved in stairs, as with noise that arises after a rounding, which hides no step; or the "
            f"sensor was warmed unevenly. Check again, more slowly and evenly, {otherwise}"
        )
    if not ramp.calm:
        return (
            "the readings scatter more than at rest: the sensor flutters while it is warmed, which hides stairs. Check "
            f"again, more slowly and evenly, {otherwise}"
        )
    return (
        "the readings are too few to show that the noise blurs the steps of the hardware: check again with more "
        f"readings, {otherwise}"
    )


def _judge_failures(taken: Readings, late: int, reasons: "list[str]", remarks: "list[str]") -> None:
    what = {
        FAILING: "failed with an error",
        INVALID: "were not two whole numbers, the second above 0",
        SLOW: f"took longer than {late} ms: measure faster, or set a longer late in the site file",
    }
    for state, count in taken.failures.items():
        if count:
            said = reasons if count * _TOLERATED > taken.turn else remarks
            said.append(f"{count} of {taken.turn} readings {what[state]}")
    if taken.hanging:
        reasons.append(f"read() did not end in reading {taken.turn}: give whatever it waits for a time limit")


def _judge_pixels(taken: Readings, report: "dict[str, Any]") -> None:
    if taken.pixels_failed:
        report["reasons"].append("pixels() failed, or returned no list of as many whole numbers each time")
        return
    if taken.ranges is None:
        return
    spans = [high - low for low, high in taken.ranges]
    usual = sorted(spans)[len(spans) // 2]
    stuck = [pixel for pixel, span in enumerate(spans) if not span]
    wild = [pixel for pixel, span in enumerate(spans) if span > _WILD * usual]
    if not usual:  # most do not change: it takes a hand to tell which can
        text = "most pixels do not change, so none can be called stuck: warm them with a hand during a check"
        report["remarks"].append(text)
        stuck, wild = [], []
    report["pixels"] = {"count": len(spans), "stuck": stuck, "wild": wild}
    for numbers, what in ((stuck, "never change, as dead or stuck ones do"), (wild, "jump far more than the others")):
        if numbers:
            named = ", ".join([str(number) for number in numbers])
            report["reasons"].append(
                f"pixels {named} {what}: replace the sensor, or leave them out of read() and pixels() for good"
            )


def _judge_step(report: "dict[str, Any]", resolution: "list[int] | None", gap: int, common: int) -> None:
    if resolution is not None and gap * resolution[1] > resolution[0] * common:
        report["reasons"].append(
            f"the readings lie {report['step']:.6g} apart, coarser than the resolution {report['resolution']:.6g} "
            "that the plan covers. Return every digit of the hardware, or set resolution to the coarser step, then "
            "plan and provision again"
        )


def _judge_noise(report: "dict[str, Any]", numbers: "list[int]", gap: int, common: int) -> None:
    reasons, remarks = report["reasons"], report["remarks"]
    cell = max(gap, (max(numbers) - min(numbers)) // _CELLS)
    noise = RoundedNoise([(number - numbers[0]) / cell for number in numbers])
    size = cell / common / (1 + abs(noise.carry))  # only the white part of noise that carries over hides a step
    sd, low, high = noise.sd * size, noise.low * size, noise.high * size
    white = smallest_spectrum([(number - numbers[0]) / common for number in numbers], gap / common)
    filtered = white < min(low, _FILTERED * sd)
    low = min(low, white)
    # less noise shows in few readings, however they are linked
    if (filtered or noise.carry > LINK) and 2 * sd * common > gap:
        remarks.append(
            "readings are linked, as by a running mean in the chip or by fading, and only the smallest part of the "
            "spectrum of their noise counts. Switch a filter off, or read more slowly than it averages"
        )
    report["noise_floor"] = {"estimate": sd, "low": low, "high": high, "carry": noise.carry}
    drift = report["drift"] = slope(numbers) * len(numbers) / common
    planned = report["planned_noise_floor"]
    if planned and low < planned:
        reasons.append(
            f"the plan rests on a noise floor of {planned:.4g}, and the readings show only {low:.4g} or more. "
            + (f"State at most {low:.2g}" if low else "State no noise_floor")
            + ", then plan and provision again"
            + ("; or check again with more readings" if high >= planned else "")
        )
    elif not planned and low:
        remarks.append(
            f"the plan does not rest on a noise floor; noise_floor = {low:.2g} in the site file may cost less noise"
        )
    repeats = sum([a == b for a, b in zip(numbers, numbers[1:])])
    expected = sum(noise.chances)
    if repeats - expected > 5 * sum([p * (1 - p) for p in noise.chances]) ** 0.5 + 1:
        reasons.append(
            f"{repeats} readings repeat the one before, and noise of this size explains {expected:.0f}: read() returns "
            "earlier results, or single readings jump. Let the sensor measure anew in each call"
        )
    if noise.worst > 6 + 0.5 / noise.sd:
        reasons.append(f"a reading jumps {noise.worst:.0f} times the noise: check the wiring, and that no one is near")
    if abs(drift) > 4 * sd:
        remarks.append(f"the readings drift by {drift:.3g}: check again when the room has come to rest")


def _judge_range(numbers: "list[int]", different: "list[int]", reasons: "list[str]") -> None:
    counts = [numbers.count(value) for value in different]
    for end, name in ((0, "lowest"), (-1, "highest")):
        if len(counts) >= 4 and counts[end] == max(counts) and counts[end] * 20 > len(numbers):
            reasons.append(
                f"{counts[end]} readings lie at the {name} value, more than anywhere else: they are clipped, or "
                "the sensor is not at rest. Check again; if it stays so, use a sensor or a setting with a wider range"
            )


def _judge_unit(
    config: "dict[str, Any]", middle: float, different: "list[int]", common: int, reasons: "list[str]"
) -> None:
    step = config["step"][0] / config["step"][1]
    baseline = config["fallback"] * step
    if max(-different[0], different[-1]) / common > MAX_STEPS * step:
        reasons.append("readings are larger than the device can send, and would be cut")
    others = [("thousandths of the unit", middle / 1000)]
    if config["unit"][-1:] == "C":
        others.append(("degrees Fahrenheit", (middle - 32) / 1.8))
    if config["unit"][-1:] == "F":
        others.append(("degrees Celsius", middle * 1.8 + 32))
    for name, converted in others:
        if 4 * abs(converted - baseline) < abs(middle - baseline):
            reasons.append(
                f"the readings are about {middle:.4g} and the baseline is {baseline:.4g} {config['unit']}: they look "
                f"like {name}. Convert them with cloakwork.sensor.exact, or state the right unit and baseline"
            )


def lines(report: "dict[str, Any]") -> "list[str]":
    """The report as lines of text."""
    unit = (" " + report["unit"]) if report["unit"] else ""
    told: list[str] = [report["sensor"] + ": " + NOTICE] + report["errors"]
    told.append(
        f"{report['readings']} readings in {report['seconds']:.1f} s; the slowest took {report['slowest_ms']} ms, and "
        f"{report['late_ms']} ms are allowed"
    )
    if report["lowest"] is not None:
        told.append(f"values: {report['lowest']:.6g} to {report['highest']:.6g}{unit}")
    if report["step"] is not None:
        stated = "none" if report["resolution"] is None else f"{report['resolution']:.6g}"
        told.append(f"step: {report['step']:.6g}{unit} seen, {stated} stated as the resolution")
    noise, planned = report["noise_floor"], report["planned_noise_floor"]
    if noise is not None:
        told.append(
            f"noise floor: {noise['estimate']:.3g}{unit}, from {noise['low']:.3g} to {noise['high']:.3g} with 95 % "
            f"confidence, {noise['estimate'] / report['step']:.2f} steps; the plan rests on "
            + (f"{planned:.3g}" if planned else "none")
        )
        told.append(f"drift: {report['drift']:.3g}{unit}; a deviation carries over to the next by {noise['carry']:.2f}")
    if report["ramp"] is not None:
        ramp = report["ramp"]
        told.append(
            f"ramp: {ramp['steps']:.1f} steps in {ramp['readings']} readings; the noise "
            + ("blurs them" if ramp["blurs"] else "is not shown to blur them")
        )
    if report["pixels"] is not None:
        pixels = report["pixels"]
        faulty = len(pixels["stuck"]) + len(pixels["wild"])
        told.append(f"pixels: {pixels['count']}, numbered from 0; {faulty} of them faulty")
    told += ["remark: " + text for text in report["remarks"]]
    told += ["problem: " + text for text in report["reasons"]]
    told.append("READY" if report["ready"] else "NOT READY")
    return told


def run(
    folder: str,
    read: "Callable[[], tuple[int, int]]",
    count: int = COUNT,
    pixels: "Callable[[], list[int]] | None" = None,
) -> None:
    """Check the device of a folder, print the report, and exit: with code 1 if the device is not ready."""
    store = Folder(folder)
    try:
        config = read_config(store)
        held = store.lock()
    except SensorError as problem:
        say(str(problem))
        sys.exit(2)
    report = _read_and_judge(config, read, count, pixels)
    if undecided(report):
        say(once_more(count))
        report = _read_and_judge(config, read, AGAIN * count, pixels)
    if needs_ramp(report):
        say(DRIVE.format(count))
        judge_ramp(report, config, lambda: _take(config, read, count))
    if held is not None:
        held.close()
    for line in lines(report):
        say(line)
    sys.exit(0 if report["ready"] else 1)


def _read_and_judge(
    config: "dict[str, Any]",
    read: "Callable[[], tuple[int, int]]",
    count: int,
    pixels: "Callable[[], list[int]] | None",
) -> "dict[str, Any]":
    taken = _take(config, read, count)
    if pixels is not None:
        taken.take_pixels(pixels)
    say("... and now the noise")
    return judge(config, taken)


def _take(config: "dict[str, Any]", read: "Callable[[], tuple[int, int]]", count: int) -> Readings:
    taken = Readings()
    taken.take(read, count, config["schedule"]["late_ms"], _progress)
    return taken


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
