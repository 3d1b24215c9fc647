"""`cloakwork recover`."""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

from cloakwork.cli.arguments import (
    PICTURES,
    TABLES,
    Json,
    PlanFile,
    PlannedSite,
    Scheduler,
    Since,
    Until,
    argument,
    existing_store,
    option,
    reads,
    writes,
)
from cloakwork.cli.files import form_of, is_folder, written
from cloakwork.cli.output import Show, counted, note, working
from cloakwork.cli.planned_noise import PlannedNoise, planned_noise
from cloakwork.cli.recover_report import PartsReport, RecoveryReport, RecoverySummary, note_problems
from cloakwork.cli.report import render
from cloakwork.errors import ClusterError, InputError
from cloakwork.parallel import run_parts
from cloakwork.privacy import Cloak
from cloakwork.readings import (
    LAG,
    Frame,
    FrameRecoverer,
    FrameRecovery,
    FrameSource,
    MergedFrames,
    ReadingsFile,
    Row,
    recover_part,
    recovered_columns,
    recovered_rows,
    settled_frames,
    smoothed_frames,
    stretch_parts,
    table_writer,
)
from cloakwork.recovery import EXISTS
from cloakwork.site import Site, load_site

BATCH = 512
MAX_SMOOTHED = 1000  # frames that are judged all together
AGAIN = "run the same command"
STOPPED = (
    "stopped, nothing written. To be able to stop and resume, give --out with the name of a folder: it gets the "
    "results part by part"
)


def recover(
    path: PlannedSite,
    readings: Annotated[
        list[Path] | None, argument("Readings: files of CSV, JSON Lines or Parquet.", callback=reads())
    ] = None,
    from_store: Annotated[
        str | None, option("Read from a collector's store instead.", metavar="URL", callback=existing_store)
    ] = None,
    since: Since = None,
    until: Until = None,
    plan: PlanFile = None,
    out: Annotated[
        Path | None,
        option(
            "Sources to write: .csv, .jsonl or .parquet; or a folder, to be able to resume.",
            "--out",
            callback=writes(*TABLES, folder=True),
        ),
    ] = None,
    scheduler: Scheduler = None,
    plot: Annotated[Path | None, option("Picture of the recovered map to write.", callback=writes(*PICTURES))] = None,
    alone: Annotated[bool, option("Recover each frame on its own, without tracks.", "--alone")] = False,
    json: Json = False,
) -> None:
    """Follow sources through the frames of a file or of a store, and write where each was."""
    in_parts = out is not None and is_folder(out)
    if scheduler is not None and not in_parts:
        raise InputError("--scheduler needs --out with the name of a folder, for the results of each stretch of time.")
    if in_parts and plot is not None:
        raise InputError("--plot needs a file as --out: the results of a folder are not drawn.")
    if bool(readings) == (from_store is not None):
        raise InputError("give either files of readings, or --from-store with the address of a collector's store.")
    if from_store is None and (since, until) != (None, None):
        raise InputError("--since and --until need --from-store; a file is recovered as a whole.")
    site = load_site(path)
    noise = planned_noise(site, path, plan)
    with ExitStack() as stack:
        if from_store is None:
            files = [ReadingsFile(file, site.sensor_ids, plan=noise.id) for file in readings or ()]
            frames: FrameSource = files[0] if len(files) == 1 else MergedFrames(files)
        else:
            from cloakwork.collect import StoredFrames, open_store  # noqa: PLC0415 - a file needs no database

            store = stack.enter_context(open_store(from_store, make=False))
            frames = StoredFrames(store, site, since, until, plan=noise.id)
        if in_parts and out is not None:
            _recover_parts(frames, site, noise, out, scheduler, alone=alone, json=json)
        else:
            _recover_all(frames, site, noise, out, plot, alone=alone, json=json)


def _recover_parts(
    frames: FrameSource, site: Site, noise: PlannedNoise, out: Path, scheduler: str | None, *, alone: bool, json: bool
) -> None:
    """Recover each stretch of time that the folder does not have yet."""
    parts = stretch_parts(frames, site, noise.cloak, alone=alone)
    with working("recovering", stopped=f"stopped. Finished parts are in {out}: {AGAIN} to resume") as progress:
        done = run_parts(recover_part, parts, out, scheduler=scheduler, progress=progress)
    note_problems(frames)
    render(PartsReport(site.name, out, done, frames, noise.digest), json=json)
    if done.failed:
        raise ClusterError(f"{counted(len(done.failed), 'part')} failed; {AGAIN} to try again.")


def _recover_all(
    frames: FrameSource,
    site: Site,
    noise: PlannedNoise,
    out: Path | None,
    plot: Path | None,
    *,
    alone: bool,
    json: bool,
) -> None:
    """Recover all frames, and write them to one file."""
    summary = RecoverySummary(site)
    with ExitStack() as stack, working("recovering", stopped=STOPPED) as progress:
        rows = _rows(_recovered(frames, noise.cloak, summary, progress, alone=alone), summary)
        if out is None:
            deque(rows, maxlen=0)
        else:
            file = stack.enter_context(written(out))
            write = stack.enter_context(table_writer(file, form_of(out), recovered_columns(site)))
            while group := list(islice(rows, BATCH)):
                write(group)
    note_problems(frames)
    for warning in summary.warnings():
        note(f"warning: {warning}")
    if plot is not None:
        with working("drawing"):
            from cloakwork.cli.draw import draw_recovery  # noqa: PLC0415 - only pictures need Matplotlib

            draw_recovery(plot, summary)
    render(RecoveryReport(summary, frames, noise.digest), json=json)
    for file_written in filter(None, (out, plot)):
        note(f"wrote {file_written}")


def _recovered(
    frames: FrameSource, cloak: Cloak, summary: RecoverySummary, progress: Show, *, alone: bool
) -> Iterator[FrameRecovery]:
    """Follow sources if there are several frames: through all together, or with a lag if they are too many."""
    site, source = summary.site, iter(frames)
    first = [] if alone or not site.follows else list(islice(source, MAX_SMOOTHED + 1))
    live = site.samples_locally  # no moment is judged from later frames
    if 1 < len(first) <= MAX_SMOOTHED and not live:
        summary.followed = True
        yield from smoothed_frames(first, site, cloak, progress)
        return
    rest = _with_progress(chain(first, source), frames, progress)
    if len(first) > 1:
        summary.followed, summary.lag = True, 0 if live else LAG
        yield from settled_frames(rest, site, cloak, lag=LAG)
        return
    recoverer = FrameRecoverer(site, cloak)
    while batch := list(islice(rest, BATCH)):
        yield from recoverer.recover(batch)


def _with_progress(source: Iterable[Frame], frames: FrameSource, progress: Show) -> Iterator[Frame]:
    """The same frames; shows after each how many of all have been read."""
    for frame in source:
        yield frame
        progress(frames.share)


def _rows(found: Iterable[FrameRecovery], summary: RecoverySummary) -> Iterator[Row]:
    """The rows of recovered frames, each of which the summary counts; alone, without sources that are unlikely."""
    for each in found:
        likely = tuple(source for source in each.sources if each.tracked or source.probability >= EXISTS)
        summary.add(shown := replace(each, sources=likely))
        yield from recovered_rows(shown, summary.site)
