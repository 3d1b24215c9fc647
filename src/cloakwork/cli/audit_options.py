"""What all audits share: their options, the run with its progress, and the report."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from cloakwork.auditing import Audit, AuditReport, Subject, Verdict
from cloakwork.auditing import audit as run_audit
from cloakwork.cli.arguments import RARE, option
from cloakwork.cli.output import is_special, note, print_json, refuse_unwritable, say, working, written
from cloakwork.errors import InputError

VIOLATION, WITHHELD = 3, 4
CONFIDENCE = 0.95

Reports = Annotated[int, option("The most reports to take with each input.", min=1, metavar="N")]
Confidence = Annotated[float, option("Confidence of a violation, such as 0.95.", panel=RARE)]
Html = Annotated[Path | None, option("Write the report as an HTML page.", "--html", metavar="FILE")]
Seed = Annotated[int | None, option("Make the auditor's own choices reproducible.", metavar="N", min=0, panel=RARE)]


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """The options of all audits: how many reports, how sure, and what to write."""

    reports: int
    confidence: float
    html: Path | None
    seed: int | None
    json: bool


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
        print_json(report.to_json())
    else:
        say(report)
    if options.html is not None:
        _write_page(report, options.html)
    code = {Verdict.VIOLATION: VIOLATION, Verdict.WITHHELD: WITHHELD}.get(result.verdict, 0)
    if code:
        raise typer.Exit(code)


def _write_page(report: AuditReport, path: Path) -> None:
    try:
        with written(path) as file:
            file.write(report.to_html())
    except OSError as problem:  # it names the temporary file that is written first
        raise OSError(problem.errno, problem.strerror, str(path)) from None
    note(f"wrote {path}")
