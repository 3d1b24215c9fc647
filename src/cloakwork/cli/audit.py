"""`cloakwork audit command | readings | mqtt`."""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from cloakwork.auditing import (
    ANNOUNCED,
    FEWEST_REPORTS,
    HALF_NOISE,
    STRONG_SHIFT,
    Audit,
    AuditReport,
    DeviceClaim,
    DeviceListener,
    DeviceSource,
    ProgramSource,
    Recording,
    ReportReader,
    Subject,
    Verdict,
    device_claim,
    printable,
    read_recordings,
)
from cloakwork.auditing import audit as run_audit
from cloakwork.cli.arguments import (
    PAGES,
    RARE,
    Authority,
    Json,
    PasswordFile,
    PlanFile,
    PlannedSite,
    argument,
    option,
    reads,
    writes,
)
from cloakwork.cli.files import refuse_unwritable, written
from cloakwork.cli.output import counted, note, print_json, working
from cloakwork.cli.planned_noise import checked_plan
from cloakwork.cli.report import show
from cloakwork.errors import BrokerError, InputError
from cloakwork.mqtt import BrokerAddress, parse_broker
from cloakwork.site import FrozenPlan, load_any_site, plan_beside

VIOLATION, WITHHELD = 3, 4
MIN_PATIENCE_S, MISSES = 60.0, 10  # without a reading, before the device is given up
IDENTICAL = (
    "The two recordings are identical, report by report: one is a copy of the other, or the same noise was used for "
    "both. Give two that were made one after the other."
)

audit = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
Epsilon = Annotated[float, option("The claimed epsilon.", min=0.0)]
Delta = Annotated[float, option("The claimed delta, below 1.", min=0.0)]
Reports = Annotated[int, option("The most reports to take with each input.", min=1, metavar="N")]
Confidence = Annotated[float, option("Confidence of a violation, such as 0.95.", panel=RARE)]
Html = Annotated[
    Path | None, option("Write the report as an HTML page.", "--html", metavar="FILE", callback=writes(*PAGES))
]
Seed = Annotated[int | None, option("Make the auditor's own choices reproducible.", metavar="N", min=0, panel=RARE)]


