"""`cloakwork recover`."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

from cloakwork._checks import FloatArray
from cloakwork.cli.arguments import (
    Json,
    PlanFile,
    Scheduler,
    Since,
    SiteFile,
    Until,
    argument,
    existing_store,
    option,
    reads,
)
from cloakwork.cli.output import Show, check_picture, counted, form_of, is_folder, note, refuse_input, working, written
from cloakwork.cli.planned_noise import PlannedNoise, planned_noise
from cloakwork.cli.recover_report import RecoverySummary, report, report_parts
from cloakwork.cli.time_arguments import parse_moment
from cloakwork.errors import ClusterError, InputError
from cloakwork.parallel import run_parts
from cloakwork.privacy import Cloak
from cloakwork.readings import (
    FORMS,
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
    "stopped, nothing written. To be able to stop and go on, give --out with the name of a folder: it gets the "
    "results part by part"
)


def recover(
    path: SiteFile,
    readings: Annotated[
        list[Path] | None, argument("Readings: files of CSV, JSON Lines, Parquet or Arrow.", callback=reads())
    ] = None,
    from_store: Annotated[
        str | None, option("Read from a collector's store instead.", metavar="URL", callback=existing_store)
    ] = None,
    since: Since = None,
    until: Until = None,
    plan: PlanFile = None,
    out: Annotated[
        Path | None,
        option("Sources to write: .csv, .jsonl, .parquet or .arrow; or a folder, to be able to resume.", "--out"),
    ] = None,
    scheduler: Scheduler = None,
    plot: Annotated[Path | None, option("Picture of the recovered map to write.")] = None,
    alone: Annotated[bool, option("Recover each frame on its own, without tracks.", "--alone")] = False,
    json: Json = False,
) -> None:
    """Follow sources through the frames of a file or of a store, and write where each was."""
    if plot is not None:
        check_picture(plot)
    in_parts = out is not None and is_folder(out)
    _check(readings, from_store, out, plot, period=(since, until), scheduler=scheduler, in_parts=in_parts)
    site = load_site(path)
    with ExitStack() as stack:
        noise = planned_noise(site, path, plan)
        if from_store is None:
            frames = _file_frames(readings or [], site, noise)
        else:
            frames = _stored(from_store, site, noise, (since, until), stack)
        if in_parts and out is not None:
            parts = stretch_parts(frames, site, noise.cloak, alone=alone)
            stopped = f"stopped. Finished parts are in {out}: {AGAIN} to resume"
            with working("recovering", stopped=stopped) as progress:
                done = run_parts(recover_part, parts, out, scheduler=scheduler, progress=progress)
            report_parts(done, frames, site, out, plan=noise.digest, json=json)
            if done.failed:
                raise ClusterError(f"{counted(len(done.failed), 'part')} failed; {AGAIN} to try again.")
            return
        inputs = (path, *(readings or ()), *noise.files)
        if plot is not None:
            refuse_input(plot, *inputs)
        summary = RecoverySummary(site)
        with working("recovering", stopped=STOPPED) as progress:
            rows = _rows(_recovered(frames, site, noise.cloak, summary, progress, alone=alone), summary)
            if out is None:
                deque(rows, maxlen=0)
            else:
                _write(out, inputs, rows, recovered_columns(site))
    if plot is not None and summary.total is not None:
        with working("drawing"):
            _draw(plot, site, summary, summary.total / summary.frames)
        note(f"wrote the picture to {plot}")
    report(summary, frames, out, plan=noise.digest, json=json)


def _check(
    readings: list[Path] | None,
    from_store: str | None,
    out: Path | None,
    plot: Path | None,
    *,
    period: tuple[str | None, str | None],
    scheduler: str | None,
    in_parts: bool,
) -> None:
    """Refuse options that do not go together."""
    if scheduler is not None and not in_parts:
        raise InputError("--scheduler needs --out with the name of a folder, for the results of each stretch of time.")
    if in_parts and plot is not None:
        raise InputError("--plot needs a CSV file as --out: the results of a folder are not drawn.")
    if out is not None and not in_parts and form_of(out) not in FORMS:
        raise InputError(f"--out {out}: give a name that ends in {', '.join(FORMS)}, or that of a folder.")
    if readings and from_store is not None:
        raise InputError("give either a file of readings or --from-store, not both.")
    if from_store is None and period != (None, None):
        raise InputError("--since and --until need --from-store; a file is recovered as a whole.")
    if not readings and from_store is None:
        raise InputError("give a file of readings, or --from-store with the address of a collector's store.")


def _draw(plot: Path, site: Site, summary: RecoverySummary, weights: FloatArray) -> None:
    from cloakwork.cli.draw import draw_map, draw_tracks  # noqa: PLC0415 - only pictures need Matplotlib

    if summary.followed:
        draw_tracks(plot, site, weights, summary.trails, summary.recent[-1].time)
        return
    title = "Recovered map" if summary.frames == 1 else f"Recovered map, average of {summary.frames:,} frames"
    label = "weight" if summary.recent[-1].counts is None else "expected sources"
    draw_map(plot, site.physics, weights, summary.recent[-1].sources, title=title, label=label)


def _file_frames(readings: list[Path], site: Site, noise: PlannedNoise) -> FrameSource:
    files = [ReadingsFile(path, site.sensor_ids, plan=noise.id) for path in readings]
    return files[0] if len(files) == 1 else MergedFrames(files)


def _stored(
    url: str, site: Site, noise: PlannedNoise, period: tuple[str | None, str | None], stack: ExitStack
) -> FrameSource:
    from cloakwork.collect import StoredFrames, open_store  # noqa: PLC0415 - a file needs no database

    store = stack.enter_context(open_store(url, make=False))
    ends = parse_moment("--since", period[0]), parse_moment("--until", period[1])
    return StoredFrames(store, site, *ends, plan=noise.id)


def _recovered(
    frames: FrameSource, site: Site, cloak: Cloak, summary: RecoverySummary, progress: Show, *, alone: bool
) -> Iterator[FrameRecovery]:
    """Follow sources if there are several frames: through all together, or with a lag if they are too many."""
    source = iter(frames)
    first = [] if alone or not site.follows else list(islice(source, MAX_SMOOTHED + 1))
    live = site.samples_locally  # no moment is judged from later frames
    if 1 < len(first) <= MAX_SMOOTHED and not live:
        summary.followed = True
        yield from smoothed_frames(first, site, cloak, progress)
        return
    rest = _counted(chain(first, source), frames, progress)
    if len(first) > 1:
        summary.followed, summary.lag = True, 0 if live else LAG
        yield from settled_frames(rest, site, cloak, lag=LAG)
        return
    recoverer = FrameRecoverer(site, cloak)
    while batch := list(islice(rest, BATCH)):
        yield from recoverer.recover(batch)


def _counted(source: Iterable[Frame], frames: FrameSource, progress: Callable[[float], None]) -> Iterator[Frame]:
    """Frames, with the progress after each."""
    for frame in source:
        yield frame
        progress(frames.share)


def _rows(found: Iterable[FrameRecovery], summary: RecoverySummary) -> Iterator[Row]:
    """The rows of recovered frames, each of which the summary counts; alone, without sources that are unlikely."""
    for each in found:
        likely = tuple(source for source in each.sources if each.tracked or source.probability >= EXISTS)
        summary.add(shown := replace(each, sources=likely))
        yield from recovered_rows(shown, summary.site)


def _write(path: Path, inputs: tuple[Path, ...], rows: Iterator[Row], columns: Mapping[str, type]) -> None:
    with written(path, *inputs) as file, table_writer(file, form_of(path), columns) as write:
        while group := list(islice(rows, BATCH)):
            write(group)
