"""What `cloakwork recover` found: tracks or sources, statuses, goodness of fit, rows left out."""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cloakwork._checks import FloatArray
from cloakwork.cli.output import counted, left_out, note, print_json, say, shown_place
from cloakwork.cli.report import table
from cloakwork.cli.time_arguments import shown
from cloakwork.parallel import PartsDone
from cloakwork.readings import FrameRecovery, FrameSource
from cloakwork.recovery import DOUBTFUL, Fit, PointSources, Source, Status, joint_p_value
from cloakwork.site import Site

SHOWN_FRAMES = 10
SHOWN_TRACKS = 20
TRAIL = 60  # frames
SHOWN_SENSORS = 5
EARLIEST, LATEST = 10**11, 2 * 10**14  # times between these, in milliseconds, are shown as dates
CHECK = "check the baseline, and that neither the site file nor the plan has changed since the readings were made"


@dataclass
class Trail:
    """The way of one source: the label of its track, when the track began, and where it was when."""

    label: int
    since: int
    points: list[tuple[int, Source]] = field(default_factory=list)


@dataclass
class TrackRecord:
    """One track: the frames in which it was a source, and how many of them it spent in each zone."""

    label: int
    since: int
    last: Source
    until: int = 0
    frames: int = 0
    zones: Counter[str] = field(default_factory=Counter)
    same: float = 1.0

    def where(self, site: Site) -> str:
        """The zones in which it was, most often first; without zones, its last place."""
        labels = {zone.id: zone.label for zone in site.zones}
        shares = (f"{labels[zone]} {100 * number / self.frames:.0f} %" for zone, number in self.zones.most_common())
        return ", ".join(shares) or shown_place(self.last.at)


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
    shown: list[FrameRecovery] = field(default_factory=list)

    @property
    def fit_together(self) -> float:
        """The p-value of all frames together."""
        return joint_p_value([Fit(1.0, self.misfit, self.degrees)])

    @property
    def last(self) -> FrameRecovery | None:
        """The last frame."""
        return self.recent[-1] if self.recent else None

    @property
    def trails(self) -> list[Trail]:
        """The way of each source through the last frames."""
        trails: dict[int, Trail] = {}
        for found in self.recent:
            for label, source in zip(found.labels, found.sources, strict=True):
                if label is not None:
                    trails.setdefault(label, Trail(label, self.tracks[label].since)).points.append((found.time, source))
        return list(trails.values())

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
        if found.tracked is None:
            self.shown += [found] * (len(self.shown) < SHOWN_FRAMES)
        same = {track.label: track.identity_probability for track in found.tracks}
        for label, source in zip(found.labels, found.sources, strict=True):
            if label is not None:
                record = self.tracks.setdefault(label, TrackRecord(label, found.time, source))
                record.until, record.last, record.same = found.time, source, same.get(label, 1.0)
                record.frames += 1
                record.zones.update(zone.id for zone in self.site.zones if source.place in zone.places)

    @property
    def warnings(self) -> list[str]:
        """Signs that the result as a whole is implausible, whatever the single frames say."""
        return list(self._warnings())

    def _warnings(self) -> Iterator[str]:
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
        elif self.doubtful > 3 + 0.02 * self.frames:
            yield f"{self.doubtful:,} of {frames} do not fit the model"
        for name, number in self.set_aside.most_common(SHOWN_SENSORS):
            yield f"nothing explains the readings of sensor {name} in {counted(number, 'frame')}; they were set aside"
        if isinstance(estimator, PointSources) and 2 * self.at_most > self.frames:
            yield (
                f"the most likely number of sources is the largest that the site allows ({estimator.max_sources}) in "
                f"{self.at_most:,} of {frames}: there may be more, or stronger ones"
            )
        if self.frames >= 3 and misfits > 0.4 * self.frames:
            yield f"nothing fits {misfits:,} of {frames}, where one in ten would be usual: {CHECK}"


def report(summary: RecoverySummary, source: FrameSource, out: Path | None, *, plan: str | None, json: bool) -> None:
    """Print warnings, then the result as JSON or text; `plan` is the digest of the plan in use."""
    for line in source.problems.shown:
        note(line)
    hidden = source.problems.total - len(source.problems.shown)
    if hidden > 0:
        note(f"... and {counted(hidden, 'more row')} left out")
    for warning in summary.warnings:
        note(f"warning: {warning}")
    if json:
        print_json(_values(summary, source) | {"plan": plan})
        return
    if summary.followed:
        _say_tracks(summary)
    else:
        _say_sources(summary)
    for line in _method(summary):
        say(line)
    for line in left_out(source.problems.counts, source.rows):
        say(line)
    say(f"largest gap {summary.worst_gap:.2g}")
    if out is not None:
        note(f"wrote {out}")


