"""`cloakwork unveil`."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from cloakwork.cli.arguments import KEYS, PlanFile, SiteFile, reads
from cloakwork.cli.output import bar, counted, form_of, is_folder, left_out, mark_of, note, noting_interrupt, written
from cloakwork.errors import InputError, ReadingError
from cloakwork.keys import BATCH, PRIVATE, Evidence, TrueRows, Unveiling, load_keys
from cloakwork.readings import READING_COLUMNS, ReadingScale, ReadingsFile, table_writer
from cloakwork.site import BitPlan, Plan, load_any_plan, load_any_site, plan_beside

SHOWN = 8  # sensors that a message names
PART = 16 * BATCH  # readings in a file of a folder


def unveil(
    site: SiteFile,
    readings: Annotated[
        Path, typer.Argument(help="Readings: a file of CSV, JSON Lines, Parquet or Arrow.", callback=reads())
    ],
    keys: Annotated[
        Path, typer.Option("--keys", help="The site's keys, or the exported keys of one sensor.", callback=reads(KEYS))
    ],
    out: Annotated[
        Path,
        typer.Option("--out", help="File to write: .csv, .jsonl, .parquet or .arrow; or a folder for files in turn."),
    ],
    plan: PlanFile = None,
) -> None:
    """Write the true readings of a file of noisy ones."""
    chosen = plan or plan_beside(site)
    loaded = load_any_site(site)
    found = _plan(site, loaded.name, chosen)
    about: dict[str, object] = {"site": loaded.name, "true readings": True}
    if is_folder(out):
        about |= {"plan": found.digest, "unit": loaded.unit, "version": version("cloakwork"), "part": PART}
        about |= {"readings": _digest(readings), "keys": [keys.stat().st_size, keys.stat().st_mtime_ns]}
    held = load_keys(keys, exported=True)
    scale = ReadingScale.of(found, loaded.unit)
    scale = replace(scale, sigmas=dict.fromkeys(scale.sigmas, 0.0))
    target = _Target(out, about, scale, (site, readings, keys, chosen))
    with bar("unveiling", 2 * ReadingsFile(readings, ()).size) as progress:
        if is_folder(out):
            parts, there, evidence = target.finished()
            unveiling = Unveiling(readings, found, held, skip=there, progress=progress)
            unveiling.check.streams.update(evidence)
            with noting_interrupt(f"stopped. Finished parts are in {out}: run the same command again to go on"):
                target.write_parts(unveiling, parts)
        else:
            unveiling = Unveiling(readings, found, held, progress=progress)
            with noting_interrupt("stopped, nothing written. To be able to stop and go on, give a folder as --out"):
                target.write(out, unveiling, target.about)
    if unveiling.skipped:
        note(f"{counted(unveiling.skipped, 'true reading')} were there already")
    if total := sum(unveiling.unveiled.values()):
        sensors, steps = counted(len(unveiling.unveiled), "sensor"), _steps(found, unveiling.unveiled)
        note(f"wrote {counted(total, 'true reading')} of {sensors} to {out}, in steps of {steps}")
    note(f"{out} holds TRUE readings, without noise: nothing in it is protected. Keep it secret.")
    for line in _remarks(unveiling):
        note(line)


@dataclass(frozen=True, eq=False)
class _Target:
    """Where true readings go, what a file says about itself, and the files that must not be overwritten."""

    out: Path
    about: Mapping[str, object]
    scale: ReadingScale
    inputs: tuple[Path, ...]

    def write(self, path: Path, batches: Iterable[TrueRows], about: Mapping[str, object]) -> None:
        """Write one file, which only its owner can read."""
        with (
            written(path, *self.inputs, mode=PRIVATE) as file,
            table_writer(file, form_of(path), READING_COLUMNS, about) as write,
        ):
            for batch in batches:
                columns = (batch.time.tolist(), batch.sensor, batch.seq.tolist(), batch.value.tolist())
                write([self.scale.row(*row) for row in zip(*columns, strict=True)])

    def finished(self) -> tuple[int, int, dict[str, Evidence]]:
        """Number of parts in the folder, of their readings, and what these say about the keys.

        Refuses a folder whose parts were made from something else.
        """
        found = {path: mark_of(path) for path in self.out.glob("*.parquet")}
        for path, mark in found.items():
            if mark is not None and not mark.startswith(json.dumps(self.about)[:-1]):
                raise InputError(f"{path} was made from other readings, keys or another plan. Give another folder.")
        parts, rows, evidence = 0, 0, {}
        while (mark := found.get(self._part(parts))) is not None:
            known = json.loads(mark)
            parts, rows, evidence = parts + 1, rows + known["rows"], known["evidence"]
        return parts, rows, {name: Evidence(*values) for name, values in evidence.items()}

    def write_parts(self, unveiling: Unveiling, number: int) -> None:
        """Write the parts from a number on; the last one may be short."""
        self.out.mkdir(mode=0o700, parents=True, exist_ok=True)
        batches = iter(unveiling)
        while part := list(islice(batches, PART // BATCH)):
            rows = sum(len(batch.seq) for batch in part)
            evidence = {name: astuple(known) for name, known in unveiling.check.streams.items()}
            self.write(self._part(number), part, {**self.about, "rows": rows, "evidence": evidence})
            number += 1

    def _part(self, number: int) -> Path:
        return self.out / f"{self.about['site']}-true-{number:05d}.parquet"


def _plan(site: Path, name: str, chosen: Path) -> Plan | BitPlan:
    """The plan of the readings, which may be older than the site file."""
    found = load_any_plan(chosen)
    if found.site != name:
        raise InputError(
            f"{chosen} is a plan of {found.site}, and {site} is {name}. Give a plan of {name} with --plan."
        )
    return found


def _digest(path: Path) -> str:
    """A digest of a file, so that parts are never made from two."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        raise ReadingError(f"{path}: {problem.strerror}.", path=str(path)) from None


def _steps(plan: Plan | BitPlan, names: Iterable[str]) -> str:
    """The steps of some sensors of a plan, in the unit of the readings."""
    steps = [plan.noise(name).step for name in names]
    low, high = min(steps), max(steps)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}, depending on the sensor (see step in the plan)"


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
