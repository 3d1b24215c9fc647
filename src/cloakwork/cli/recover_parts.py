"""`cloakwork recover --out FOLDER`: long readings in stretches of time, on a cluster, one Parquet file for each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from cloakwork.cli.output import MARK, as_json, bar, counted, left_out, mark_of, note, part_of, say
from cloakwork.cli.planned_noise import PlannedNoise
from cloakwork.cli.recover_report import FrameSource
from cloakwork.errors import ClusterError
from cloakwork.parallel import PartOutcome, part_runner, versions
from cloakwork.privacy import Cloak
from cloakwork.readings import (
    BURN_IN,
    LAG,
    Frame,
    Stretch,
    recover_stretch,
    recovered_columns,
    recovered_rows,
    stretch_length,
    stretches,
)
from cloakwork.site import Site


@dataclass(frozen=True, eq=False)
class FramesToRecover:
    """The source of frames, and for the progress bar its size and how much is done after a frame."""

    source: FrameSource
    size: int
    done: Callable[[Frame], int]


@dataclass(frozen=True, eq=False)
class _Part:
    """One stretch with all that a worker needs for it."""

    stretch: Stretch
    site: Site
    cloak: Cloak
    alone: bool


@dataclass(eq=False)
class _Parts:
    """The parts of one run: which are sent to workers, which were there already, and how they ended."""

    frames: FramesToRecover
    site: Site
    noise: PlannedNoise
    folder: Path
    alone: bool
    files: dict[str, tuple[Path, str, int]] = field(default_factory=dict)
    kept: int = 0
    rows: int = 0
    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[str, _Part]]:
        """Parts that are not in the folder yet, or were made from other readings or settings."""
        settings, cloak = self._settings(), self.noise.cloak
        around = (0, 0) if self.alone or not self.site.follows else (BURN_IN, LAG)
        for stretch in stretches(self.frames.source, stretch_length(self.site), before=around[0], after=around[1]):
            name = f"{self.site.name}-{datetime.fromtimestamp(stretch.start / 1000, UTC):%Y%m%dT%H%M}"
            file, mark = self.folder / f"{name}.parquet", f"{settings} {stretch.digest}"
            if mark_of(file) == mark:
                self.kept += 1
                continue
            self.files[name] = file, mark, self.frames.done(stretch.frames[-1])
            yield name, _Part(stretch, self.site, cloak, self.alone)

    def end(self, outcome: PartOutcome) -> int:
        """Write the result of a part, and return how far the work has come."""
        file, mark, done = self.files.pop(outcome.name)
        if outcome.failure:
            self.failed[outcome.name] = outcome.failure
        else:
            _write(file, outcome.result, mark)
            self.rows += len(outcome.result)
            self.done.append(outcome.name)
        return done

    def _settings(self) -> str:
        """Digest of what a result depends on besides the readings; the physics follow from the site's files."""
        cloak, site = self.noise.cloak, (self.site.digest, self.site.spec.model_dump_json())
        digest = sha256(repr((versions(), site, self.alone, BURN_IN, LAG)).encode())
        slow = [] if cloak.offsets is None else [cloak.offsets.factor]
        for values in (cloak.total_sigmas, cloak.steps, cloak.roundings, *slow):
            digest.update(values.tobytes())
        return digest.hexdigest()


def recover_parts(
    frames: FramesToRecover,
    site: Site,
    noise: PlannedNoise,
    folder: Path,
    *,
    scheduler: str | None,
    alone: bool,
    json: bool,
) -> None:
    """Recover frames in stretches, on a cluster if Dask is there; those that are in the folder are not done again."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = _Parts(frames, site, noise, folder, alone)
    try:
        with part_runner(scheduler) as run, bar("recovering", frames.size) as progress:
            farthest = 0
            for outcome in run(recover_part, parts):  # in any order
                progress(farthest := max(farthest, parts.end(outcome)))
    except (KeyboardInterrupt, ClusterError):
        if parts.done:
            note(f"{counted(len(parts.done), 'part')} in {folder}; run the same command to continue")
        raise
    _report(parts, json=json)
    if parts.failed:
        raise ClusterError(
            f"{counted(len(parts.failed), 'part')} failed; run the same command to try again.", failed=parts.failed
        )


def recover_part(part: _Part) -> Any:
    """Recover one stretch, on a worker; returns an Arrow table."""
    import pyarrow as pa  # noqa: PLC0415 - large

    kinds = {int: pa.int64(), float: pa.float64(), str: pa.string(), datetime: pa.timestamp("ms", "UTC")}
    columns = {"stretch": datetime} | recovered_columns(part.site)
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
    found = recover_stretch(part.stretch, part.site, part.cloak, alone=part.alone)
    rows = [(part.stretch.start, *row) for frame in found for row in recovered_rows(frame, part.site)]
    return pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], schema=schema)


def _write(file: Path, table: Any, mark: str) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415

    with part_of(file) as new:
        pq.write_table(table.replace_schema_metadata({MARK: mark.encode()}), new, compression="zstd")


def _report(parts: _Parts, *, json: bool) -> None:
    """Print what was done, what was there already, and what failed."""
    problems, source = parts.frames.source.problems, parts.frames.source
    if json:
        as_json(
            {
                "site": parts.site.name,
                "folder": str(parts.folder),
                "done": sorted(parts.done),
                "kept": parts.kept,
                "failed": parts.failed,
                "sources": parts.rows,
                "rows": source.rows,
                "rows_left_out": dict(problems.counts),
                "plan": parts.noise.digest,
            }
        )
        return
    for line in problems.shown[:20]:
        note(line)
    for line in left_out(source.problems.counts, source.rows):
        say(line)
    for name, reason in sorted(parts.failed.items()):
        say(f"{name} failed: {reason}")
    say(f"{counted(len(parts.done), 'part')} written to {parts.folder}, {parts.kept:,} were there already")
