"""`cloakwork recover`."""

import csv
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from cloakwork.cli.draw import check_picture, draw_map
from cloakwork.cli.frozen import noise_of
from cloakwork.cli.output import bar, note, refuse_input, written
from cloakwork.cli.report import Summary, report
from cloakwork.site import Frame, ReadingsFile, Site, load_site
from cloakwork.site.frames import Found, Recoveries

BATCH = 512


def run_recover(
    path: Path, readings: Path, *, plan: Path | None, out: Path | None, plot: Path | None, json: bool
) -> None:
    """Recover every frame of a file, in batches, and write what was found."""
    if plot is not None:
        check_picture(plot)
    site = load_site(path)
    file = ReadingsFile(readings, site.sensor_ids)
    size = file.size
    noise = noise_of(site, path, plan)
    recoveries = Recoveries(site, noise.cloak)
    inputs = (path, readings, *noise.files)
    if plot is not None:
        refuse_input(plot, *inputs)
    summary = Summary()
    with ExitStack() as stack:
        write = _writer(out, inputs, site, stack)
        progress = stack.enter_context(bar("recovering", size))
        for batch in _batches(file):
            for found in recoveries.of(batch):
                summary.add(found, len(site.sensor_ids))
                write(found)
            progress(file.bytes_read)
    if plot is not None and summary.total is not None:
        title = "Recovered map" if summary.frames == 1 else f"Recovered map, average of {summary.frames:,} frames"
        label = "weight" if summary.last_counts is None else "expected sources"
        draw_map(plot, site.physics, summary.total / summary.frames, summary.last, title=title, label=label)
        note(f"wrote the picture to {plot}")
    report(summary, file, site, out, plan=noise.digest, json=json)


def _batches(file: ReadingsFile) -> Iterator[list[Frame]]:
    batch: list[Frame] = []
    for frame in file:
        batch.append(frame)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _writer(path: Path | None, inputs: tuple[Path, ...], site: Site, stack: ExitStack) -> Any:
    """A function that writes one row a source, and one row for a frame in which none was found."""
    if path is None:
        return lambda _: None
    space = site.physics.space
    axes = ["x", "y"][: space.places.shape[1]]
    rows = csv.writer(stack.enter_context(written(path, *inputs)), lineterminator="\n")
    rows.writerow(
        ["time", "sensors", "place", *axes, "weight", "radius", "probability", "status", "gap", "fit", "set_aside"]
    )

    def write(found: Found) -> None:
        start = (found.time, found.sensors)
        aside = " ".join(site.sensor_ids[sensor] for sensor in found.fit.set_aside)
        end = (found.status.name.lower(), f"{found.gap:.3g}", f"{found.fit.p_value:.3g}", aside)
        if not found.sources:
            rows.writerow([*start, "", *("" for _ in axes), 0, "", "", *end])
        for source in found.sources:
            at = [f"{value:g}" for value in np.atleast_1d(np.asarray(source.at))] if axes else []
            name = source.place if axes else space.name(source.place)
            own = (f"{source.weight:.6g}", f"{source.radius:.6g}", f"{source.probability:.4g}")
            rows.writerow([*start, name, *at, *own, *end])

    return write
