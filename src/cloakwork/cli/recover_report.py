"""What `cloakwork recover` found: tracks or sources, how the frames were solved, rows left out."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cloakwork._checks import FloatArray
from cloakwork.cli.output import counted, left_out, note
from cloakwork.cli.report import Row, Table, shown_place
from cloakwork.cli.time_arguments import shown
from cloakwork.parallel import PartsDone
from cloakwork.readings import FrameRecovery, FrameSource
from cloakwork.recovery import DOUBTFUL, Fit, PointSources, Source, Status, joint_p_value
from cloakwork.site import Site

SHOWN_TRACKS = 20
SHOWN_SENSORS = 5
TRAIL = 60  # frames
EARLIEST, LATEST = 10**11, 2 * 10**14  # times between these, in milliseconds, are shown as dates
CHECK = "check the baseline, and that neither the site file nor the plan has changed since the readings were made"


@dataclass
class TrackRecord:
    """One track: the frames in which it was a source, where it was in the last of them, and how many in each zone."""

    label: int
    since: int
    frames: int = 0
    zones: Counter[str] = field(default_factory=Counter)
    points: deque[tuple[int, Source]] = field(default_factory=lambda: deque(maxlen=TRAIL))
    same: float = 1.0

    @property
    def until(self) -> int:
        """The time of its last frame."""
        return self.points[-1][0]

    @property
    def last(self) -> Source:
        """Where it was in its last frame."""
        return self.points[-1][1]


@dataclass
class RecoverySummary:
    """Totals over all frames; besides the tracks, its size does not grow with their number.

    `followed` says that sources were followed from frame to frame, and `lag` from how many later frames each moment is
    judged, None for all.
    """

    site: Site
    followed: bool = False
    lag: int | None = None
    tracks: dict[int, TrackRecord] = field(default_factory=dict)
    recent: deque[FrameRecovery] = field(default_factory=lambda: deque(maxlen=TRAIL))
    frames: int = 0
    incomplete: int = 0
    status: Counter[Status] = field(default_factory=Counter)
    worst_gap: float = 0.0
    doubtful: int = 0
    set_aside: Counter[str] = field(default_factory=Counter)
    misfit: float = 0.0
    degrees: int = 0
    heaviest: float = 0.0
    at_most: int = 0
    total: FloatArray | None = None

    @property
    def fit_together(self) -> float:
        """The p-value of all frames together."""
        return joint_p_value([Fit(1.0, self.misfit, self.degrees)])

    @property
    def mean_map(self) -> FloatArray:
        """What a picture shows: the mean over all frames."""
        assert self.total is not None  # noqa: S101 - a source of frames has one at least
        return self.total / self.frames

    @property
    def trails(self) -> list[TrackRecord]:
        """The tracks of the last frames."""
        return [track for track in self.tracks.values() if track.until >= self.recent[0].time]

    def add(self, found: FrameRecovery) -> None:
        """Count one frame."""
        self.frames += 1
        self.incomplete += found.sensors < len(self.site.sensor_ids)
        self.status[found.status] += 1
        self.worst_gap = max(self.worst_gap, found.gap)
        self.doubtful += found.fit.doubtful
        self.set_aside.update(self.site.sensor_ids[sensor] for sensor in found.fit.set_aside)
        self.misfit += found.fit.misfit
        self.degrees += found.fit.degrees
        self.heaviest = max(self.heaviest, float(found.map.sum()))
        self.total = found.shown if self.total is None else self.total + found.shown
        self.at_most += found.counts is not None and int(found.counts.argmax()) == len(found.counts) - 1
        self.recent.append(found)
        same = {track.label: track.identity_probability for track in found.tracks}
        for label, source in zip(found.labels, found.sources, strict=True):
            if label is not None:
                record = self.tracks.setdefault(label, TrackRecord(label, found.time))
                record.points.append((found.time, source))
                record.same = same.get(label, 1.0)
                record.frames += 1
                record.zones.update(zone.id for zone in self.site.zones if source.place in zone.places)

    def warnings(self) -> Iterator[str]:
        """Signs that the result as a whole is implausible, whatever the single frames say."""
        most, estimator = self.site.spec.sources.max_count, self.site.estimator().estimator
        frames, misfits = counted(self.frames, "frame"), self.status[Status.BEST_FIT]
        if most is not None and self.heaviest > 1.5 * most:
            yield f"a frame has sources of {self.heaviest:.3g} units, but the site allows {most}: {CHECK}"
        if self.fit_together < DOUBTFUL:
            yield (
                f"the frames together do not fit the model (p = {self.fit_together:.1g}): the strength or the largest "
                "number of sources, the baseline or the physics of the site file may be off, or the readings were made "
                "with another plan"
            )
        for name, number in self.set_aside.most_common(SHOWN_SENSORS):
            yield f"nothing explains the readings of sensor {name} in {counted(number, 'frame')}; they were set aside"
        if isinstance(estimator, PointSources) and 2 * self.at_most > self.frames:
            yield (
                f"the most likely number of sources is the largest that the site allows ({estimator.max_sources}) in "
                f"{self.at_most:,} of {frames}: there may be more, or stronger ones"
            )
        if self.frames >= 3 and misfits > 0.4 * self.frames:
            yield f"nothing fits {misfits:,} of {frames}, where one in ten would be usual: {CHECK}"


@dataclass(frozen=True)
class RecoveryReport:
    """The frames of a source, recovered with a plan, of which this is the digest."""

    summary: RecoverySummary
    source: FrameSource
    plan: str | None

    def as_dict(self) -> Mapping[str, Any]:
        """The totals, the tracks, and the last frame."""
        summary, site, last = self.summary, self.summary.site, self.summary.recent[-1]
        kept = ("place", "at", "weight", "radius", "probability")
        return {
            "site": site.name,
            "plan": self.plan,
            "frames": summary.frames,
            "followed": summary.followed,
            "lag": summary.lag,
            "incomplete_frames": summary.incomplete,
            "status": {status.name.lower(): number for status, number in summary.status.items()},
            "estimator": type(site.estimator().estimator).__name__,
            "reason": site.estimator().reason,
            "largest_gap": summary.worst_gap,
            "fit": summary.fit_together,
            "doubtful_frames": summary.doubtful,
            "set_aside": summary.set_aside,
            "last_counts": last.counts,
            "warnings": list(summary.warnings()),
            "rows": self.source.rows,
            "rows_left_out": self.source.problems.counts,
            "last_sources": [
                {"label": label} | {key: getattr(source, key) for key in kept}
                for label, source in zip(last.labels, last.sources, strict=True)
            ],
            "tracks": [
                {key: getattr(track, key) for key in ("label", "since", "until", "frames", "same")}
                | {"zones": dict(track.zones.most_common()), "last_at": track.last.at}
                for track in summary.tracks.values()
            ],
        }

    def rows(self) -> Iterator[Row]:
        """Where the sources were, and how that was found."""
        summary, site, last = self.summary, self.summary.site, self.summary.recent[-1]
        frames, choice = counted(summary.frames, "frame"), site.estimator()
        yield from self._tracks() if summary.followed else self._sources()
        if summary.followed:
            judged = "all of them" if summary.lag is None else "those before it"
            judged += f" and {summary.lag} after it" if summary.lag else ""
            yield f"followed through {frames}, each judged from {judged}; {choice.reason}"
        else:
            yield f"recovered with {type(choice.estimator).__name__}: {choice.reason}"
        if site.spec.sources.strongest != 1:
            yield f"a weight of 1 is a source of strength {site.spec.sources.strongest:g}"
        if last.counts is not None:
            likely = (f"{k}: {100 * p:.0f} %" for k, p in enumerate(last.counts) if p >= 0.005)
            yield f"number of sources in the last frame: {', '.join(likely)}"
        yield from (f"{number:,} of {frames}: {status}" for status, number in summary.status.items())
        if summary.incomplete:
            yield f"{counted(summary.incomplete, 'frame')} lacked readings of some sensors and used the rest"
        yield from left_out(self.source.problems.counts, self.source.rows)

    def _tracks(self) -> Iterator[Row]:
        tracks, unit = self.summary.tracks.values(), self.summary.site.length_unit
        labels = {zone.id: zone.label for zone in self.summary.site.zones}
        longest = sorted(tracks, key=lambda track: (-track.frames, track.label))[:SHOWN_TRACKS]
        rows = []
        for track in sorted(longest, key=lambda track: track.label):
            rooms = (f"{labels[zone]} {100 * n / track.frames:.0f} %" for zone, n in track.zones.most_common())
            times = (_moment(track.since), _moment(track.until), f"{track.frames:,}")
            within = f"{track.last.radius:.3g} {unit}".rstrip()
            rows.append((str(track.label), *times, ", ".join(rooms), shown_place(track.last.at), within))
        if rows:
            yield counted(len(tracks), "track") + (f", the {len(rows)} longest" if len(tracks) > len(rows) else "")
            yield Table.of(("track", "from", "to", "frames", "rooms, share of frames", "last at", "within"), rows)
            yield ""
        else:
            yield "no track: no source is more likely than not in any frame"

    def _sources(self) -> Iterator[Row]:
        last = self.summary.recent[-1]
        rows = (
            (shown_place(source.at), f"{source.weight:.3f}", f"{source.radius:.3g}", f"{source.probability:.2f}")
            for source in last.sources
        )
        yield f"Sources recovered from the last frame, {_moment(last.time)}"
        yield Table.of(("at", "weight", "within", "probability"), rows)
        yield ""


@dataclass(frozen=True)
class PartsReport:
    """Which parts of a folder were written, were there already, or failed."""

    site: str
    folder: Path
    done: PartsDone
    source: FrameSource
    plan: str | None

    def as_dict(self) -> Mapping[str, Any]:
        """The names of the parts, and how many rows they have."""
        done = self.done
        values = {"done": sorted(done.done), "kept": done.kept, "failed": done.failed, "sources": done.rows}
        counts = {"rows": self.source.rows, "rows_left_out": self.source.problems.counts}
        return {"site": self.site, "folder": str(self.folder), **values, **counts, "plan": self.plan}

    def rows(self) -> Iterator[Row]:
        """What was written, what was there already, what failed."""
        yield from left_out(self.source.problems.counts, self.source.rows)
        yield from (f"{name} failed: {reason}" for name, reason in sorted(self.done.failed.items()))
        written = counted(len(self.done.done), "part")
        yield f"{written} written to {self.folder}, {self.done.kept:,} were there already"


def note_problems(source: FrameSource) -> None:
    """Note the first rows that were left out."""
    for line in source.problems.shown:
        note(line)
    hidden = source.problems.total - len(source.problems.shown)
    if hidden > 0:
        note(f"... and {counted(hidden, 'more row')} left out")


def _moment(time: int) -> str:
    """A date if the time can be Unix milliseconds; small numbers, as of a simulation, are seconds."""
    return shown(time) if EARLIEST <= time < LATEST else f"{time / 1000:g} s"
