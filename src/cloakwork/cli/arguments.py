"""Arguments and options that several commands have."""

import re
from pathlib import Path
from typing import Annotated

import typer

from cloakwork.errors import InputError


def no_password(context: typer.Context, option: typer.CallbackParam, given: str | None) -> str | None:
    """Refuse a password on the command line, where whoever lists processes sees it; the environment may have it."""
    source = context.get_parameter_source(option.name or "")
    if source is None or source.name != "COMMANDLINE" or given is None:
        return given
    if re.match(r"[\w+.-]+://[^:/]*:[^@]*@", given) or re.search(r"[?&]password=", given):
        raise InputError(
            f"{option.opts[0]}: leave the password out of the command line, where others can see it. Put it into the "
            f"environment variable PGPASSWORD{', or the whole address into CLOAKWORK_STORE' if option.envvar else ''}."
        )
    return given


SiteFile = Annotated[Path, typer.Argument(metavar="SITE", help="The site file.")]
PlanFile = Annotated[
    Path | None, typer.Option("--plan", help="The frozen plan; that beside the site file if there is one.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
BrokerUrl = Annotated[str, typer.Option(help="Where it sends: mqtt://host, or mqtts://user@host:8883 with TLS.")]
PasswordFile = Annotated[Path | None, typer.Option(help="File with the device's password at the broker.")]
Authority = Annotated[Path | None, typer.Option(help="Certificate that the broker's is signed with, in PEM form.")]
KeyFile = Annotated[Path, typer.Argument(metavar="KEYS", help="The site's file of keys.")]
KeySensor = Annotated[str, typer.Option("--id", help="Id of the sensor.")]
StoreUrl = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="CLOAKWORK_STORE",
        callback=no_password,
        help="The store: a file, or postgresql://USER@HOST/DATABASE.",
    ),
]
SiteName = Annotated[str, typer.Argument(metavar="SITE", help="The name of the site.")]
Since = Annotated[str | None, typer.Option(metavar="TIME", help="From when on: a date, an ISO time or Unix ms.")]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Until when.")]
DEFAULT_STORE = "cloakwork.db"
