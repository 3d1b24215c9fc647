"""`cloakwork audit command | readings | mqtt`."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from cloakwork.auditing import (
    FEWEST_REPORTS,
    Audit,
    AuditReport,
    ProgramSource,
    Subject,
    Verdict,
)
from cloakwork.auditing import audit as run_audit
from cloakwork.cli.arguments import RARE, Authority, Json, PasswordFile, PlanFile, SiteFile, reads
from cloakwork.cli.output import as_json, counted, is_special, note, refuse_unwritable, say, working, written
from cloakwork.errors import InputError
from cloakwork.readings import ReportForm, ReportReader, printable, read_recordings

VIOLATION, WITHHELD = 3, 4
CONFIDENCE = 0.95
_IDENTICAL = (
    "The two recordings are identical, report by report: one is a copy of the other, or the same noise was used for "
    "both. Give two that were made one after the other."
)
audit = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Epsilon = Annotated[float, typer.Option(min=0.0, help="The claimed epsilon.")]
Delta = Annotated[float, typer.Option(min=0.0, help="The claimed delta, below 1.")]
Reports = Annotated[int, typer.Option(min=1, metavar="N", help="The most reports to take with each input.")]
Confidence = Annotated[float, typer.Option(help="Confidence of a violation, such as 0.95.", rich_help_panel=RARE)]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the report as an HTML page.")]
Seed = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="Make the auditor's own choices reproducible.", rich_help_panel=RARE),
]
As = Annotated[
    ReportForm | None, typer.Option("--as", help="How reports are read; inferred by default.", rich_help_panel=RARE)
]


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """The options of all audits: how many reports, how sure, and what to write."""

    reports: int
    confidence: float
    html: Path | None
    seed: int | None
    json: bool


@audit.command("command")
def command(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help="Prints one report a line; gets 0 or 1 appended.")],
    epsilon: Epsilon,
    delta: Delta = 0.0,
    reports: Reports = 500_000,
    confidence: Confidence = CONFIDENCE,
    form: As = None,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="How long to wait for a line.")] = 30.0,
    html: Html = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Audit a program that prints reports for each of two inputs."""
    options = AuditOptions(reports=reports, confidence=confidence, html=html, seed=seed, json=json)
    refuse_page(options)
    with ProgramSource(program, form=form, timeout=timeout) as source:
        result = audited(source, epsilon, delta, options, reports)
    subject = Subject(
        name=f'The program "{printable(program)}"',
        notes=_words_seen(source.reader),
        limits=("Anything about runs with other inputs, other settings, or on another day.",),
    )
    finish(result, subject, options)


