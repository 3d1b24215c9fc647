"""Schedule files: levels of ventilation, heating or light by the hour of the week, and what a wrong level costs."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray, count, numbers, whole_numbers
from cloakwork.errors import InputError
from cloakwork.series.experts import Experts

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_KEYS = ("most", "timezone", "too_little", "too_much", "need", "schedules")
_SPAN = re.compile(r"(?:(mon|tue|wed|thu|fri|sat|sun)(?:-(mon|tue|wed|thu|fri|sat|sun))?)? ?(?:(\d\d?)-(\d\d?))?")
_FORM = "give a span such as 'mon-fri 08-18', 'sat-sun' or '22-06', or 'otherwise'"


@dataclass(frozen=True, eq=False)
class Schedules:
    """Schedules from a file; `settings` has the levels of each, from 0 to 1, for the 168 hours of a week.

    A level above what a count needs costs `too_much` times the difference, one below it `too_little` times.
    """

    settings: Mapping[str, FloatArray]
    need: FloatArray
    too_little: float
    too_much: float
    zone: ZoneInfo

    @property
    def most(self) -> int:
        """The largest count that matters."""
        return len(self.need) - 1

    def experts(self, step: float = 1.0) -> Experts:
        """The experts for counts in steps of `step`."""

        def loss(level: FloatArray, people: FloatArray) -> FloatArray:
            short = np.interp(people, np.arange(len(self.need)), self.need) - level
            return np.maximum(self.too_little * short, -self.too_much * short)

        schedules = {name: levels.tolist() for name, levels in self.settings.items()}
        return Experts.of_schedules(schedules, loss, most=self.most, step=step)

    def contexts(self, times: ArrayLike) -> IntArray:
        """The hour of the week, from Monday 0:00 in the zone of the file, of each time in Unix milliseconds."""
        moments = (datetime.fromtimestamp(time / 1000, self.zone) for time in whole_numbers("times", times).tolist())
        return np.array([24 * moment.weekday() + moment.hour for moment in moments], dtype=np.int64)


def read_schedules(path: Path) -> Schedules:
    """Read a schedule file in TOML; docs/learning.md has its form."""
    try:
        spec = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no file {path}.", path=str(path)) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise InputError(f"{path} cannot be read as TOML: {problem}.", path=str(path)) from None
    try:
        return _schedules(spec)
    except InputError as problem:
        raise InputError(f"{path}: {problem}", path=str(path), **problem.values) from None


def _schedules(spec: Mapping[str, Any]) -> Schedules:
    unknown = [key for key in spec if key not in _KEYS]
    if unknown:
        raise InputError(f"{unknown[0]!r} is not a key: give {', '.join(_KEYS)}.", key=unknown[0])
    if "most" not in spec or not isinstance(spec.get("schedules"), Mapping) or len(spec["schedules"]) < 2:
        raise InputError("give most, the largest count that matters, and at least two [schedules] with their levels.")
    most = count("most", spec["most"])
    need = _levels("need", spec.get("need", (np.arange(most + 1) / most).tolist()))
    if need.shape != (most + 1,):
        raise InputError(f"need: give {most + 1} levels, for counts from 0 to {most}.", key="need")
    costs = _levels("too_little, too_much", [spec.get("too_little", 1.0), spec.get("too_much", 0.5)])
    try:
        zone = ZoneInfo(spec.get("timezone", "UTC"))
    except (OSError, KeyError, ValueError, TypeError, AttributeError):
        raise InputError("timezone: give a name such as Europe/Berlin.", key="timezone") from None
    settings = {name: _week(name, given) for name, given in spec["schedules"].items()}
    return Schedules(settings, need, float(costs[0]), float(costs[1]), zone)


def _week(name: str, given: object) -> FloatArray:
    """The levels of a schedule for each hour of a week; the first span that holds an hour decides."""
    spans = given if isinstance(given, Mapping) else {"otherwise": given}
    week = np.full((7, 24), np.nan)
    for span, level in {key: spans[key] for key in sorted(spans, key="otherwise".__eq__)}.items():
        found = _SPAN.fullmatch(span.strip().lower())
        if span != "otherwise" and (
            found is None or not span.strip() or max(int(found[3] or 0), int(found[4] or 0)) > 24
        ):
            raise InputError(f"schedule {name!r}, {span!r}: {_FORM}.", key=name)
        first, last, start, end = found.groups() if found else (None,) * 4
        days = _circle(_DAYS.index(first or "mon"), _DAYS.index(last or first or "sun") + 1, 7)
        hours = _circle(int(start or 0), int(end or 24), 24)
        part = np.zeros((7, 24), dtype=bool)
        part[np.ix_(days, hours)] = True
        week[part & np.isnan(week)] = _levels(f"schedule {name!r}", [level])[0]
    if np.isnan(week).any():
        raise InputError(f"schedule {name!r} has no level for some hours: give one under 'otherwise'.", key=name)
    return week.ravel()


def _circle(start: int, end: int, period: int) -> list[int]:
    """The places from start to end, around the circle if the end is not after the start."""
    return [place % period for place in range(start, end if end > start else end + period)]


def _levels(name: str, given: object) -> FloatArray:
    levels = numbers(name, given)
    if not ((levels >= 0) & (levels <= 1)).all():
        raise InputError(f"{name}: give numbers from 0 to 1.", key=name)
    return levels
