"""Commands of several words: `keys`, `token` and `audit`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cloakwork.cli.arguments import (
    DEFAULT_STORE,
    Authority,
    Json,
    KeyFile,
    KeySensor,
    PlanFile,
    SiteFile,
    StoreUrl,
)

keys = typer.Typer(
    help="Make and look after the keys that take the noise off again. For the trusted party.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
token = typer.Typer(
    help="Say who may use a collector: make, list and revoke tokens.", no_args_is_help=True, rich_markup_mode=None
)
audit = typer.Typer(
    help="Check a privacy claim from outside: of a program, of two recordings, of a device on the bench.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@keys.command("new")
def keys_new(
    site: SiteFile, out: Annotated[Path, typer.Option("--out", help="File of keys to write.")] = Path("keys.json")
) -> None:
    """Make the keys of a site."""
    from cloakwork.cli.keys import run_new

    run_new(site, out=out)


@keys.command("list")
def keys_list(file: KeyFile, json: Json = False) -> None:
    """Say which devices were provisioned, and how they stand. Never shows a key."""
    from cloakwork.cli.keys import run_list

    run_list(file, json=json)


@keys.command("export")
def keys_export(
    file: KeyFile,
    sensor: KeySensor,
    out: Annotated[Path, typer.Option("--out", help="File to write.")],
) -> None:
    """Write what unveils one sensor, and no other."""
    from cloakwork.cli.keys import run_export

    run_export(file, sensor, out=out)


@keys.command("rotate")
def keys_rotate(file: KeyFile) -> None:
    """Make a new master for every device that is provisioned from now on."""
    from cloakwork.cli.keys import run_rotate

    run_rotate(file)


@keys.command("revoke")
def keys_revoke(file: KeyFile, sensor: KeySensor) -> None:
    """Say that a device is lost or stolen: what it sends from now on is not unveiled."""
    from cloakwork.cli.keys import run_revoke

    run_revoke(file, sensor)


class RoleName(StrEnum):
    """Who a token is for."""

    DEVICE = "device"
    ANALYST = "analyst"
    OPERATOR = "operator"


@token.command("new")
def token_new(
    role: Annotated[RoleName, typer.Option(help="What it may do.")],
    site: Annotated[str | None, typer.Option(help="For this site only.")] = None,
    sensor: Annotated[str | None, typer.Option("--id", help="Id of the sensor that a device is.")] = None,
    label: Annotated[str, typer.Option(help="Whose it is, for the list.")] = "",
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Make a token and print it, once."""
    from cloakwork.cli.token import run_new
    from cloakwork.collect.records import Role

    run_new(store, role=Role(role), site=site, sensor=sensor, label=label)


@token.command("list")
def token_list(store: StoreUrl = DEFAULT_STORE, json: Json = False) -> None:
    """Say which tokens there are. Never shows a secret."""
    from cloakwork.cli.token import run_list

    run_list(store, json=json)


@token.command("revoke")
def token_revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="Which token, as the list calls it.")],
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Make a token useless from now on."""
    from cloakwork.cli.token import run_revoke

    run_revoke(store, token_id)


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
    from cloakwork.auditing.sources import Form
    from cloakwork.cli.audit import Wanted, run_command

    wanted = Wanted(reports=reports, confidence=confidence, html=html, seed=seed, json=json)
    told = None if form is None else Form(form)
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
    from cloakwork.auditing.sources import Form
    from cloakwork.cli.audit import Wanted, run_readings

    wanted = Wanted(reports=reports, confidence=confidence, html=html, seed=seed, json=json)
    told = None if form is None else Form(form)
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
