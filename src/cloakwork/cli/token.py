"""`cloakwork token`."""

from dataclasses import asdict

from cloakwork.cli.moments import shown
from cloakwork.cli.output import as_json, note, out, say, table
from cloakwork.collect.records import Role
from cloakwork.collect.store import open_store
from cloakwork.errors import InputError

MAY = {
    Role.DEVICE: "send the readings of its own sensor, and nothing else",
    Role.ANALYST: "read noisy readings and results",
    Role.OPERATOR: "read and do everything, tokens and erasure too",
}


def run_new(store: str, *, role: Role, site: str | None, sensor: str | None, label: str) -> None:
    """Make a token; its secret is all that goes to standard output."""
    if role is Role.DEVICE and (site is None or sensor is None):
        raise InputError("--role device: say whose token it is, with --site and --id.")
    if role is not Role.DEVICE and sensor is not None:
        raise InputError(f"--role {role}: --id is for the token of a device.")
    with open_store(store) as opened:
        known = opened.sites()
        if not known and not opened.tokens():
            note(f"{opened.name} is a new store: the collector must be given the same one")
        elif site is not None and known and site not in known:
            note(f"the store has nothing of {site} so far, only of {', '.join(known)}: check that the name is right")
        made = opened.new_token(role, site, sensor, label)
        name = opened.name
    where = "" if site is None else f" of {site}" if sensor is None else f" of {sensor} at {site}"
    kind = f"a{'' if role is Role.DEVICE else 'n'} {role}{where}"
    note(f"token {made.token.id} for {kind}, in the store {name}: it may {MAY[role]}.")
    note("Keep it like a password: it is shown only now, the store has a hash of it.")
    out.out(made.secret, highlight=False)


def run_list(store: str, *, json: bool) -> None:
    """Say which tokens there are; never shows a secret."""
    with open_store(store, make=False) as opened:
        tokens = opened.tokens()
    if json:
        as_json({"tokens": [asdict(token) | {"role": str(token.role)} for token in tokens]})
        return
    if not tokens:
        say("no tokens yet; make one with: cloakwork token new --role operator")
        return
    rows = [
        (
            token.id,
            str(token.role),
            token.site or "all sites",
            token.sensor or "",
            shown(token.made)[:10],
            "works" if token.revoked is None else f"revoked {shown(token.revoked)[:10]}",
            token.label,
        )
        for token in tokens
    ]
    table("Tokens", ("id", "role", "site", "sensor", "made", "state", "label"), rows)


def run_revoke(store: str, token: str) -> None:
    """Make a token useless."""
    with open_store(store, make=False) as opened:
        if not opened.revoke_token(token):
            raise InputError(f"{token[:64]}: there is no such token. `cloakwork token list` has their ids.")
    note(f"revoked {token}; a running collector refuses it within a second")
