"""The summary that `cloakwork recover` prints: sources, statuses, goodness of fit, rows left out."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from cloakwork._checks import FloatArray
from cloakwork.cli.moments import shown
from cloakwork.cli.output import as_json, counted, note, say, shown_place, table
from cloakwork.readings import FrameRecovery, Problems
from cloakwork.recovery import DOUBTFUL, Fit, PointSources, Source, Status, joint_p_value
from cloakwork.site import Site

SHOWN_FRAMES = 10
SHOWN_SENSORS = 5
EARLIEST, LATEST = 10**11, 2 * 10**14  # times between these, in milliseconds, are shown as dates


class FrameSource(Protocol):
    """Where frames come from: the number of readings, and the problems of those left out."""

    @property
    def rows(self) -> int: ...

    @property
    def problems(self) -> Problems: ...


@dataclass
class RecoverySummary:
    """Totals over all frames; its size does not grow with their number."""

    frames: int = 0
    incomplete: int = 0
    status: Counter[Status] = field(default_factory=Counter)
    worst_gap: float = 0.0
    doubtful: int = 0
    set_aside: Counter[int] = field(default_factory=Counter)
    misfit: float = 0.0
    degrees: int = 0
    heaviest: float = 0.0
    at_most: int = 0
    last_counts: FloatArray | None = None
    total: FloatArray | None = None
    last: tuple[Source, ...] = ()
    shown: list[FrameRecovery] = field(default_factory=list)

    @property
    def fit_together(self) -> float:
        """The p-value of all frames together."""
        return joint_p_value([Fit(1.0, self.misfit, self.degrees)])

    def add(self, found: FrameRecovery, all_sensors: int) -> None:
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
        self.total = found.shown if self.total is None else self.total + found.shown
        self.last, self.last_counts = found.sources, found.counts
        self.at_most += found.counts is not None and int(found.counts.argmax()) == len(found.counts) - 1
        if len(self.shown) < SHOWN_FRAMES:
            self.shown.append(found)


def report(
    summary: RecoverySummary, source: FrameSource, site: Site, out: Path | None, *, plan: str | None, json: bool
) -> None:
    """Print warnings, then the result as JSON or text; `plan` is the digest of the plan in use."""
    for line in source.problems.shown:
        note(line)
    hidden = source.problems.total - len(source.problems.shown)
    if hidden > 0:
        note(f"... and {counted(hidden, 'more row')} left out")
    for warning in _warnings(summary, site):
        note(f"warning: {warning}")
    if json:
        as_json(_values(summary, source, site) | {"plan": plan})
        return
    _say_sources(summary, site)
    for status, number in summary.status.items():
        say(f"{number:,} of {counted(summary.frames, 'frame')}: {status}")
    if summary.incomplete:
        say(f"{counted(summary.incomplete, 'frame')} lacked readings of some sensors and used the rest")
    if source.problems.total:
        say(f"{source.problems.total:,} of {source.rows:,} rows left out: " + _reasons(source))
    say(f"largest gap {summary.worst_gap:.2g}")
    if out is not None:
        note(f"wrote {out}")


def _say_sources(summary: RecoverySummary, site: Site) -> None:
    rows = [
        (
            _moment(found.time),
            shown_place(spot.at),
            f"{spot.weight:.3f}",
            f"{spot.radius:.3g}",
            f"{spot.probability:.2f}",
        )
        for found in summary.shown
        for spot in found.sources
    ]
    if rows:
        table("Recovered sources" + _first(summary), ("time", "at", "weight", "within", "probability"), rows)
    choice = site.estimator()
    say(f"recovered with {type(choice.estimator).__name__}: {choice.reason}")
    if site.spec.sources.strongest != 1:
        say(f"a weight of 1 is a source of strength {site.spec.sources.strongest:g}")
    if summary.last_counts is not None:
        likely = (f"{k}: {100 * p:.0f} %" for k, p in enumerate(summary.last_counts) if p >= 0.005)
        say(f"number of sources in the last frame: {', '.join(likely)}")


def _moment(time: int) -> str:
    """A date if the time can be Unix milliseconds; small numbers, as of a simulation, stay as they are."""
    return shown(time) if EARLIEST <= time < LATEST else str(time)


def _warnings(summary: RecoverySummary, site: Site) -> list[str]:
    """Signs that the result as a whole is implausible, whatever the single frames say."""
    check = "check the baseline, and that neither the site file nor the plan has changed since the readings were made"
    warnings = []
    most = site.spec.sources.max_count
    if most is not None and summary.heaviest > 1.5 * most:
        warnings.append(f"a frame has sources of {summary.heaviest:.3g} units, but the site allows {most}: {check}")
    misfits = summary.status[Status.BEST_FIT]
    warnings += _doubts(summary, site)
    estimator = site.estimator().estimator
    if isinstance(estimator, PointSources) and 2 * summary.at_most > summary.frames:
        warnings.append(
            f"the most likely number of sources is the largest that the site allows ({estimator.most}) in "
            f"{summary.at_most:,} of {counted(summary.frames, 'frame')}: there may be more, or stronger ones"
        )
    if summary.frames >= 3 and misfits > 0.4 * summary.frames:
        warnings.append(
            f"nothing fits {misfits:,} of {counted(summary.frames, 'frame')}, where one in ten would be usual: {check}"
        )
    return warnings


def _doubts(summary: RecoverySummary, site: Site) -> list[str]:
    """Warnings from the goodness of fit."""
    warnings = []
    if summary.fit_together < DOUBTFUL:
        warnings.append(
            f"the frames together do not fit the model (p = {summary.fit_together:.1g}): the strength or the largest "
            "number of sources, the baseline or the physics of the site file may be off, or the readings were made "
            "with another plan"
        )
    elif summary.doubtful > 3 + 0.02 * summary.frames:
        warnings.append(f"{summary.doubtful:,} of {counted(summary.frames, 'frame')} do not fit the model")
    for sensor, number in summary.set_aside.most_common(SHOWN_SENSORS):
        name = site.sensor_ids[sensor]
        warnings.append(
            f"nothing explains the readings of sensor {name} in {counted(number, 'frame')}; they were set aside"
        )
    return warnings


def _first(summary: RecoverySummary) -> str:
    return f" (first {len(summary.shown)} of {summary.frames:,} frames)" if summary.frames > SHOWN_FRAMES else ""


def _reasons(source: FrameSource) -> str:
    return "; ".join(f"{number:,} {reason}" for reason, number in source.problems.counts.most_common())


def _values(summary: RecoverySummary, source: FrameSource, site: Site) -> dict[str, object]:
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
        "set_aside": {site.sensor_ids[sensor]: number for sensor, number in summary.set_aside.items()},
        "last_counts": None if summary.last_counts is None else summary.last_counts.tolist(),
        "warnings": _warnings(summary, site),
        "rows": source.rows,
        "rows_left_out": dict(source.problems.counts),
        "last_sources": [
            {"place": s.place, "at": s.at, "weight": s.weight, "radius": s.radius, "probability": s.probability}
            for s in summary.last
        ],
    }
