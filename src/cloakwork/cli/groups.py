"""The options of `cloakwork audit`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cloakwork.cli.arguments import (
    Authority,
    Json,
    PlanFile,
    SiteFile,
)

audit = typer.Typer(
    help="Check a privacy claim from outside: of a program, of two recordings, of a device on the bench.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class FormName(StrEnum):
    """What each report is taken for."""

    WHOLE = "whole"
    NUMBERS = "numbers"
    WORDS = "words"


Epsilon = Annotated[float, typer.Option(min=0.0, help="The claimed epsilon.")]
Delta = Annotated[float, typer.Option(min=0.0, help="The claimed delta, below 1.")]
Reports = Annotated[int, typer.Option(min=1, metavar="N", help="The most reports to take with each input.")]
Confidence = Annotated[float, typer.Option(help="How sure a violation shall be, such as 0.95.")]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Page for people to write.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Make the auditor's own choices reproducible.")]
As = Annotated[
    FormName | None, typer.Option("--as", help="What reports are taken for; decided by themselves if left out.")
]


@audit.command("command")
def audit_command(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help="Prints a report a line; told 0 or 1 at the end.")],
    epsilon: Epsilon,
    delta: Delta = 0.0,
    reports: Reports = 500_000,
    confidence: Confidence = 0.95,
    form: As = None,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="How long it may take for a line.")] = 30.0,
    html: Html = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Audit a program that prints reports for each of two inputs."""
    from cloakwork.cli.audit import Wanted, run_command
    from cloakwork.readings import ReportForm

    wanted = Wanted(reports=reports, confidence=confidence, html=html, seed=seed, json=json)
    told = None if form is None else ReportForm(form)
    run_command(program, epsilon=epsilon, delta=delta, form=told, timeout=timeout, wanted=wanted)


@audit.command("readings")
def audit_readings(
    first: Annotated[Path, typer.Argument(metavar="A.csv", help="Recorded with one set-up.")],
    second: Annotated[Path, typer.Argument(metavar="B.csv", help="Recorded with the other.")],
    epsilon: Epsilon,
    delta: Delta = 0.0,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="NAME", help="Column of the report; again for a row of them."),
    ] = None,
    sensor: Annotated[str | None, typer.Option("--sensor", metavar="ID", help="Whose readings, of several.")] = None,
    reports: Reports = 500_000,
    confidence: Confidence = 0.95,
    form: As = None,
    html: Html = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Audit two recordings, one made with each of two set-ups."""
    from cloakwork.cli.audit import Wanted, run_readings
    from cloakwork.readings import ReportForm

    wanted = Wanted(reports=reports, confidence=confidence, html=html, seed=seed, json=json)
    told = None if form is None else ReportForm(form)
    run_readings(
        first, second, epsilon=epsilon, delta=delta, columns=column or [], sensor=sensor, form=told, wanted=wanted
    )


@audit.command("mqtt")
def audit_mqtt(
    site: SiteFile,
    sensor: Annotated[str, typer.Option("--id", help="Which sensor of the site; provisioned with --bench.")],
    broker: Annotated[str, typer.Option(help="Where it sends: mqtt://host, or mqtts://user@host with TLS.")],
    password_file: Annotated[Path | None, typer.Option(help="File with our password at the broker.")] = None,
    ca: Authority = None,
    plan: PlanFile = None,
    shift: Annotated[
        float | None, typer.Option(min=0.0, help="How far the true readings differ; what the site hides if left out.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(min=0.0, help="At which epsilon to test the plan's noise.")] = None,
    reports: Reports = 2_000,
    confidence: Confidence = 0.95,
    between: Annotated[
        str | None, typer.Option(metavar="PROGRAM", help="Changes the set-up; else a person is asked to.")
    ] = None,
    settle: Annotated[float | None, typer.Option(min=0.0, metavar="SECONDS", help="Pause before each set-up.")] = None,
    patience: Annotated[
        float | None, typer.Option(min=1.0, metavar="SECONDS", help="Give up after so long without a reading.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FOLDER", help="Folder for the recordings.")] = None,
    html: Html = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Audit a device on the bench: one set-up of sources is recorded, then the other."""
    from cloakwork.cli.audit import Wanted
    from cloakwork.cli.audit_mqtt import BenchOptions, run_mqtt

    options = BenchOptions(
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
    )
    run_mqtt(site, options, wanted=Wanted(reports=reports, confidence=confidence, html=html, seed=seed, json=json))
