"""The trade-off between privacy and use: the quality of following people at many settings of a site."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, replace
from hashlib import sha256
from itertools import product
from multiprocessing import get_context
from typing import Any, Literal

import numpy as np

from cloakwork._checks import FloatArray, count, positive, short_repr
from cloakwork.accuracy import Habits
from cloakwork.errors import CalibrationError, InputError
from cloakwork.parallel import versions
from cloakwork.physics import Nuisance
from cloakwork.privacy import Cloak
from cloakwork.site.installation import Site
from cloakwork.site.tracking_quality import (
    Estimate,
    Followed,
    ZoneNumbers,
    follow_simulated,
    habits_of,
)

EPSILONS = (1.0, 2.0, 4.0, 8.0)
ALPHAS = (1.0, 2.0)  # times the site's own
FRAMES = 360
FEWEST_FRAMES = 24
ALIKE = 1.05  # noise that differs by less shares a simulation
USUAL_NEED = "room 95%"

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Setting:
    """A claim for the site's window, and the sensors that meet it."""

    alpha: float
    epsilon: float
    readings: int
    sensors: int
    resolution: float | None

    def __post_init__(self) -> None:
        for name in ("alpha", "epsilon") if self.resolution is None else ("alpha", "epsilon", "resolution"):
            positive(name, getattr(self, name))
        for name in ("readings", "sensors"):
            count(name, getattr(self, name))


@dataclass(frozen=True)
class Need:
    """A requirement of a map: the least share from 0 to 1, or for `spot` the largest distance.

    >>> Need.parse("room 95%"), Need.parse("spot 0.5 live")
    (Need(figure='room', value=0.95, live=False), Need(figure='spot', value=0.5, live=True))
    """

    figure: Literal["room", "rooms", "count", "spot"]
    value: float
    live: bool = False

    @classmethod
    def parse(cls, text: str) -> "Need":
        """Read a need such as `room 95%`, `rooms 80%`, `count 90% live` or `spot 0.5`."""
        form = r"\s*(room|rooms|count|spot)\s+([0-9]*\.?[0-9]+|[0-9]+\.)\s*(%|m)?(\s+live|\s+settled)?\s*"
        match = re.fullmatch(form, text)
        value = float(match.group(2)) if match else math.nan
        spot = match is not None and match.group(1) == "spot"
        if match is None or not (0 < value < math.inf if spot else 0 < value <= 100) or match.group(3) == "m%"[spot]:
            raise InputError(
                f'{text!r} is not a need: give "room 95%", "rooms 80%" (all of them), "count 90%" or "spot 0.5" (a '
                'distance), each optionally followed by "live"; otherwise it counts one window later.',
                need=text,
            )
        figure: Literal["room", "rooms", "count", "spot"] = match.group(1)  # type: ignore[assignment]
        return cls(figure, value if spot else value / 100, (match.group(4) or "").strip() == "live")

    def met(self, followed: Followed) -> bool:
        """Whether a simulation meets it by its standard error at least."""
        estimate: Estimate = getattr(followed.live if self.live else followed.settled, self.figure)
        if self.figure == "spot":
            return estimate.value + estimate.error <= self.value
        return estimate.value - estimate.error >= self.value


@dataclass(frozen=True, eq=False)
class TradeoffRow:
    """A setting: its `mu` for a window, the noise of its sensors, and how well people are followed.

    `walking` is None where sources do not move.
    """

    setting: Setting
    mu: float
    sigmas: FloatArray
    sitting: Followed
    walking: Followed | None

    __repr__ = short_repr

    @property
    def useless(self) -> bool:
        """Whether the map is no better than always giving the same answer, even one window later."""
        return self.sitting.useless

    @property
    def strength(self) -> float:
        """The strength of the claim: alpha over mu, the standard deviation to which a window may locate a source."""
        return self.setting.alpha / self.mu


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """The settings of a sweep, the strongest claim first, and what their figures count (`zone`: a room, a node).

    >>> Tradeoff((), zone="room", window=600.0, simulations=0, frames=24).recommend("room 95%") is None  # none does
    True
    """

    rows: tuple[TradeoffRow, ...]
    zone: str
    window: float
    simulations: int
    frames: int

    __repr__ = short_repr

    def recommend(self, *needs: str | Need) -> TradeoffRow | None:
        """The strongest claim that meets every need while people sit, by its standard error at least.

        Of settings with the same claim, the one that finds the right room most often. None if no setting does.
        """
        wanted = [Need.parse(need) if isinstance(need, str) else need for need in needs or (USUAL_NEED,)]
        good = [row for row in self.rows if not row.useless and all(need.met(row.sitting) for need in wanted)]
        return max(good, key=lambda row: (round(row.strength, 9), row.sitting.settled.room.value), default=None)

    def warning(self, row: TradeoffRow) -> str:
        """Say in plain words why a setting is useless; empty if it is not."""
        guess = row.sitting.guess
        if not row.useless:
            return ""
        return (
            f"at alpha {row.setting.alpha:g} and epsilon {row.setting.epsilon:g} the map does no better than guessing: "
            f"always to answer {guess.where!r} names the right {self.zone} of {100 * guess.room:.0f} % of people"
        )


