"""The trade-off between privacy and use: the quality of following people at many settings of a site."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, replace
from functools import partial
from itertools import product
from multiprocessing import get_context
from typing import Any, Literal

from cloakwork._checks import FloatArray, count, short_repr
from cloakwork.errors import CalibrationError, InputError
from cloakwork.privacy import Cloak
from cloakwork.site.installation import Site
from cloakwork.site.tracking_quality import Estimate, Followed, ZoneNumbers, follow_simulated

EPSILONS = (1.0, 2.0, 4.0, 8.0)
ALPHAS = (1.0, 2.0)  # times the site's own
FRAMES = 360
FEWEST_FRAMES = 24
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


_Trial = tuple[Setting, Site, Cloak]


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
    """A setting: its `mu` for a window, the noise of its sensors, and how well people are followed."""

    setting: Setting
    mu: float
    sigmas: FloatArray
    followed: Followed

    __repr__ = short_repr

    @property
    def useless(self) -> bool:
        """Whether the map is no better than always giving the same answer, even one window later."""
        return self.followed.useless

    @property
    def strength(self) -> float:
        """The strength of the claim: alpha over mu, the standard deviation to which a window may locate a source."""
        return self.setting.alpha / self.mu


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """The settings of a sweep, the strongest claim first, and what their figures count (`zone`: a room, a node).

    >>> Tradeoff((), zone="room", window=600.0, frames=24).recommend("room 95%") is None  # none does
    True
    """

    rows: tuple[TradeoffRow, ...]
    zone: str
    window: float
    frames: int

    __repr__ = short_repr

    def recommend(self, *needs: str | Need) -> TradeoffRow | None:
        """The strongest claim that meets every need, by its standard error at least.

        Of settings with the same claim, the one that finds the right room most often. None if no setting does.
        """
        wanted = [Need.parse(need) if isinstance(need, str) else need for need in needs or (USUAL_NEED,)]
        good = [row for row in self.rows if not row.useless and all(need.met(row.followed) for need in wanted)]
        return max(good, key=lambda row: (round(row.strength, 9), row.followed.settled.room.value), default=None)

    def warning(self, row: TradeoffRow) -> str:
        """Say in plain words why a setting is useless; empty if it is not."""
        guess = row.followed.guess
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
    progress: Progress = lambda _, __: None,
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
    lists = (alpha, epsilon, readings, sensors, resolution)
    trials = list(_possible(site, _grid(site, *lists), asked=any(map(len, lists))))
    progress(0, len(trials))
    rows: list[TradeoffRow] = []
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn")) if workers > 1 else None
    try:
        for row in (pool.map if pool else map)(partial(_simulated, frames=frames, seed=seed), trials):
            rows.append(row)
            progress(len(rows), len(trials))
    finally:
        if pool:
            pool.shutdown(cancel_futures=True)
    rows.sort(key=lambda row: (-row.strength, row.setting.alpha, row.setting.readings, row.setting.sensors))
    return Tradeoff(tuple(rows), ZoneNumbers.of(site).kind, site.window, frames)


def _possible(site: Site, grid: Sequence[Setting], *, asked: bool) -> Iterator[_Trial]:
    """The settings with their cloaks; one that nobody asked for is left out if it rules out the claim for stays."""
    own = site.spec.privacy.epsilon, site.spec.privacy.readings_per_window
    for setting in grid:
        changed = _with(site, setting)
        try:
            cloak = changed.cloak()
        except CalibrationError:
            if asked or site.stay is None or (setting.epsilon, setting.readings) == own:
                raise
        else:
            yield setting, changed, cloak


def _simulated(trial: _Trial, *, frames: int, seed: int) -> TradeoffRow:
    """Simulate people at one setting, in a process of its own or in this one."""
    setting, site, cloak = trial
    followed = follow_simulated(site, cloak.sigmas, frames=frames, seed=seed, offsets=cloak.offsets)
    return TradeoffRow(setting, cloak.profile.mu, cloak.sigmas, followed)


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
    count("readings", setting.readings)
    count("sensors", setting.sensors)
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
