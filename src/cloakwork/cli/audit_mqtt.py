"""`cloakwork audit mqtt`."""

import math
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias

import numpy as np

from cloakwork._checks import IntArray
from cloakwork.auditing import (
    ANNOUNCED,
    FEWEST_REPORTS,
    HALF_NOISE,
    STRONG_SHIFT,
    Audit,
    DeviceClaim,
    DeviceListener,
    DeviceSource,
    Recording,
    device_claim,
)
from cloakwork.cli.arguments import RARE, Authority, Json, PasswordFile, PlanFile, SiteFile, option
from cloakwork.cli.audit_options import (
    CONFIDENCE,
    AuditOptions,
    Confidence,
    Html,
    Reports,
    Seed,
    audited,
    finish,
    refuse_page,
)
from cloakwork.cli.output import counted, err, note, refuse_unwritable, working
from cloakwork.cli.planned_noise import checked_plan
from cloakwork.errors import BrokerError, InputError
from cloakwork.mqtt import BrokerAddress, parse_broker
from cloakwork.site import FrozenPlan, load_any_site, plan_beside

MIN_PATIENCE_S, MISSES = 60.0, 10  # without a reading, before the device is given up
TENTH_LESS = 0.9  # of the planned noise
STDERR = 2  # where the output of the changing program goes, so that our own stays one JSON object
_NOBODY = "nobody is there to change the set-up: give a program that does with --between."

Files: TypeAlias = tuple[Path, Path]


@dataclass(frozen=True, eq=False)
class DeviceResult:
    """The audit, both recordings in steps, and how many sequence numbers were missing in them."""

    audit: Audit
    readings: tuple[IntArray, IntArray]
    missing: int


