"""`cloakwork audit mqtt`."""

import math
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from cloakwork._checks import IntArray
from cloakwork.auditing import (
    Audit,
    BenchClaim,
    BenchListener,
    BenchSource,
    SetupRecording,
    Witness,
    bench_claim,
    compare,
)
from cloakwork.auditing.audit_report import Subject
from cloakwork.auditing.bench_claim import FEWEST, HALF
from cloakwork.cli.audit import Wanted, audited, finish, refuse_page
from cloakwork.cli.audit_pace import Pace
from cloakwork.cli.output import bar, counted, err, note, refuse_unwritable
from cloakwork.errors import BrokerError, InputError
from cloakwork.mqtt import parse_broker
from cloakwork.site import Plan, Site, load_plan, load_site, plan_beside

TENTH = 0.9
USUAL = 0.95  # the confidence if none is given
STDERR = 2  # where a program's words go, so that our own output stays one JSON object
NETWORK = (
    "Anything about all sensors together. This was one reading of one sensor; what someone learns who sees many "
    "sensors, or many readings, follows from the plan only if each adds noise of its own, as it should."
)

_NOBODY = "nobody is there to change the set-up: give a program that does with --between."
Files: TypeAlias = tuple[Path, Path]


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """What an audit over a broker is told."""

    sensor: str
    broker: str
    password_file: Path | None
    ca: Path | None
    plan: Path | None
    shift: float | None
    epsilon: float | None
    between: str | None
    settle: float | None
    patience: float | None
    out: Path | None


@dataclass(frozen=True, eq=False)
class Recorded:
    """Both recordings, in steps, how many numbers were missing in them, and what the audit found."""

    audit: Audit
    readings: tuple[IntArray, IntArray]
    missing: int


def run_mqtt(path: Path, options: BenchOptions, *, wanted: Wanted) -> None:
    """Audit a device on the bench, over a broker."""
    site = load_site(path)
    file = options.plan or plan_beside(path)
    plan = load_plan(file)
    plan.cloak(site, file=file)  # refuses a plan of another site, or of this one before it changed
    claim = bench_claim(site, plan, options.sensor, shift=options.shift, epsilon=options.epsilon)
    if wanted.reports < FEWEST:
        raise InputError(f"--reports {wanted.reports}: an audit needs at least {FEWEST} with each set-up.")
    changer = _changer(options.between)
    folder = options.out or path.parent / "audits" / options.sensor
    files = _files(folder, claim, wanted)
    refuse_page(wanted, path, file)
    _announce(claim, wanted)
    try:
        recorded = _record(plan, options, claim, files, changer, wanted)
    except (KeyboardInterrupt, BrokerError):
        _say_kept(files, claim, wanted)
        raise
    note(f"the recordings are {folder / 'setup-0.csv'} and {folder / 'setup-1.csv'}")
    finish(recorded.audit, _subject(site, plan, claim, recorded), wanted)


def _record(
    plan: Plan, options: BenchOptions, claim: BenchClaim, files: Files, changer: list[str], wanted: Wanted
) -> Recorded:
    planned = plan.schedule.period_ms / 1000
    broker = parse_broker(options.broker, password_file=options.password_file, authority=options.ca)
    with BenchListener(
        broker, site=plan.site, sensor=options.sensor, patience=_patience(options, planned), note=note
    ) as bench:
        period = bench.pace() or planned
        bench.patience = _patience(options, period)
        settle = 2 * period + 0.5 if options.settle is None else options.settle
        _announce_time(period, wanted)
        pace = Pace(period, wanted.reports, note)
        with SetupRecording(bench, files[0], settle=settle) as zero, bar("recording set-up 0", wanted.reports) as show:
            first = zero.take(wanted.reports, pace.beside(show))
        _change(changer)
        with SetupRecording(bench, files[1], settle=settle) as one:
            note(f"recording set-up 1, and auditing it meanwhile: up to {counted(wanted.reports, 'reading')}")
            found = audited(BenchSource(first, one, pace.beside()), claim.epsilon, claim.delta, wanted, wanted.reports)
            return Recorded(found, (first, np.array(one.values, dtype=np.int64)), zero.missing + one.missing)


def _files(folder: Path, claim: BenchClaim, wanted: Wanted) -> Files:
    """Where the recordings go, in a folder that is there and can be written to."""
    files = folder / "setup-0.csv", folder / "setup-1.csv"
    for file in files:
        if file.exists():
            raise InputError(
                f"{file} is there already: give another folder with --out. Recordings that are complete are audited "
                f"with: {_again(files, claim, wanted)}"
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"--out {folder}: the folder cannot be made ({problem.strerror}).") from None
    refuse_unwritable("--out", files[0])
    return files


def _again(files: Files, claim: BenchClaim, wanted: Wanted) -> str:
    """The command that audits the recordings as this one would have."""
    told = ["--epsilon", repr(float(claim.epsilon)), "--delta", repr(float(claim.delta))]
    sure = [] if wanted.confidence == USUAL else ["--confidence", repr(wanted.confidence)]
    page = [] if wanted.html is None else ["--html", str(wanted.html)]
    return shlex.join(["cloakwork", "audit", "readings", *map(str, files), *told, *sure, *page])


def _say_kept(files: Files, claim: BenchClaim, wanted: Wanted) -> None:
    """What can be done with the recordings of an audit that did not end."""
    sizes = [_readings_in(file) for file in files]
    if min(sizes) >= FEWEST:
        note(f"{sizes[0]:,} and {sizes[1]:,} readings are recorded. To audit them:")
        err.print(_again(files, claim, wanted))  # in one piece, to be copied
    elif max(sizes):
        note(
            f"{sizes[0]:,} and {sizes[1]:,} readings are recorded, in {files[0].parent}: too few to audit, which takes "
            f"{FEWEST} of each"
        )