@dataclass(frozen=True)
class Auditor:
    """How to audit, and where the report goes."""

    reports: int
    confidence: float
    html: Path | None
    seed: int | None
    json: bool

    def audit(self, mechanism: Callable[..., Any], epsilon: float, delta: float) -> Audit:
        """Audit with a progress bar; an interrupted audit reports how far it came."""
        seen = 0
        with working("auditing", self.reports) as bar:

            def progress(done: int, _: int) -> None:
                nonlocal seen
                seen = done
                bar(done)

            try:
                return run_audit(
                    mechanism,
                    epsilon=epsilon,
                    delta=delta,
                    reports=self.reports,
                    confidence=self.confidence,
                    rng=np.random.default_rng(self.seed),
                    progress=progress,
                )
            except KeyboardInterrupt:
                note(f"stopped after {seen:,} of up to {self.reports:,} reports with each input, without a verdict")
                raise

    def finish(self, result: Audit, subject: Subject) -> None:
        """Print and write the report; the exit code carries the verdict."""
        report = AuditReport(audit=result, subject=subject, made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
        if self.json:
            print_json(report.to_json())
        else:
            show(str(report))
        if self.html is not None:
            with written(self.html) as file:
                file.write(report.to_html())
            note(f"wrote {self.html}")
        if code := {Verdict.VIOLATION: VIOLATION, Verdict.WITHHELD: WITHHELD}.get(result.verdict, 0):
            raise typer.Exit(code)


@audit.command("command")
def command(
    program: Annotated[str, argument("Prints one report a line; gets 0 or 1 appended.", metavar="PROGRAM")],
    epsilon: Epsilon,
    delta: Delta = 0.0,
    reports: Reports = 500_000,
    confidence: Confidence = 0.95,
    html: Html = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Audit a program that prints reports for each of two inputs."""
    auditor = Auditor(reports, confidence, html, seed, json)
    with ProgramSource(program) as source:
        result = auditor.audit(source, epsilon, delta)
    limits = ("Anything about runs with other inputs, other settings, or on another day.",)
    name = f'The program "{printable(program)}"'
    auditor.finish(result, Subject(name=name, notes=_words_seen(source.reader), limits=limits))


@audit.command("readings")
def readings(
    first: Annotated[Path, argument("Recorded with one set-up.", metavar="A.csv", callback=reads())],
    second: Annotated[Path, argument("Recorded with the other.", metavar="B.csv", callback=reads())],
    epsilon: Epsilon,
    delta: Delta = 0.0,
    columns: Annotated[
        list[str] | None, option("Column of the report; repeat it for a row.", "--column", metavar="NAME")
    ] = None,
    sensor: Annotated[str | None, option("Which sensor, of several.", "--sensor", metavar="ID")] = None,
    reports: Reports = 500_000,
    confidence: Confidence = 0.95,
    html: Html = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Audit two recordings, one made with each of two set-ups.

    Prefer recordings of a working device: firmware can tell a device for audits, and add noise only there.
    """
    with working("reading") as bar:
        recorded = read_recordings((first, second), columns=columns or [], sensor=sensor, most=reports, progress=bar)
    lengths, used = recorded.lengths, recorded.ceiling
    if used < FEWEST_REPORTS:
        raise InputError(f"{used} reports in the shorter recording: an audit needs at least {FEWEST_REPORTS} in each.")
    if lengths[0] != lengths[1]:
        note(f"{lengths[0]:,} and {lengths[1]:,} reports: the first {used:,} of each are used")
    auditor = Auditor(used, confidence, html, seed, json)
    result = auditor.audit(recorded, epsilon, delta)
    names = [printable(path.name) for path in (first, second)]
    subject = Subject(
        name=f"The device behind the recordings {names[0]} and {names[1]}",
        inputs=(f"the set-up of {names[0]}", f"the set-up of {names[1]}"),
        notes=_words_seen(recorded.reader),
        limits=(
            "That the recordings are genuine: made by this device, one with each set-up, nothing left out, and with "
            "set-ups no further apart than the claim covers.",
        ),
        cautions=(IDENTICAL,) if recorded.identical and _vary(recorded.reports[0]) else (),
    )
    auditor.finish(result, subject)


def _vary(reports: NDArray[Any]) -> bool:
    return len(set(map(repr, reports.tolist()))) > 1


def _words_seen(reader: ReportReader) -> tuple[str, ...]:
    if not reader.words:
        return ()
    shown = ", ".join(f'"{word}"' for word in reader.words[:5])
    return (f"Among the numbers there were words, each an outcome of its own: {shown}.",)


@audit.command("mqtt")
def mqtt(
    path: PlannedSite,
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
    confidence: Confidence = 0.95,
    out: Annotated[Path | None, option("Folder for the recordings.", "--out", metavar="FOLDER")] = None,
    continued: Annotated[bool, option("Continue the recordings in that folder.", "--resume")] = False,
    html: Html = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Audit a test device: record it with one set-up of sources, then with the other.

    Firmware can tell that this is an audit, and add noise only then: prefer "readings" of a working device.
    """
    auditor = Auditor(reports, confidence, html, seed, json)
    site = load_any_site(path)
    frozen = checked_plan(site, path, plan or plan_beside(path))
    claim = device_claim(site, frozen, sensor, shift=shift, epsilon=epsilon)
    if reports < FEWEST_REPORTS:
        raise InputError(f"--reports {reports}: an audit needs at least {FEWEST_REPORTS} with each set-up.")
    folder = out or path.parent / "audits" / sensor
    files = _files(folder, continued=continued)
    _announce(claim, auditor)
    address = parse_broker(broker, password_file=password_file, authority=ca)
    try:
        result, subject = _audited(frozen, address, claim, files, auditor)
    except (KeyboardInterrupt, BrokerError):
        if any(file.exists() for file in files):
            note(f"what is recorded is in {folder}: run the same command with --resume to continue")
        raise
    note(f"the recordings are {files[0]} and {files[1]}")
    auditor.finish(result, subject)


def _audited(
    plan: FrozenPlan,
    broker: BrokerAddress,
    claim: DeviceClaim,
    files: list[Path],
    auditor: Auditor,
) -> tuple[Audit, Subject]:
    """Record the device in one set-up, then record and audit it in the other."""
    planned = plan.schedule.period_ms / 1000
    patience = max(MIN_PATIENCE_S, MISSES * planned)
    with DeviceListener(broker, site=plan.site, sensor=claim.sensor, patience=patience, note=note) as listener:
        period = listener.pace() or planned
        listener.patience = max(MIN_PATIENCE_S, MISSES * period)
        minutes = max(1.0, 2 * auditor.reports * period / 60)
        note(f"a reading every {period:g} s: about {minutes:,.0f} min in all if it misses none")
        changed = files[1].exists()  # a resumed audit, with set-up 1
        recording = partial(Recording, listener, settle=2 * period + 0.5)
        with recording(files[0]) as zero, working("set-up 0", auditor.reports) as bar:
            if not changed:
                zero.take(max(0, auditor.reports - len(zero.values)), bar)
            first = np.array(zero.values[: auditor.reports], dtype=np.int64)
        if not changed:
            note("set-up 0 is recorded. Change to set-up 1 now, then press Enter")
            if not sys.stdin.readline():
                raise InputError("nobody pressed Enter after the change of the set-up: use --resume after changing it.")
        with recording(files[1]) as one:
            note(f"recording and auditing set-up 1: up to {counted(len(first), 'reading')}")
            result = auditor.audit(DeviceSource(first, one), claim.epsilon, claim.delta)
            second, missing = np.array(one.values, dtype=np.int64), zero.missing + one.missing
    return result, claim.subject(result, (first, second), missing=missing)


def _files(folder: Path, *, continued: bool) -> list[Path]:
    """The files of the recordings, in a folder that exists and can be written to."""
    files = [folder / "setup-0.csv", folder / "setup-1.csv"]
    there = [number for number, file in enumerate(files) if file.exists()]
    if there and not continued:
        raise InputError(
            f"{files[there[0]]} exists already: give another folder with --out, or --resume to continue an "
            "interrupted audit. To audit complete recordings, use cloakwork audit readings.",
            path=str(files[there[0]]),
        )
    if there == [1]:
        raise InputError(
            f"{files[1]} is there, but {files[0]} is not: bring it back, or give another folder with --out."
        )
    if there:
        note(f"continuing the recordings in {folder}: the device must be in set-up {there[-1]} now")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"--out {folder}: the folder cannot be made ({problem.strerror}).") from None
    refuse_unwritable("--out", files[0])
    return files


def _announce(claim: DeviceClaim, auditor: Auditor) -> None:
    """Say what is tested, and how many readings a fault takes."""
    apart = "" if claim.truth else f", for set-ups that differ by at most {claim.shown(claim.shift)},"
    note(f"one report of this sensor promises{apart} epsilon {claim.epsilon:.4g} at delta {claim.delta:.4g}")
    needed = max(min(ANNOUNCED, auditor.reports), claim.reports_needed(HALF_NOISE, confidence=auditor.confidence))
    fault = "a device with twice that epsilon" if claim.truth else "noise half as large as planned"
    shows = f"in about {float(f'{needed:.1e}'):,.0f} readings" if math.isfinite(needed) else "never at this epsilon"
    note(f"{fault} shows {shows}")
    if needed > auditor.reports:
        strong = claim.shown(float(f"{STRONG_SHIFT * claim.sigma:.3g}"), 3)
        more = f", or feed it readings as far apart as {strong} and say so with --shift" if not claim.truth else ""
        note(f"{auditor.reports:,} are hardly enough: give more --reports{more}")