@audit.command("readings")
def readings(
    first: Annotated[Path, typer.Argument(metavar="A.csv", help="Recorded with one set-up.", callback=reads())],
    second: Annotated[Path, typer.Argument(metavar="B.csv", help="Recorded with the other.", callback=reads())],
    epsilon: Epsilon,
    delta: Delta = 0.0,
    columns: Annotated[
        list[str] | None, typer.Option("--column", metavar="NAME", help="Column of the report; repeat it for a row.")
    ] = None,
    sensor: Annotated[str | None, typer.Option("--sensor", metavar="ID", help="Which sensor, of several.")] = None,
    reports: Reports = 500_000,
    confidence: Confidence = CONFIDENCE,
    form: As = None,
    html: Html = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Audit two recordings, one made with each of two set-ups.

    Prefer recordings of a working device: firmware can tell a device for audits, and add noise only there.
    """
    options = AuditOptions(reports=reports, confidence=confidence, html=html, seed=seed, json=json)
    refuse_page(options, first, second)
    with working("reading") as progress:
        recorded = read_recordings(
            (first, second),
            columns=columns or [],
            sensor=sensor,
            form=form,
            most=reports,
            progress=progress,
        )
    lengths, used = recorded.lengths, recorded.ceiling
    if used < FEWEST_REPORTS:
        raise InputError(
            f"{counted(used, 'report')} in the shorter recording: an audit needs at least {FEWEST_REPORTS} in each.",
            reports=used,
        )
    if lengths[0] != lengths[1]:
        note(f"{lengths[0]:,} and {lengths[1]:,} reports: the first {used:,} of each are used")
    result = audited(recorded, epsilon, delta, options, used)
    names = [printable(path.name) for path in (first, second)]
    subject = Subject(
        name=f"The device behind the recordings {names[0]} and {names[1]}",
        inputs=(f"the set-up of {names[0]}", f"the set-up of {names[1]}"),
        notes=_words_seen(recorded.reader),
        limits=(
            "That the recordings are genuine: made by this device, one with each set-up, nothing left out, and with "
            "set-ups no further apart than the claim covers.",
        ),
        cautions=(_IDENTICAL,) if recorded.identical and _vary(recorded.reports[0]) else (),
    )
    finish(result, subject, options)


@audit.command("mqtt")
def mqtt(
    site: SiteFile,
    sensor: Annotated[str, typer.Option("--id", help="Which sensor of the site; provisioned with --bench.")],
    broker: Annotated[str, typer.Option(help="Where it sends: mqtt://host, or mqtts://user@host with TLS.")],
    password_file: PasswordFile = None,
    ca: Authority = None,
    plan: PlanFile = None,
    shift: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="How far the true readings differ; by default what the site hides.", rich_help_panel=RARE
        ),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(min=0.0, help="At which epsilon to test the plan's noise.", rich_help_panel=RARE)
    ] = None,
    reports: Reports = 2_000,
    confidence: Confidence = CONFIDENCE,
    between: Annotated[
        str | None, typer.Option(metavar="PROGRAM", help="Changes the set-up; by default a person is asked to.")
    ] = None,
    settle: Annotated[
        float | None, typer.Option(min=0.0, metavar="SECONDS", help="Pause before each set-up.", rich_help_panel=RARE)
    ] = None,
    patience: Annotated[
        float | None,
        typer.Option(min=1.0, metavar="SECONDS", help="Give up after so long without a reading.", rich_help_panel=RARE),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FOLDER", help="Folder for the recordings.")] = None,
    continued: Annotated[bool, typer.Option("--resume", help="Continue the recordings in that folder.")] = False,
    html: Html = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Audit a test device: record it with one set-up of sources, then with the other.

    Firmware can tell that this is an audit, and add noise only then: prefer "readings" of a working device.
    """
    from cloakwork.cli.audit_mqtt import DeviceOptions, run_mqtt  # noqa: PLC0415 - it shares what is below

    options = AuditOptions(reports=reports, confidence=confidence, html=html, seed=seed, json=json)
    device = DeviceOptions(
        sensor=sensor,
        broker=broker,
        password_file=password_file,
        ca=ca,
        plan=plan,
        shift=shift,
        epsilon=epsilon,
        between=between,
        settle=settle,
        patience=patience,
        out=out,
        continued=continued,
    )
    run_mqtt(site, device, options)


def audited(mechanism: Callable[..., Any], epsilon: float, delta: float, options: AuditOptions, reports: int) -> Audit:
    """Audit with a progress bar; an interrupted audit reports how far it came."""
    seen = 0
    with working("auditing", reports) as show:

        def progress(done: int, _: int) -> None:
            nonlocal seen
            seen = done
            show(done)

        try:
            return run_audit(
                mechanism,
                epsilon=epsilon,
                delta=delta,
                reports=reports,
                confidence=options.confidence,
                rng=np.random.default_rng(options.seed),
                progress=progress,
            )
        except KeyboardInterrupt:
            note(f"stopped after {seen:,} of up to {reports:,} reports with each input, without a verdict")
            raise


def refuse_page(options: AuditOptions, *inputs: Path) -> None:
    """Refuse, before anything is drawn, a page that cannot be written or would replace an input."""
    if options.html is not None:
        refuse_unwritable("--html", options.html, *inputs)
        if options.html.suffix.lower() not in {".html", ".htm"} and not is_special(options.html):
            raise InputError(f"--html {options.html}: a page is an .html file.", path=str(options.html))


def finish(result: Audit, subject: Subject, options: AuditOptions) -> None:
    """Print and write the report; the exit code carries the verdict."""
    report = AuditReport(audit=result, subject=subject, made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    if options.json:
        as_json(report.to_json())
    else:
        say(report)
    if options.html is not None:
        _write_page(report, options.html)
    code = {Verdict.VIOLATION: VIOLATION, Verdict.WITHHELD: WITHHELD}.get(result.verdict, 0)
    if code:
        raise typer.Exit(code)


def _vary(reports: NDArray[Any]) -> bool:
    return len(set(map(repr, reports.tolist()))) > 1


def _words_seen(reader: ReportReader) -> tuple[str, ...]:
    if not reader.words:
        return ()
    shown = ", ".join(f'"{word}"' for word in reader.words[:5])
    return (f"Among the numbers there were words, each an outcome of its own: {shown}.",)


def _write_page(report: AuditReport, path: Path) -> None:
    try:
        with written(path) as file:
            file.write(report.to_html())
    except OSError as problem:  # it names the temporary file that is written first
        raise OSError(problem.errno, problem.strerror, str(path)) from None
    note(f"wrote {path}")
