"""`cloakwork recover`."""

import csv
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.cli.draw import check_picture, draw_map
from cloakwork.cli.output import as_json, bar, busy, counted, note, refuse_input, say, shown_place, table, written
from cloakwork.cli.plan import planning
from cloakwork.physics import Space
from cloakwork.privacy import Cloak
from cloakwork.recovery import Fit, Recovery, Source, Status, recover
from cloakwork.recovery.fit import DOUBTFUL, together
from cloakwork.site import Frame, PartialCloak, ReadingsFile, Site, load_site, reporting

BATCH = 512
KNOWN_PATTERNS = 64
SHOWN_FRAMES = 10
SHOWN_SENSORS = 5


@dataclass(frozen=True, eq=False)
class Found:
    """What was recovered from one frame."""

    time: int
    sensors: int
    status: Status
    gap: float
    fit: Fit
    map: FloatArray
    sources: tuple[Source, ...]


@dataclass
class Summary:
    """What is said at the end; nothing here grows with the number of frames."""

    frames: int = 0
    incomplete: int = 0
    status: Counter[Status] = field(default_factory=Counter)
    worst_gap: float = 0.0
    doubtful: int = 0
    set_aside: Counter[int] = field(default_factory=Counter)
    misfit: float = 0.0
    degrees: int = 0
    heaviest: float = 0.0
    total: FloatArray | None = None
    last: tuple[Source, ...] = ()
    shown: list[Found] = field(default_factory=list)

    @property
    def fit_together(self) -> float:
        """The p-value of all frames taken together."""
        return together([Fit(1.0, self.misfit, self.degrees)])

    def add(self, found: Found, all_sensors: int) -> None:
        """Count one frame."""
        self.frames += 1
        self.incomplete += found.sensors < all_sensors
        self.status[found.status] += 1
        self.worst_gap = max(self.worst_gap, found.gap)
        self.doubtful += found.fit.doubtful
        self.set_aside.update(found.fit.set_aside)
        self.misfit += found.fit.misfit
        self.degrees += found.fit.degrees
        self.heaviest = max(self.heaviest, float(found.map.sum()))
        self.total = found.map if self.total is None else self.total + found.map
        self.last = found.sources
        if len(self.shown) < SHOWN_FRAMES:
            self.shown.append(found)


def run_recover(path: Path, readings: Path, *, out: Path | None, plot: Path | None, json: bool) -> None:
    """Recover every frame of a file, in batches, and write what was found."""
    if plot is not None:
        check_picture(plot)
        refuse_input(plot, path, readings)
    site = load_site(path)
    file = ReadingsFile(readings, site.sensor_ids)
    size = file.size
    with busy(planning(site)):
        recoveries = _Recoveries(site, site.cloak())
    summary = Summary()
    with ExitStack() as stack:
        write = _writer(out, (path, readings), site.physics.space, stack)
        progress = stack.enter_context(bar("recovering", size))
        for batch in _batches(file):
            for found in recoveries.of(batch):
                summary.add(found, len(site.sensor_ids))
                write(found)
            progress(file.bytes_read)
    if plot is not None and summary.total is not None:
        title = "Recovered map" if summary.frames == 1 else f"Recovered map, average of {summary.frames:,} frames"
        draw_map(plot, site.physics, summary.total / summary.frames, summary.last, title=title)
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


class _Recoveries:
    """Recovers frames; keeps a model for each of the last few sets of sensors that reported."""

    def __init__(self, site: Site, cloak: Cloak) -> None:
        self._site = site
        self._cloak = cloak
        self._estimator = site.estimator().estimator
        self._last: Recovery | None = None
        self._known: dict[bytes, PartialCloak] = {}

    def of(self, batch: list[Frame]) -> list[Found]:
        """Every frame of a batch, in the order of time."""
        groups: dict[bytes, list[Frame]] = {}
        for frame in batch:
            groups.setdefault(frame.present.tobytes(), []).append(frame)
        found = [one for key, members in groups.items() for one in self._group(key, members)]
        return sorted(found, key=lambda one: one.time)

    def _group(self, key: bytes, members: list[Frame]) -> Iterator[Found]:
        present = members[0].present
        if key not in self._known:
            if len(self._known) >= KNOWN_PATTERNS:
                self._known.pop(next(iter(self._known)))
            self._known[key] = reporting(self._cloak, present)
        part = self._known[key]
        steps = np.stack([frame.steps[present] for frame in members])
        values = steps * part.steps - self._site.baselines[present]
        result = recover(values, part, estimator=self._estimator, after=self._last)
        self._last = result
        reported = np.flatnonzero(present)
        for k, frame in enumerate(members):
            yield Found(
                frame.time,
                int(present.sum()),
                result.status[k],
                float(result.gap[k]),
                _renamed(result.fit[k], reported),
                result.map[k],
                result.sources[k],
            )


def _renamed(fit: Fit, reported: IntArray) -> Fit:
    """A fit that counts sensors among all of the site, not among those that reported."""
    return replace(fit, set_aside=tuple(int(reported[sensor]) for sensor in fit.set_aside))


