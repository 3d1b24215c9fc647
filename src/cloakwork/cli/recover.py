"""`cloakwork recover`."""

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.cli.draw import draw_map
from cloakwork.cli.output import as_json, bar, note, say, table
from cloakwork.privacy import Cloak
from cloakwork.recovery import Recovery, Source, Status, recover
from cloakwork.site import Frame, PartialCloak, ReadingsFile, Site, load_site, reporting

BATCH = 512
KNOWN_PATTERNS = 64
SHOWN_FRAMES = 10


@dataclass
class Summary:
    """What is said at the end; nothing here grows with the number of frames."""

    frames: int = 0
    incomplete: int = 0
    silent: int = 0
    status: Counter[Status] = field(default_factory=Counter)
    worst_gap: float = 0.0
    total: FloatArray | None = None
    last: tuple[Source, ...] = ()
    shown: list[tuple[int, int, Status, tuple[Source, ...]]] = field(default_factory=list)


def run_recover(path: Path, readings: Path, *, out: Path | None, plot: Path | None, json: bool) -> None:
    """Recover every frame of a file, in batches, and write what was found."""
    site = load_site(path)
    cloak = site.cloak()
    file = ReadingsFile(readings, site.sensor_ids)
    summary = Summary()
    writer = _Writer(out, site)
    with bar("recovering", file.size) as progress, writer:
        for batch in _batches(file):
            for times, found, sensors in _recovered(batch, site, cloak):
                _add(summary, times, found, sensors, len(site.sensor_ids))
                writer.write(times, found, sensors)
            progress(file.bytes_read)
    if plot is not None and summary.total is not None:
        draw_map(plot, site.physics, summary.total / max(summary.frames, 1), summary.last)
        note(f"wrote the picture to {plot}")
    _report(summary, file, site, out, json=json)


def _batches(file: ReadingsFile) -> Iterator[list[Frame]]:
    batch: list[Frame] = []
    for frame in file:
        batch.append(frame)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


class _Seen:
    """Recoveries need a model for each set of sensors that reported; the last few are kept."""

    def __init__(self) -> None:
        self._known: dict[bytes, PartialCloak] = {}

    def of(self, cloak: Cloak, frame: Frame) -> PartialCloak:
        key = frame.present.tobytes()
        if key not in self._known:
            if len(self._known) >= KNOWN_PATTERNS:
                self._known.pop(next(iter(self._known)))
            self._known[key] = reporting(cloak, frame.present)
        return self._known[key]


_SEEN = _Seen()


def _recovered(batch: list[Frame], site: Site, cloak: Cloak) -> Iterator[tuple[list[int], Recovery, int]]:
    groups: dict[bytes, list[Frame]] = {}
    for frame in batch:
        groups.setdefault(frame.present.tobytes(), []).append(frame)
    for members in groups.values():
        present = members[0].present
        part = _SEEN.of(cloak, members[0])
        steps = np.stack([frame.steps[present] for frame in members])
        values = steps * cloak.steps[present] - site.baselines[present]
        yield [frame.time for frame in members], recover(values, part), int(present.sum())


def _add(summary: Summary, times: list[int], found: Recovery, sensors: int, all_sensors: int) -> None:
    summary.frames += len(times)
    summary.incomplete += len(times) if sensors < all_sensors else 0
    summary.status.update(found.status)
    summary.worst_gap = max(summary.worst_gap, float(found.gap.max()))
    weights = found.map.sum(axis=0)
    summary.total = weights if summary.total is None else summary.total + weights
    summary.last = found.sources[-1]
    for time, status, sources in zip(times, found.status, found.sources, strict=True):
        if len(summary.shown) < SHOWN_FRAMES:
            summary.shown.append((time, sensors, status, sources))


class _Writer:
    """Writes one row a source, and one row for a frame in which none was found."""

    def __init__(self, path: Path | None, site: Site) -> None:
        self._path = path
        self._axes = ["x", "y"][: site.physics.space.places.shape[1]]
        self._space = site.physics.space
        self._file: Any = None

    def __enter__(self) -> "_Writer":
        if self._path is not None:
            self._file = self._path.open("w", newline="", encoding="utf-8")
            self._rows = csv.writer(self._file, lineterminator="\n")
            self._rows.writerow(["time", "sensors", "place", *self._axes, "weight", "radius", "status", "gap"])
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, times: list[int], found: Recovery, sensors: int) -> None:
        if self._file is None:
            return
        for time, status, gap, sources in zip(times, found.status, found.gap, found.sources, strict=True):
            ending = (status.name.lower(), f"{gap:.3g}")
            if not sources:
                self._rows.writerow([time, sensors, "", *("" for _ in self._axes), 0, "", *ending])
            for source in sources:
                at = [f"{value:g}" for value in self._space.places[source.place]]
                name = self._space.name(source.place) if not self._axes else source.place
                row = [time, sensors, name, *at, f"{source.weight:.6g}", f"{source.radius:.6g}", *ending]
                self._rows.writerow(row)


def _report(summary: Summary, file: ReadingsFile, site: Site, out: Path | None, *, json: bool) -> None:
    for line in file.problems.shown:
        note(line)
    hidden = file.problems.total - len(file.problems.shown)
    if hidden > 0:
        note(f"... and {hidden:,} more rows left out")
    if json:
        as_json(_values(summary, file, site))
        return
    rows = [
        (str(time), f"{source.at}", f"{source.weight:.3f}", f"{source.radius:.3g}")
        for time, _, _, sources in summary.shown
        for source in sources
    ]
    if rows:
        table("Recovered sources" + _first(summary), ("time", "at", "weight", "within"), rows)
    for status, number in summary.status.items():
        say(f"{number:,} of {summary.frames:,} frames {status}")
    if summary.incomplete:
        say(f"{summary.incomplete:,} frames lacked readings of some sensors and were recovered from the rest")
    if file.problems.total:
        say(f"{file.problems.total:,} of {file.rows:,} rows left out: " + _reasons(file))
    say(f"largest duality gap {summary.worst_gap:.2g}")
    if out is not None:
        note(f"wrote {out}")


def _first(summary: Summary) -> str:
    return f" (first {len(summary.shown)} of {summary.frames:,} frames)" if summary.frames > len(summary.shown) else ""


def _reasons(file: ReadingsFile) -> str:
    return "; ".join(f"{number:,} {reason}" for reason, number in file.problems.counts.most_common())


def _values(summary: Summary, file: ReadingsFile, site: Site) -> dict[str, object]:
    return {
        "site": site.name,
        "frames": summary.frames,
        "incomplete_frames": summary.incomplete,
        "status": {status.name.lower(): number for status, number in summary.status.items()},
        "largest_gap": summary.worst_gap,
        "rows": file.rows,
        "rows_left_out": dict(file.problems.counts),
        "last_sources": [{"place": s.place, "at": s.at, "weight": s.weight, "radius": s.radius} for s in summary.last],
    }
