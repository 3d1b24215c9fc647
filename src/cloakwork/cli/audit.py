"""`cloakwork audit command` and `cloakwork audit readings`, and what all audits share."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import typer

from cloakwork.auditing import Audit, ProgramSource, Verdict, audit
from cloakwork.auditing.audit_report import AuditReport, Subject
from cloakwork.auditing.bench_claim import FEWEST
from cloakwork.cli.output import (
    as_json,
    bar,
    counted,
    is_special,
    note,
    refuse_input,
    refuse_unwritable,
    say,
    written,
)
from cloakwork.errors import InputError
from cloakwork.readings import ReportForm, ReportReader, printable, read_recordings

VIOLATION, WITHHELD = 3, 4
_IDENTICAL = (
    "The two recordings are identical, report by report: one is a copy of the other, or the same noise was used for "
    "both. Give two that were made one after the other."
)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What all audits are told: how many reports, how sure, and what to write."""

    reports: int
    confidence: float
    html: Path | None
    seed: int | None
    json: bool

    @property
    def rng(self) -> np.random.Generator:
        """For the auditor's own choices."""
        return np.random.default_rng(self.seed)


def run_command(
    command: str, *, epsilon: float, delta: float, form: ReportForm | None, timeout: float, wanted: Wanted
) -> None:
    """Audit a program that prints reports."""
    refuse_page(wanted)
    with ProgramSource(command, form=form, timeout=timeout) as source:
        found = audited(source, epsilon, delta, wanted, wanted.reports)
        reader = source.reader
    subject = Subject(
        name=f'The program "{printable(command)}"',
        notes=_seen(reader),
        limits=("Anything about runs with other inputs, other settings, or on another day.",),
    )
    finish(found, subject, wanted)


def run_readings(
    first: Path,
    second: Path,
    *,
    epsilon: float,
    delta: float,
    columns: list[str],
    sensor: str | None,
    form: ReportForm | None,
    wanted: Wanted,
) -> None:
    """Audit two recordings."""
    refuse_page(wanted, first, second)
    with bar("reading", 100) as show:
        recorded = read_recordings(
            (first, second),
            columns=columns,
            sensor=sensor,
            form=form,
            most=wanted.reports,
            progress=lambda done, total: show(100 * done // total),
        )
    lengths, used = recorded.lengths, recorded.ceiling
    if used < FEWEST:
        raise InputError(
            f"{counted(used, 'report')} in the shorter recording: an audit needs at least {FEWEST} in each."
        )
    if lengths[0] != lengths[1]:
        note(f"{lengths[0]:,} and {lengths[1]:,} reports: the first {used:,} of each are used")
    found = audited(recorded, epsilon, delta, wanted, used)
    names = [printable(path.name) for path in (first, second)]
    subject = Subject(
        name=f"The device behind the recordings {names[0]} and {names[1]}",
        inputs=(f"the set-up of {names[0]}", f"the set-up of {names[1]}"),
        notes=_seen(recorded.reader),
        limits=(
            "That the recordings are what they are said to be: made by this device, one with each set-up, nothing "
            "left out, and with set-ups no further apart than the claim covers.",
        ),
        cautions=(_IDENTICAL,) if recorded.identical and not found.only else (),
    )
    finish(found, subject, wanted)


def audited(mechanism: Callable[..., Any], epsilon: float, delta: float, wanted: Wanted, reports: int) -> Audit:
    """Audit with a bar that shows how far it is, or say how far it was when it is stopped."""
    seen = 0
    with bar("auditing", reports) as show:

        def progress(done: int, _: int) -> None:
            nonlocal seen
            seen = done
            show(done)

        try:
            return audit(
                mechanism,
                epsilon=epsilon,
                delta=delta,
                reports=reports,
                confidence=wanted.confidence,
                rng=wanted.rng,
                progress=progress,
            )
        except KeyboardInterrupt:
            note(f"stopped after {seen:,} of up to {reports:,} reports with each input, which had not decided it")
            raise


def _seen(reader: ReportReader) -> tuple[str, ...]:
    if not reader.words:
        return ()
    shown = ", ".join(f'"{word}"' for word in reader.words[:5])
    return (f"Among the numbers there were words, each an outcome of its own: {shown}.",)


def refuse_page(wanted: Wanted, *inputs: Path) -> None:
    """Refuse, before anything is drawn, a page that cannot be written, or only over a file that is read."""
    if wanted.html is not None:
        refuse_input(wanted.html, *inputs)
        refuse_unwritable("--html", wanted.html)
        if wanted.html.suffix.lower() not in {".html", ".htm"} and not is_special(wanted.html):
            raise InputError(f"--html {wanted.html}: a page is an .html file.", path=str(wanted.html))


def finish(found: Audit, subject: Subject, wanted: Wanted) -> None:
    """Print and write what was found; the exit code says it as well."""
    report = AuditReport(audit=found, subject=subject, made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    if wanted.json:
        as_json(report.to_json())
    else:
        say(report)
    if wanted.html is not None:
        _write_page(report, wanted.html)
    code = {Verdict.VIOLATION: VIOLATION, Verdict.WITHHELD: WITHHELD}.get(report.audit.verdict, 0)
    if code:
        raise typer.Exit(code)


def _write_page(report: AuditReport, path: Path) -> None:
    try:
        with written(path) as file:
            file.write(report.to_html())
    except OSError as problem:  # it would name the file that is written first, which nobody has heard of
        raise OSError(problem.errno, problem.strerror, str(path)) from None
    note(f"wrote {path}")