def mqtt(
    path: SiteFile,
    sensor: Annotated[str, option("Which sensor of the site; provisioned with --bench.", "--id")],
    broker: Annotated[str, option("Where it sends: mqtt://host, or mqtts://user@host with TLS.")],
    password_file: PasswordFile = None,
    ca: Authority = None,
    plan: PlanFile = None,
    shift: Annotated[
        float | None, option("How far the true readings differ; by default what the site hides.", min=0.0, panel=RARE)
    ] = None,
    epsilon: Annotated[float | None, option("At which epsilon to test the plan's noise.", min=0.0, panel=RARE)] = None,
    reports: Reports = 2_000,
    confidence: Confidence = CONFIDENCE,
    between: Annotated[
        str | None, option("Changes the set-up; by default a person is asked to.", metavar="PROGRAM")
    ] = None,
    settle: Annotated[float | None, option("Pause before each set-up.", min=0.0, metavar="SECONDS", panel=RARE)] = None,
    patience: Annotated[
        float | None, option("Give up after so long without a reading.", min=1.0, metavar="SECONDS", panel=RARE)
    ] = None,
    out: Annotated[Path | None, option("Folder for the recordings.", "--out", metavar="FOLDER")] = None,
    continued: Annotated[bool, option("Continue the recordings in that folder.", "--resume")] = False,
    html: Html = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Audit a test device: record it with one set-up of sources, then with the other.

    Firmware can tell that this is an audit, and add noise only then: prefer "readings" of a working device.
    """
    options = AuditOptions(reports=reports, confidence=confidence, html=html, seed=seed, json=json)
    site, file = load_any_site(path), plan or plan_beside(path)
    frozen = checked_plan(site, path, file)
    claim = device_claim(site, frozen, sensor, shift=shift, epsilon=epsilon)
    if reports < FEWEST_REPORTS:
        raise InputError(f"--reports {reports}: an audit needs at least {FEWEST_REPORTS} with each set-up.")
    changer = _changer(between)
    folder = out or path.parent / "audits" / sensor
    files = _files(folder, claim, options, continued=continued)
    refuse_page(options, path, file)
    _announce(claim, options)
    address = parse_broker(broker, password_file=password_file, authority=ca)
    try:
        result = _record(frozen, address, claim, files, changer, options, settle, patience)
    except (KeyboardInterrupt, BrokerError):
        _note_kept(files, claim, options)
        raise
    note(f"the recordings are {folder / 'setup-0.csv'} and {folder / 'setup-1.csv'}")
    finish(result.audit, claim.subject(result.audit, result.readings, missing=result.missing), options)


def _record(
    plan: FrozenPlan,
    broker: BrokerAddress,
    claim: DeviceClaim,
    files: Files,
    changer: list[str],
    options: AuditOptions,
    settle: float | None,
    patience: float | None,
) -> DeviceResult:
    """Record both set-ups; without a `patience`, wait for as long as ten readings take, and at least a minute."""
    planned = plan.schedule.period_ms / 1000
    first_patience = patience or max(MIN_PATIENCE_S, MISSES * planned)
    with DeviceListener(broker, site=plan.site, sensor=claim.sensor, patience=first_patience, note=note) as listener:
        period = listener.pace() or planned
        listener.patience = patience or max(MIN_PATIENCE_S, MISSES * period)
        pause = 2 * period + 0.5 if settle is None else settle
        minutes = max(1.0, 2 * options.reports * period / 60)
        note(f"a reading every {period:g} s: about {minutes:,.0f} min in all if it misses none")
        changed = files[1].exists()  # an audit that goes on, with set-up 1
        recording = partial(Recording, listener, settle=pause)
        with recording(files[0]) as zero, working("set-up 0", options.reports) as show:
            if not changed:
                zero.take(max(0, options.reports - len(zero.values)), show)
            first = np.array(zero.values[: options.reports], dtype=np.int64)
        if not changed:
            _change(changer)
        with recording(files[1]) as one:
            note(f"recording and auditing set-up 1: up to {counted(len(first), 'reading')}")
            source = DeviceSource(first, one)
            audit = audited(source, claim.epsilon, claim.delta, options, len(first))
            return DeviceResult(audit, (first, np.array(one.values, dtype=np.int64)), zero.missing + one.missing)


def _files(folder: Path, claim: DeviceClaim, options: AuditOptions, *, continued: bool) -> Files:
    """The files of the recordings, in a folder that exists and can be written to."""
    files = folder / "setup-0.csv", folder / "setup-1.csv"
    there = [number for number, file in enumerate(files) if file.exists()]
    if there and not continued:
        raise InputError(
            f"{files[there[0]]} exists already: give another folder with --out, or --resume to go on with an "
            f"interrupted audit. To audit recordings that are complete: {_readings_command(files, claim, options)}",
            path=str(files[there[0]]),
        )
    if there:
        sizes = " and ".join(f"{_readings_in(file):,}" for file in files)
        note(f"going on after {sizes} recorded readings: the device must be in set-up {there[-1]} now")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"--out {folder}: the folder cannot be made ({problem.strerror}).") from None
    refuse_unwritable("--out", files[0])
    return files


def _readings_command(files: Files, claim: DeviceClaim, options: AuditOptions) -> str:
    """The command that audits the recordings as this one would have."""
    values = ["--epsilon", repr(float(claim.epsilon)), "--delta", repr(float(claim.delta))]
    confidence = [] if options.confidence == CONFIDENCE else ["--confidence", repr(options.confidence)]
    page = [] if options.html is None else ["--html", str(options.html)]
    return shlex.join(["cloakwork", "audit", "readings", *map(str, files), *values, *confidence, *page])


def _note_kept(files: Files, claim: DeviceClaim, options: AuditOptions) -> None:
    """Say what to do with the recordings of an audit that did not end."""
    sizes = [_readings_in(file) for file in files]
    if max(sizes):
        note("run the same command with --resume to go on")
    if min(sizes) >= FEWEST_REPORTS:
        note(f"{sizes[0]:,} and {sizes[1]:,} readings are recorded. To audit them:")
        err.print(_readings_command(files, claim, options))  # in one piece, to be copied
    elif max(sizes):
        note(
            f"{sizes[0]:,} and {sizes[1]:,} readings are recorded in {files[0].parent}: too few to audit, which takes "
            f"{FEWEST_REPORTS} of each"
        )


def _readings_in(file: Path) -> int:
    if not file.exists():
        return 0
    with file.open(encoding="utf-8") as lines:
        return sum(1 for _ in lines) - 1


def _announce(claim: DeviceClaim, options: AuditOptions) -> None:
    """Say what is tested, and how many reports a fault takes."""
    promise = f"promises epsilon {claim.epsilon:.4g} at delta {claim.delta:.4g}"
    if claim.truth:
        note(f"one report of this sensor {promise}, whatever it sees")
        faults = {"a device with twice that epsilon": HALF_NOISE}
    else:
        note(
            f"set-ups that differ by at most {claim.shown(claim.shift)} at this sensor, whose noise is "
            f"{claim.shown(claim.sigma)}: one reading {promise}"
        )
        faults = {"noise half as large as planned": HALF_NOISE, "noise a tenth too small": TENTH_LESS}
    least = min(ANNOUNCED, options.reports)
    needed = [max(least, claim.reports_needed(scale, confidence=options.confidence)) for scale in faults.values()]
    note(", ".join(f"{fault} shows {_after(number)}" for fault, number in zip(faults, needed, strict=True)))
    if needed[0] > options.reports:
        note(f"{options.reports:,} are hardly enough: {advice(claim, needed[0])}")


def advice(claim: DeviceClaim, reports: float) -> str:
    """Say what to change where the audit needs too many readings."""
    strong = f"{STRONG_SHIFT * claim.sigma:.3g}"
    if float(strong) > claim.shift:
        return f"feed it readings further apart, such as by {claim.shown(float(strong), 3)} with --shift {strong}"
    if math.isinf(reports):
        return "this --epsilon cannot show it; leave it out"
    return f"give --reports {float(f'{1.05 * reports:.1e}'):.0f}"


def _after(readings: float) -> str:
    if math.isinf(readings):
        return "never at this epsilon"
    about = f"{readings:.2g}" if readings >= 1e7 else f"{int(float(f'{readings:.1e}')):,}"
    return f"in about {about} readings"


def _changer(between: str | None) -> list[str]:
    """The program that changes the set-up, empty where a person does; refused before anything is recorded."""
    if between is None:
        if sys.stdin is None or not sys.stdin.isatty():
            raise InputError(f"{_NOBODY} Standard input is not a terminal.")
        return []
    try:
        words = shlex.split(between)
    except ValueError as problem:
        raise InputError(f"--between {between!r}: cannot be read as a command ({problem}).") from None
    if not words or shutil.which(words[0]) is None:
        raise InputError(f"--between {between!r}: there is no such program. Give one that changes the set-up.")
    return words


def _change(changer: list[str]) -> None:
    """Have the set-up of sources changed, by a program or by the person at the terminal."""
    if not changer:
        note("set-up 0 is recorded. Change to set-up 1 now, then press Enter")
        try:
            input()
        except EOFError:
            raise InputError(_NOBODY) from None
        return
    try:
        done = subprocess.run(changer, check=False, stdin=subprocess.DEVNULL, stdout=STDERR)  # noqa: S603 - the user's
    except (OSError, ValueError) as problem:
        raise InputError(f"--between {shlex.join(changer)}: {getattr(problem, 'strerror', None) or problem}.") from None
    if done.returncode:
        raise InputError(f"--between {shlex.join(changer)}: it ended with exit code {done.returncode}.")
