"""`cloakwork audit command | readings | mqtt`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from numpy.typing import NDArray

from cloakwork.auditing import FEWEST_REPORTS, ProgramSource, ReportReader, Subject, printable, read_recordings
from cloakwork.cli.arguments import Json, argument, option, reads
from cloakwork.cli.audit_mqtt import mqtt
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
from cloakwork.cli.output import counted, note, working
from cloakwork.errors import InputError

_IDENTICAL = (
    "The two recordings are identical, report by report: one is a copy of the other, or the same noise was used for "
    "both. Give two that were made one after the other."
)
audit = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
audit.command("mqtt")(mqtt)

Epsilon = Annotated[float, option("The claimed epsilon.", min=0.0)]
Delta = Annotated[float, option("The claimed delta, below 1.", min=0.0)]


@audit.command("command")
def command(
    program: Annotated[str, argument("Prints one report a line; gets 0 or 1 appended.", metavar="PROGRAM")],
    epsilon: Epsilon,
    delta: Delta = 0.0,
    reports: Reports = 500_000,
    confidence: Confidence = CONFIDENCE,
    timeout: Annotated[float, option("How long to wait for a line.", metavar="SECONDS")] = 30.0,
    html: Html = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Audit a program that prints reports for each of two inputs."""
    options = AuditOptions(reports=reports, confidence=confidence, html=html, seed=seed, json=json)
    refuse_page(options)
    with ProgramSource(program, timeout=timeout) as source:
        result = audited(source, epsilon, delta, options, reports)
    subject = Subject(
        name=f'The program "{printable(program)}"',
        notes=_words_seen(source.reader),
        limits=("Anything about runs with other inputs, other settings, or on another day.",),
    )
    finish(result, subject, options)


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
    confidence: Confidence = CONFIDENCE,
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


def _vary(reports: NDArray[Any]) -> bool:
    return len(set(map(repr, reports.tolist()))) > 1


def _words_seen(reader: ReportReader) -> tuple[str, ...]:
    if not reader.words:
        return ()
    shown = ", ".join(f'"{word}"' for word in reader.words[:5])
    return (f"Among the numbers there were words, each an outcome of its own: {shown}.",)