def _readings_in(file: Path) -> int:
    if not file.exists():
        return 0
    with file.open(encoding="utf-8") as lines:
        return sum(1 for _ in lines) - 1


def _patience(options: BenchOptions, period: float) -> float:
    return max(60.0, 10 * period) if options.patience is None else options.patience


def _announce(claim: BenchClaim, wanted: Wanted) -> None:
    unit = f" {claim.unit}" if claim.unit else ""
    note(
        f"set-ups that differ by at most {claim.shift:.4g}{unit} at this sensor, whose noise is "
        f"{claim.sigma:.4g}{unit}: one reading promises epsilon {claim.epsilon:.4g} at delta {claim.delta:.4g}"
    )
    half, tenth = (
        claim.reports_taken(scale, ceiling=wanted.reports, confidence=wanted.confidence) for scale in (HALF, TENTH)
    )
    note(f"noise half as large as planned shows {_after(half)}, a tenth too small {_after(tenth)}")
    if half > wanted.reports:
        note(f"{wanted.reports:,} are hardly enough: {advice(claim, half)}")


def advice(claim: BenchClaim, reports: float) -> str:
    """What to change where it takes too many readings."""
    unit, strong = f" {claim.unit}" if claim.unit else "", f"{claim.strong_shift:.3g}"
    if float(strong) > claim.shift:
        return f"feed it readings further apart, such as by {strong}{unit} with --shift {strong}"
    if math.isinf(reports):
        return "this --epsilon does not show it at all; leave it out"
    return f"give --reports {float(f'{1.05 * reports:.1e}'):.0f}"


def _announce_time(period: float, wanted: Wanted) -> None:
    minutes = max(1.0, 2 * wanted.reports * period / 60)
    note(f"a reading every {period:g} s: about {minutes:,.0f} min in all if it misses none")


def _after(readings: float) -> str:
    if math.isinf(readings):
        return "never at this epsilon"
    about = f"{readings:.2g}" if readings >= 1e7 else f"{int(float(f'{readings:.1e}')):,}"
    return f"in about {about} readings"


def _changer(between: str | None) -> list[str]:
    """The program that changes the set-up, empty where a person does; refused before anything is recorded."""
    if between is None:
        if sys.stdin is None or not sys.stdin.isatty():
            raise InputError(f"{_NOBODY} Standard input is no terminal.")
        return []
    try:
        words = shlex.split(between)
    except ValueError as problem:
        raise InputError(f"--between {between!r}: cannot be read as a command ({problem}).") from None
    if not words or shutil.which(words[0]) is None:
        raise InputError(f"--between {between!r}: there is no such program. Give one that changes the set-up.")
    return words


def _change(changer: list[str]) -> None:
    """Have the set-up of sources changed, by a program or by the person who watches."""
    if not changer:
        note("set-up 0 is recorded. Change to set-up 1 now, then press Enter")
        try:
            input()
        except EOFError:
            raise InputError(_NOBODY) from None
        return
    try:
        done = subprocess.run(changer, check=False, stdin=subprocess.DEVNULL, stdout=STDERR)  # noqa: S603 - named by whoever audits
    except (OSError, ValueError) as problem:
        raise InputError(f"--between {shlex.join(changer)}: {getattr(problem, 'strerror', None) or problem}.") from None
    if done.returncode:
        raise InputError(f"--between {shlex.join(changer)}: it ended with exit code {done.returncode}.")


def _subject(site: Site, plan: Plan, claim: BenchClaim, recorded: Recorded) -> Subject:
    found, seen = recorded.audit, compare(claim, recorded.readings)
    unit = f" {claim.unit}" if claim.unit else ""
    return Subject(
        name=f"The sensor {claim.sensor} of {site.name}",
        inputs=("set-up 0", "set-up 1"),
        claim=(
            f"By the plan {plan.digest[:12]} this sensor adds normal noise with a standard deviation of "
            f"{claim.sigma:.4g}{unit}. So a single reading of it has at most this epsilon and delta for set-ups whose "
            f"true readings differ by at most {claim.shift:.4g}{unit}, which was stated of these two, and a step of "
            f"{claim.step:.4g}{unit} for rounding. A move of {plan.claim.alpha:g}, which the site hides, shifts this "
            f"sensor by at most {claim.hidden_shift:.4g}{unit}.",
        ),
        notes=(*steps(claim, found.witness), *(seen.notes() if found.independent else ()), *lost(recorded.missing)),
        limits=(
            NETWORK,
            "Its budget: a device for audits has none, so how many readings it takes at work was not tested.",
        ),
        cautions=seen.cautions(found.verdict, reports=found.reports_used, confidence=found.confidence),
        doubt=seen.doubt(),
    )


def steps(claim: BenchClaim, witness: Witness | None) -> tuple[str, ...]:
    """What a number in the event stands for."""
    if witness is None:
        return ()
    unit = f" {claim.unit}" if claim.unit else ""
    cut = re.search(r"the output is (?:above|at most) (-?\d+)", witness.event)
    so = f": {cut[1]} stands for {int(cut[1]) * claim.step:.4g}{unit}" if cut else ""
    return (f"Readings are whole steps of {claim.step:.6g}{unit}{so}.",)


def lost(missing: int) -> tuple[str, ...]:
    """What is said of readings that never came."""
    if not missing:
        return ()
    return (
        f"By their numbers, {counted(missing, 'reading')} never came: lost on the way, held back, or given up by "
        "the device, as when its storage is slow. This audit says nothing about what was in them.",
    )
