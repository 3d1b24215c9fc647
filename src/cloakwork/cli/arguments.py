"""Arguments and options that several commands share, each declared once."""

import re
from pathlib import Path
from typing import Annotated

import typer

from cloakwork.errors import InputError


def no_password(context: typer.Context, option: typer.CallbackParam, url: str | None) -> str | None:
    """Refuse a password on the command line, where a list of processes shows it; the environment may hold one."""
    source = context.get_parameter_source(option.name or "")
    if source is None or source.name != "COMMANDLINE" or url is None:
        return url
    if re.match(r"[\w+.-]+://[^:/]*:[^@]*@", url) or re.search(r"[?&]password=", url):
        raise InputError(
            f"{option.opts[0]}: do not put the password on the command line, where others can see it. Set the "
            f"environment variable PGPASSWORD{', or CLOAKWORK_STORE to the whole address' if option.envvar else ''}.",
            option=option.opts[0],
        )
    return url


SiteFile = Annotated[Path, typer.Argument(metavar="SITE", help="The site file.")]
PlanFile = Annotated[
    Path | None, typer.Option("--plan", help="The frozen plan; by default the one beside the site file, if any.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
BrokerUrl = Annotated[str, typer.Option(help="Broker to send to: mqtt://host, or mqtts://user@host:8883 with TLS.")]
PasswordFile = Annotated[Path | None, typer.Option(help="File that holds the broker password.")]
Authority = Annotated[Path | None, typer.Option(help="CA certificate of the broker, in PEM form.")]
KeyFile = Annotated[Path, typer.Argument(metavar="KEYS", help="The site's key file.")]
SensorId = Annotated[str, typer.Option("--id", help="Id of the sensor.")]
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
Since = Annotated[str | None, typer.Option(metavar="TIME", help="Start of the period: a date, an ISO time or Unix ms.")]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="End of the period, exclusive.")]
Scheduler = Annotated[
    str | None, typer.Option(metavar="URL", help="Work on a Dask cluster: its scheduler, tcp://HOST:8786.")
]
