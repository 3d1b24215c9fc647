"""`cloakwork unveil`."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cloakwork.cli.arguments import KEYS, TABLES, PlanFile, PlannedSite, argument, option, reads, writes
from cloakwork.cli.files import form_of, written
from cloakwork.cli.output import counted, left_out, note, working
from cloakwork.errors import InputError
from cloakwork.keys import PRIVATE, Unveiling, load_keys
from cloakwork.readings import READING_COLUMNS, ReadingScale, table_writer
from cloakwork.site import load_any_plan, load_any_site, plan_beside

SHOWN = 8  # sensors that a message names


def unveil(
    site: PlannedSite,
    readings: Annotated[Path, argument("Readings: a file of CSV, JSON Lines, Parquet or Arrow.", callback=reads())],
    keys: Annotated[
        Path, option("The site's keys, or the exported keys of one sensor.", "--keys", callback=reads(KEYS))
    ],
    out: Annotated[Path, option("File to write: .csv, .jsonl, .parquet or .arrow.", "--out", callback=writes(*TABLES))],
    plan: PlanFile = None,
) -> None:
    """Write the true readings of a file of noisy ones."""
    chosen = plan or plan_beside(site)
    loaded = load_any_site(site)
    found = load_any_plan(chosen)  # which may be older than the site file
    if found.site != loaded.name:
        named = f"{chosen} is a plan of {found.site}, and {site} is {loaded.name}"
        raise InputError(f"{named}. Give a plan of {loaded.name} with --plan.")
    scale = ReadingScale.of(found, loaded.unit)
    scale = replace(scale, sigmas=dict.fromkeys(scale.sigmas, 0.0))
    with working("unveiling", stopped="stopped, nothing written") as progress:
        unveiling = Unveiling(readings, found, load_keys(keys, exported=True), progress=progress)
        with (
            written(out, mode=PRIVATE) as file,
            table_writer(file, form_of(out), READING_COLUMNS, {"site": loaded.name, "true readings": True}) as write,
        ):
            for batch in unveiling:
                columns = (batch.time.tolist(), batch.sensor, batch.seq.tolist(), batch.value.tolist())
                write([scale.row(*row) for row in zip(*columns, strict=True)])
    number, sensors = counted(unveiling.unveiled.total(), "true reading"), counted(len(unveiling.unveiled), "sensor")
    note(f"wrote {number} of {sensors} to {out}")
    note(f"{out} holds TRUE readings, without noise: nothing in it is protected. Keep it secret.")
    for line in _remarks(unveiling):
        note(line)


def _remarks(unveiling: Unveiling) -> Iterator[str]:
    yield from left_out(unveiling.problems.counts, unveiling.rows)
    if unveiling.alarms:
        yield (
            f"warning: sequence numbers of {_named(unveiling.alarms)} have two values: noise was used twice, or "
            "someone else sends in the sensor's name. Neither is unveiled. Provision these again, with new "
            "broker passwords."
        )
    verdict = unveiling.verdict()
    if verdict.wrong:
        yield (
            f"warning: the keys of {_named(verdict.wrong)} seem wrong: they did not remove the noise in the readings, "
            "so these rows are worthless. Check --keys, and that the devices were provisioned with them."
        )
    if verdict.some_wrong:
        yield (
            f"warning: some keys of {_named(verdict.some_wrong)} seem wrong: taken together, they did not remove the "
            "noise in the readings. Check --keys, and that the devices were provisioned with them."
        )
    if verdict.unsure:
        yield (
            f"caution: nothing shows that the keys of {_named(verdict.unsure)} are right: there are too few readings, "
            "or they vary far more than the noise, or the keys are wrong. Unveil more readings at once to find out."
        )


def _named(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return ", ".join(listed[:SHOWN]) + more
