"""`cloakwork erase`: remove what a collector has stored."""

import sys
from typing import Annotated

from cloakwork.cli.arguments import DEFAULT_STORE, ExistingStore, Since, SiteName, Until, option
from cloakwork.cli.output import counted, err, note
from cloakwork.cli.time_arguments import shown
from cloakwork.collect import open_store
from cloakwork.errors import InputError


def erase(
    site: SiteName,
    sensor: Annotated[str | None, option("Only readings of this sensor.", "--id")] = None,
    since: Since = None,
    until: Until = None,
    yes: Annotated[bool, option("Do not ask for confirmation.", "--yes")] = False,
    store: ExistingStore = DEFAULT_STORE,
) -> None:
    """Remove stored readings and the results of their frames."""
    if since is not None and until is not None and since >= until:
        raise InputError(f"--since {shown(since)} --until {shown(until)}: the period ends before it begins.")
    with open_store(store, make=False) as opened:
        known = opened.sites()
        if site not in known:
            raise InputError(f"{site[:64]}: the store has nothing of it. It has: {', '.join(known) or 'no site'}.")
        what = f"everything stored{'' if sensor is None else f' of sensor {sensor}'} of {site}{_period(since, until)}"
        _confirm(what, sure=yes)
        erased = opened.erase(site, sensor, since, until)
        server = not opened.is_file
    counts = [counted(erased.readings, "reading"), counted(erased.results, "result"), counted(erased.reports, "report")]
    note(f"erased {', '.join(counts)} of {site}")
    if sensor is not None and not (erased.readings or erased.reports):
        note(f"nothing was stored of sensor {sensor[:64]} in this period: check the name")
    if erased.in_files:
        note(
            "The files of the store still hold what was erased: another program has it open. Close what reads it, a "
            "backup or a database browser, and run the same command again."
        )
    later = "; PostgreSQL forgets with its next vacuum" if server else ""
    note(f"Backups and exports still have what they had{later}.")


def _confirm(what: str, *, sure: bool) -> None:
    if sure:
        return
    if not (sys.stdin.isatty() and err.is_terminal):
        raise InputError(f"this erases {what}, for ever. If that is meant, say --yes.")
    if err.input(f"Erase {what}, for ever? Type yes: ").strip().lower() != "yes":
        raise InputError("nothing was erased.")


def _period(since: int | None, until: int | None) -> str:
    start = "" if since is None else f" from {shown(since)}"
    return start + ("" if until is None else f" until {shown(until)}")
