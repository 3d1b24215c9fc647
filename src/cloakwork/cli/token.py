"""`cloakwork token`."""

from typing import Annotated

import typer

from cloakwork.cli.arguments import DEFAULT_STORE, ExistingStore, Json, StoreUrl, argument, option
from cloakwork.cli.output import note, out, print_json
from cloakwork.cli.report import Table, show
from cloakwork.cli.time_arguments import shown
from cloakwork.collect import Role, open_store
from cloakwork.errors import InputError

token = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
MAY = {
    Role.DEVICE: "send the readings of its own sensor, and nothing else",
    Role.ANALYST: "read noisy readings and results",
    Role.OPERATOR: "read and do everything, tokens and erasure too",
}


@token.command()
def new(
    role: Annotated[Role, option("What its holder may do: device, analyst or operator.")],
    site: Annotated[str | None, option("Restrict it to one site.")] = None,
    sensor: Annotated[str | None, option("Id of the sensor, for a device token.", "--id")] = None,
    label: Annotated[str, option("A note on its holder, for the list.")] = "",
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Create a token and print it, once; standard output has nothing else."""
    if role is Role.DEVICE and (site is None or sensor is None):
        raise InputError("--role device: give --site and --id of the device.")
    if role is not Role.DEVICE and sensor is not None:
        raise InputError(f"--role {role}: --id is for device tokens only.")
    with open_store(store) as opened:
        known = opened.sites()
        if not known and not opened.tokens.list_all():
            note(f"{opened.name} has no readings and no tokens yet. If the collector has, it uses another store")
        elif site is not None and known and site not in known:
            note(f"the store has no data of {site} yet, only of {', '.join(known)}: check the name")
        made = opened.tokens.create(role, site, sensor, label)
        name = opened.name
    where = "" if site is None else f" of {site}" if sensor is None else f" of {sensor} at {site}"
    kind = f"a{'' if role is Role.DEVICE else 'n'} {role}{where}"
    note(f"token {made.token.id} for {kind}, in the store {name}: it may {MAY[role]}.")
    note("Keep it like a password: it is shown only once, and the store has only its hash.")
    out.out(made.secret, highlight=False)


@token.command("list")
def list_tokens(store: ExistingStore = DEFAULT_STORE, json: Json = False) -> None:
    """List the tokens, without their secrets."""
    with open_store(store, make=False) as opened:
        tokens = opened.tokens.list_all()
    if json:
        print_json({"tokens": tokens})
        return
    if not tokens:
        show("no tokens yet; create one with: cloakwork token new --role operator")
        return
    rows = [
        (
            each.id,
            str(each.role),
            each.site or "all sites",
            each.sensor or "",
            shown(each.made)[:10],
            "works" if each.revoked is None else f"revoked {shown(each.revoked)[:10]}",
            each.label,
        )
        for each in tokens
    ]
    show("Tokens", Table.of(("id", "role", "site", "sensor", "made", "state", "label"), rows))


@token.command()
def revoke(
    token_id: Annotated[str, argument("Id of the token, as listed.", metavar="ID")],
    store: ExistingStore = DEFAULT_STORE,
) -> None:
    """Revoke a token; a running collector refuses it at once."""
    with open_store(store, make=False) as opened:
        if not opened.tokens.revoke(token_id):
            raise InputError(f"{token_id[:64]}: there is no such token. `cloakwork token list` has their ids.")
    note(f"revoked {token_id}: a running collector refuses it from now on, and ends its streams within seconds")
