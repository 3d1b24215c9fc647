"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

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
        "--store", envvar="CLOAKWORK_STORE", help="The store: a file, or postgresql://USER:PASSWORD@HOST/DATABASE."
    ),
]
SiteName = Annotated[str, typer.Argument(metavar="SITE", help="The name of the site.")]
Since = Annotated[str | None, typer.Option(metavar="TIME", help="From when on: a date, an ISO time or Unix ms.")]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Until when.")]
DEFAULT_STORE = "cloakwork.db"