def _writer(path: Path | None, inputs: tuple[Path, ...], space: Space, stack: ExitStack) -> Any:
    """A function that writes one row a source, and one row for a frame in which none was found."""
    if path is None:
        return lambda _: None
    axes = ["x", "y"][: space.places.shape[1]]
    rows = csv.writer(stack.enter_context(written(path, *inputs)), lineterminator="\n")
    rows.writerow(["time", "sensors", "place", *axes, "weight", "radius", "probability", "status", "gap", "fit"])

    def write(found: Found) -> None:
        start = (found.time, found.sensors)
        end = (found.status.name.lower(), f"{found.gap:.3g}", f"{found.fit.p_value:.3g}")
        if not found.sources:
            rows.writerow([*start, "", *("" for _ in axes), 0, "", "", *end])
        for source in found.sources:
            at = [f"{value:g}" for value in np.atleast_1d(np.asarray(source.at))] if axes else []
            name = source.place if axes else space.name(source.place)
            own = (f"{source.weight:.6g}", f"{source.radius:.6g}", f"{source.probability:.4g}")
            rows.writerow([*start, name, *at, *own, *end])

    return write


def _report(summary: Summary, file: ReadingsFile, site: Site, out: Path | None, *, json: bool) -> None:
    for line in file.problems.shown:
        note(line)
    hidden = file.problems.total - len(file.problems.shown)
    if hidden > 0:
        note(f"... and {counted(hidden, 'more row')} left out")
    for warning in _warnings(summary, site):
        note(f"warning: {warning}")
    if json:
        as_json(_values(summary, file, site))
        return
    rows = [
        (
            str(found.time),
            shown_place(source.at),
            f"{source.weight:.3f}",
            f"{source.radius:.3g}",
            f"{source.probability:.2f}",
        )
        for found in summary.shown
        for source in found.sources
    ]
    if rows:
        table("Recovered sources" + _first(summary), ("time", "at", "weight", "within", "probability"), rows)
    choice = site.estimator()
    say(f"recovered with {type(choice.estimator).__name__}: {choice.reason}")
    for status, number in summary.status.items():
        say(f"{number:,} of {counted(summary.frames, 'frame')}: {status}")
    if summary.incomplete:
        say(f"{counted(summary.incomplete, 'frame')} lacked readings of some sensors; recovered from the rest")
    if file.problems.total:
        say(f"{file.problems.total:,} of {file.rows:,} rows left out: " + _reasons(file))
    say(f"largest gap {summary.worst_gap:.2g}")
    if out is not None:
        note(f"wrote {out}")


def _warnings(summary: Summary, site: Site) -> list[str]:
    """What makes the result as a whole implausible, whatever each frame says."""
    check = "check the baseline, and that the site file has not changed since the readings were made"
    said = []
    most = site.spec.sources.max_count
    if most is not None and summary.heaviest > 1.5 * most:
        said.append(f"a frame has sources of {summary.heaviest:.3g} units, the site says at most {most}: {check}")
    misfits = summary.status[Status.BEST_FIT]
    said += _doubts(summary, site)
    if summary.frames >= 3 and misfits > 0.4 * summary.frames:
        said.append(
            f"nothing fits {misfits:,} of {counted(summary.frames, 'frame')}, where one in ten would be usual: {check}"
        )
    return said


def _doubts(summary: Summary, site: Site) -> list[str]:
    """What the goodness of fit says."""
    said = []
    if summary.fit_together < DOUBTFUL:
        said.append(
            f"the frames together do not fit the model (p = {summary.fit_together:.1g}): the strength or the largest "
            "number of sources, the baseline or the physics of the site file may be off"
        )
    elif summary.doubtful > 3 + 0.02 * summary.frames:
        said.append(f"{summary.doubtful:,} of {counted(summary.frames, 'frame')} do not fit the model")
    for sensor, number in summary.set_aside.most_common(SHOWN_SENSORS):
        name = site.sensor_ids[sensor]
        said.append(
            f"nothing explains the readings of sensor {name} in {counted(number, 'frame')}; they were set aside"
        )
    return said


def _first(summary: Summary) -> str:
    return f" (first {len(summary.shown)} of {summary.frames:,} frames)" if summary.frames > SHOWN_FRAMES else ""


def _reasons(file: ReadingsFile) -> str:
    return "; ".join(f"{number:,} {reason}" for reason, number in file.problems.counts.most_common())


def _values(summary: Summary, file: ReadingsFile, site: Site) -> dict[str, object]:
    return {
        "site": site.name,
        "frames": summary.frames,
        "incomplete_frames": summary.incomplete,
        "status": {status.name.lower(): number for status, number in summary.status.items()},
        "estimator": type(site.estimator().estimator).__name__,
        "reason": site.estimator().reason,
        "largest_gap": summary.worst_gap,
        "fit": summary.fit_together,
        "doubtful_frames": summary.doubtful,
        "warnings": _warnings(summary, site),
        "rows": file.rows,
        "rows_left_out": dict(file.problems.counts),
        "last_sources": [
            {"place": s.place, "at": s.at, "weight": s.weight, "radius": s.radius, "probability": s.probability}
            for s in summary.last
        ],
    }
