"""`cloakwork unveil`."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from cloakwork.cli.arguments import PlanFile, SiteFile
from cloakwork.cli.output import bar, counted, form_of, note, noting_interrupt, written
from cloakwork.errors import InputError
from cloakwork.keys import PRIVATE, TrueRows, Unveiling, load_unveiling_keys
from cloakwork.readings import READING_COLUMNS, ReadingScale, ReadingsFile, Row, table_writer
from cloakwork.site import Plan, load_plan, load_site, plan_beside

SHOWN = 8  # sensors that a message names


def unveil(
    site: SiteFile,
    readings: Annotated[Path, typer.Argument(help="Readings: a file of CSV, JSON Lines, Parquet or Arrow.")],
    keys: Annotated[Path, typer.Option("--keys", help="The site's keys, or the exported keys of one sensor.")],
    out: Annotated[Path, typer.Option("--out", help="File to write: .csv, .jsonl, .parquet or .arrow.")],
    plan: PlanFile = None,
) -> None:
    """Write the true readings of a file of noisy ones."""
    chosen = plan or plan_beside(site)
    loaded = load_site(site)
    found = _plan(site, loaded.name, chosen)
    held = load_unveiling_keys(keys)
    with bar("unveiling", 2 * ReadingsFile(readings, ()).size) as progress:
        unveiling = Unveiling(readings, found, held, progress=progress)
        scale = ReadingScale.of(found, loaded.unit)
        scale = replace(scale, sigmas=dict.fromkeys(scale.sigmas, 0.0))
        with (
            noting_interrupt("stopped, nothing written. Long readings can be exported and unveiled in parts"),
            written(out, site, readings, keys, chosen, mode=PRIVATE) as file,
            table_writer(file, form_of(out), READING_COLUMNS, {"site": loaded.name, "true readings": True}) as write,
        ):
            for batch in unveiling:
                write(_rows(batch, scale))
    total = sum(unveiling.unveiled.values())
    sensors = counted(len(unveiling.unveiled), "sensor")
    note(f"wrote {counted(total, 'true reading')} of {sensors} to {out}, in steps of {_steps(found)}")
    note(f"{out} holds TRUE readings, without noise: nothing in it is protected. Keep it secret.")
    for line in _remarks(unveiling):
        note(line)


def _plan(site: Path, name: str, chosen: Path) -> Plan:
    """The plan of the readings, which may be older than the site file."""
    found = load_plan(chosen)
    if found.site != name:
        raise InputError(
            f"{chosen} is a plan of {found.site}, and {site} is {name}. Give a plan of {name} with --plan."
        )
    return found


def _steps(plan: Plan) -> str:
    """The step of the sensors of a plan, in the unit of the readings."""
    low, high = min(s.step for s in plan.sensors), max(s.step for s in plan.sensors)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}, depending on the sensor (see step in the plan)"


def _rows(batch: TrueRows, scale: ReadingScale) -> list[Row]:
    """True readings as a file has them: without noise."""
    columns = (batch.time.tolist(), batch.sensor, batch.seq.tolist(), batch.value.tolist())
    return [scale.row(*row) for row in zip(*columns, strict=True)]


def _remarks(unveiling: Unveiling) -> Iterator[str]:
    if unveiling.problems.total:
        reasons = "; ".join(f"{number:,} {reason}" for reason, number in unveiling.problems.counts.most_common())
        yield f"{unveiling.problems.total:,} of {unveiling.rows:,} rows left out: {reasons}"
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