def tradeoff(
    site: Site,
    *,
    alpha: Sequence[float] = (),
    epsilon: Sequence[float] = (),
    readings: Sequence[int] = (),
    sensors: Sequence[int] = (),
    resolution: Sequence[float] = (),
    frames: int = FRAMES,
    workers: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> Tradeoff:
    """Simulate people at all combinations of some settings of a site, and follow them from the noisy readings.

    Parameters
    ----------
    alpha, epsilon, readings, sensors, resolution
        What to compare: hidden distances, epsilons and numbers of readings for the site's window, numbers of sensors,
        and steps of the hardware; what is left out is as in the site file. Without any, the site's alpha and its
        double with epsilon 1, 2, 4 and 8, and the site's claim with a fifth of its readings and with half its sensors.
    frames
        Frames of one simulation: more make the errors smaller.
    workers
        Processes that simulate at the same time. With more than one, a script must guard its main code by
        `if __name__ == "__main__":`.
    progress
        Called with (simulations done, simulations in total).

    Notes
    -----
    Only the noise and the time between two readings matter for following people, and the offsets that hide stays, which
    follow from them. Noise is in proportion to alpha sqrt(readings) / mu, so settings with the same noise, to 5 %,
    share one simulation: that with the most noise.

    >>> from cloakwork.site import parse_site
    >>> site = parse_site('''
    ... name = "two-rooms"
    ... sensors = 4
    ... physics = {kind = "floorplan", cell = 0.5, drawing = "...+...", regime = "steady", reach = 1.0}
    ... sources = {kind = "lasting"}
    ... privacy = {epsilon = 2.0, delta = 1e-5, alpha = 0.3}
    ... ''')
    >>> found = tradeoff(site, epsilon=[8.0], frames=24)
    >>> [(row.setting.epsilon, found.warning(row)) for row in found.rows]
    [(8.0, '')]
    """
    if site.not_followed:
        raise InputError(f"{site.name}: sources cannot be followed here, because {site.not_followed}.")
    if site.samples_locally:
        raise InputError(f"{site.name}: there are too many people to simulate. Try some of its rooms.")
    if count("frames", frames) < FEWEST_FRAMES:
        raise InputError(f"frames={frames}: give at least {FEWEST_FRAMES}.", frames=frames)
    count("workers", workers)
    grid = _grid(site, alpha, epsilon, readings, sensors, resolution)
    asked = any(map(len, (alpha, epsilon, readings, sensors, resolution)))
    trials = _trials(_possible(site, grid, frames, seed, asked=asked))
    kinds = (False, True) if habits_of(site, walking=True) else (False,)
    jobs = [replace(plan.job, walking=walking) for plan, *_ in trials for walking in kinds]
    results = _run(jobs, workers, progress)
    rows: list[TradeoffRow] = []
    for number, trial in enumerate(trials):
        sitting, *walks = results[number * len(kinds) : (number + 1) * len(kinds)]
        walking = walks[0] if walks else None
        rows += [TradeoffRow(plan.setting, plan.mu, plan.job.sigmas, sitting, walking) for plan in trial]
    rows.sort(key=lambda row: (-row.strength, row.setting.alpha, row.setting.readings, row.setting.sensors))
    window = site.spec.privacy.window
    return Tradeoff(tuple(rows), ZoneNumbers.of(site).kind, window, len(jobs), frames)


def _possible(site: Site, grid: Sequence[Setting], frames: int, seed: int, *, asked: bool) -> Iterator["_Planned"]:
    """Plan the settings; those that nobody asked for are left out where they rule out the site's claim for stays."""
    own = site.spec.privacy.epsilon, site.spec.privacy.readings_per_window
    for setting in grid:
        changed = _with(site, setting)
        try:
            cloak = changed.cloak()
        except CalibrationError:
            if asked or site.stay is None or (setting.epsilon, setting.readings) == own:
                raise
        else:
            yield _Planned(setting, cloak.profile.mu, Job.of(changed, cloak, frames=frames, seed=seed))


def _grid(site: Site, *stated: Sequence[Any]) -> list[Setting]:
    """All combinations of what is stated; by default claims around the site's, and fewer readings and sensors."""
    privacy = site.spec.privacy
    own = Setting(
        privacy.alpha, privacy.epsilon, privacy.readings_per_window, site.physics.sensors, _coarsest_step(site)
    )
    if any(map(len, stated)):
        choices = (values or [usual] for values, usual in zip(stated, astuple(own), strict=True))
        return list(dict.fromkeys(Setting(*values) for values in product(*choices)))
    epsilons = sorted({*EPSILONS, own.epsilon})
    claims = [replace(own, alpha=factor * own.alpha, epsilon=e) for factor in ALPHAS for e in epsilons]
    fewer = [replace(own, readings=max(1, own.readings // 5))]
    if site.spec.sensors is not None and site.spec.physics.kind != "matrix" and own.sensors > 1:
        fewer.append(replace(own, sensors=own.sensors // 2))
    return list(dict.fromkeys([*claims, *fewer]))


def _coarsest_step(site: Site) -> float | None:
    return None if site.resolutions is None else float(site.resolutions.max())


def _with(site: Site, setting: Setting) -> Site:
    """The site with another setting; the sensors' noise floor stays what it is."""
    if setting.resolution is not None and setting.resolution != _coarsest_step(site):
        privacy = site.spec.privacy.model_copy(update={"resolution": setting.resolution})
        sensors = [sensor.model_copy(update={"resolution": None}) for sensor in site.spec.sensor]
        site = replace(site, spec=site.spec.model_copy(update={"privacy": privacy, "sensor": sensors}))
    spec = site.spec
    claim = {"alpha": setting.alpha, "epsilon": setting.epsilon, "readings_per_window": setting.readings}
    update: dict[str, object] = {"privacy": spec.privacy.model_copy(update=claim)}
    if setting.sensors != site.physics.sensors:
        if spec.sensor or spec.physics.kind == "matrix":
            raise InputError(
                f"sensors={setting.sensors}: {site.name} lists its {site.physics.sensors} sensors. Leave their number "
                "as it is, or state only a number of sensors in the site file, which spreads them evenly.",
                sensors=setting.sensors,
            )
        update["sensors"] = setting.sensors
    return replace(site, spec=spec.model_copy(update=update))


@dataclass(frozen=True, eq=False)
class _Planned:
    """A setting, and the simulation with the noise that meets its claim."""

    setting: Setting
    mu: float
    job: "Job"


def _trials(planned: Iterable[_Planned]) -> list[list[_Planned]]:
    """Settings that share a simulation, which is that of the first, with the most noise."""
    trials: list[list[_Planned]] = []
    for plan in sorted(planned, key=lambda plan: -plan.job.noise):
        for trial in trials:
            if _alike(trial[0], plan):
                trial.append(plan)
                break
        else:
            trials.append([plan])
    return trials


def _alike(plan: _Planned, other: _Planned) -> bool:
    a, b = plan.setting, other.setting
    same = (a.readings, a.sensors, a.resolution) == (b.readings, b.sensors, b.resolution)
    return same and plan.job.noise <= ALIKE * other.job.noise


@dataclass(frozen=True, eq=False)
class Job:
    """One simulation, as it is sent to another process."""

    site: Site
    sigmas: FloatArray
    offsets: Nuisance | None
    frames: int
    seed: int = 0
    walking: bool = False

    @classmethod
    def of(cls, site: Site, cloak: Cloak, *, frames: int, seed: int = 0) -> "Job":
        """A simulation of people who sit most of the time."""
        return cls(site, cloak.sigmas, cloak.offsets, frames, seed)

    @property
    def noise(self) -> float:
        """The noise of a typical sensor."""
        return float(np.exp(np.log(self.sigmas).mean()))

    @property
    def zone(self) -> str:
        """What its figures count: a room, a zone, a node."""
        return ZoneNumbers.of(self.site).kind

    def run(self, progress: Progress | None = None) -> Followed:
        """Simulate; `progress` is called with (frames done, frames in total)."""
        habits = habits_of(self.site, walking=self.walking) or Habits()
        return follow_simulated(
            self.site,
            self.sigmas,
            habits,
            frames=self.frames,
            seed=self.seed,
            offsets=self.offsets,
            progress=progress,
        )

    @property
    def digest(self) -> str:
        """A name that another simulation, or another version, does not have."""
        site = (self.site.digest, self.site.spec.model_dump_json())
        slow = None if self.offsets is None else (self.offsets.deviations.tolist(), self.offsets.over.tolist())
        about = (versions(), site, self.sigmas.tolist(), slow, self.walking, self.frames, self.seed)
        return sha256(repr(about).encode()).hexdigest()


def _run(jobs: Sequence[Job], workers: int, progress: Progress | None) -> list[Followed]:
    """Run the simulations, several at a time if there are several workers."""
    show = progress or (lambda *_: None)
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn")) if workers > 1 else None
    results: list[Followed] = []
    try:
        show(0, len(jobs))
        for result in (pool.map if pool else map)(Job.run, jobs):
            results.append(result)
            show(len(results), len(jobs))
    finally:
        if pool:
            pool.shutdown(cancel_futures=True)
    return results