def report_parts(
    done: PartsDone, source: FrameSource, site: Site, folder: Path, *, plan: str | None, json: bool
) -> None:
    """Print which parts of a folder were written, were there already, or failed."""
    if json:
        values = {"done": sorted(done.done), "kept": done.kept, "failed": done.failed, "sources": done.rows}
        counts = {"rows": source.rows, "rows_left_out": dict(source.problems.counts)}
        print_json({"site": site.name, "folder": str(folder), **values, **counts, "plan": plan})
        return
    for line in source.problems.shown:
        note(line)
    for line in left_out(source.problems.counts, source.rows):
        say(line)
    for name, reason in sorted(done.failed.items()):
        say(f"{name} failed: {reason}")
    say(f"{counted(len(done.done), 'part')} written to {folder}, {done.kept:,} were there already")


def _say_tracks(summary: RecoverySummary) -> None:
    tracks = summary.tracks.values()
    longest = sorted(tracks, key=lambda record: (-record.frames, record.label))[:SHOWN_TRACKS]
    rows = [
        (
            str(record.label),
            *map(_moment, (record.since, record.until)),
            f"{record.frames:,}",
            record.where(summary.site),
            shown_place(record.last.at),
            f"{record.last.radius:.3g} {summary.site.length_unit}".rstrip(),
        )
        for record in sorted(longest, key=lambda record: record.label)
    ]
    if rows:
        title = counted(len(tracks), "track") + (f", the {len(rows)} longest" if len(tracks) > len(rows) else "")
        table(title, ("track", "from", "to", "frames", "rooms, share of frames", "last at", "within"), rows)
    else:
        say("no track: no source is more likely than not in any frame")


def _say_sources(summary: RecoverySummary) -> None:
    spots = [(found.time, spot) for found in summary.shown for spot in found.sources]
    rows = [
        (_moment(time), shown_place(s.at), f"{s.weight:.3f}", f"{s.radius:.3g}", f"{s.probability:.2f}")
        for time, s in spots
    ]
    if rows:
        part = f" (first {len(summary.shown)} of {summary.frames:,} frames)" if summary.frames > SHOWN_FRAMES else ""
        table("Recovered sources" + part, ("time", "at", "weight", "within", "probability"), rows)


def _method(summary: RecoverySummary) -> Iterator[str]:
    """How the frames were recovered, and with what result."""
    site, last, frames = summary.site, summary.last, counted(summary.frames, "frame")
    choice = site.estimator()
    if summary.followed:
        judged = "all of them" if summary.lag is None else "those before it"
        judged += f" and {summary.lag} after it" if summary.lag else ""
        yield f"followed through {frames}, each judged from {judged}; {choice.reason}"
    else:
        yield f"recovered with {type(choice.estimator).__name__}: {choice.reason}"
    if site.spec.sources.strongest != 1:
        yield f"a weight of 1 is a source of strength {site.spec.sources.strongest:g}"
    if last is not None and last.counts is not None:
        likely = (f"{k}: {100 * p:.0f} %" for k, p in enumerate(last.counts) if p >= 0.005)
        yield f"number of sources in the last frame: {', '.join(likely)}"
    yield from (f"{number:,} of {frames}: {status}" for status, number in summary.status.items())
    if summary.incomplete:
        yield f"{counted(summary.incomplete, 'frame')} lacked readings of some sensors and used the rest"


def _moment(time: int) -> str:
    """A date if the time can be Unix milliseconds; small numbers, as of a simulation, are seconds."""
    return shown(time) if EARLIEST <= time < LATEST else f"{time / 1000:g} s"


def _values(summary: RecoverySummary, source: FrameSource) -> dict[str, object]:
    site, last = summary.site, summary.last
    sources = [] if last is None else list(zip(last.labels, last.sources, strict=True))
    kept = ("place", "at", "weight", "radius", "probability")
    return {
        "site": site.name,
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
        "set_aside": dict(summary.set_aside),
        "last_counts": None if last is None else last.counts,
        "warnings": summary.warnings,
        "rows": source.rows,
        "rows_left_out": dict(source.problems.counts),
        "last_sources": [{"label": label} | {key: getattr(s, key) for key in kept} for label, s in sources],
        "tracks": [
            {key: getattr(record, key) for key in ("label", "since", "until", "frames")}
            | {"zones": dict(record.zones.most_common()), "last_at": record.last.at, "same": record.same}
            for record in summary.tracks.values()
        ],
    }
