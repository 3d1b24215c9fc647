"""Commands of several words: `lab`, `keys` and `token`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cloakwork.cli.arguments import DEFAULT_STORE, Json, KeyFile, KeySensor, SiteFile, StoreUrl

lab = typer.Typer(
    help="Repeat the experiments: every number with its seed, as a table, JSON and a picture.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
keys = typer.Typer(
    help="Make and look after the keys that take the noise off again. For the trusted party.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
token = typer.Typer(
    help="Say who may use a collector: make, list and revoke tokens.", no_args_is_help=True, rich_markup_mode=None
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


@lab.command("list")
def lab_list(json: Json = False) -> None:
    """Say which experiments there are."""
    from cloakwork.cli.lab import run_list

    run_list(json=json)


@lab.command("run")
def lab_run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which experiment; `all` for all of them.")],
    quick: Annotated[bool, typer.Option("--quick", help="A small version, with rough numbers.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for NAME.json and NAME.png.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other draws.")] = 1,
    json: Json = False,
) -> None:
    """Run one experiment, or all, and print what was found."""
    from cloakwork.cli.lab import run_lab

    run_lab(name, quick=quick, out=out, seed=seed, json=json)


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
