"""A quick simulation of a site: how often the map names the right room and the right number of people."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from cloakwork.errors import CalibrationError, InputError
from cloakwork.privacy import Cloak
from cloakwork.site.advice import Advice
from cloakwork.site.installation import Site
from cloakwork.site.settings_sweep import Job

FRAMES, RETRY_FRAMES = 160, 100
LONGER = 4  # times as many frames, where so few cannot tell whether the map helps
FACTORS = (2, 4)  # by which a guarantee is weakened until the map helps
Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class Forecast:
    """How well simulated people are followed, one window later, and what always giving the same answer achieves.

    `room` is the share of people who are found in their room (`zone`: a room, a zone, a node), `count` the share of
    frames with the right number; both have standard errors, since a simulation is short. `remedy` is the weakest change
    of the site file that makes the map better than guessing, where it is not; `key` is the key to change, and
    `remedy_room` the share in the right room with it. `simulation` tells this simulation from that of another site or
    version.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")
    simulation: str
    frames: int
    zone: str
    room: Share
    count: Share
    usual: str
    usual_room: Share
    usual_count: Share
    room_error: Share = 0.0
    count_error: Share = 0.0
    useless: bool = False
    key: str = ""
    remedy: str = ""
    remedy_room: Share | None = None

    @property
    def sentence(self) -> str:
        """What to expect of the map."""
        guess = f"always guessing: {self._times(self.usual_room)}, {self._times(self.usual_count)}"
        room, count = self._times(self.room, self.room_error), self._times(self.count, self.count_error)
        right = f"right {self.zone} {room} times, right count {count}"
        return f"{right} ({guess}), in {self.frames:,} simulated frames"

    @property
    def advice(self) -> tuple[Advice, ...]:
        """The change that helps, where the map is useless."""
        if not self.useless:
            return ()
        problem = (
            f"the map is no better than always guessing {self.usual!r}, which names the right {self.zone} of "
            f"{100 * self.usual_room:.0f} % of people."
        )
        if self.remedy_room is None:
            return (Advice(("privacy", "epsilon"), problem, "No epsilon or alpha up to four times weaker helps."),)
        change = f"Set {self.remedy}: right {self.zone} {self._times(self.remedy_room)} times."
        change += "" if self.key == "sensors" else " The guarantee is weaker then."
        keys = ("privacy", self.key) if self.key != "sensors" else ("sensors",)
        return (Advice(keys, problem, change),)

    @staticmethod
    def _times(share: float, error: float = 0.0) -> str:
        """A share in words that need no statistics, within two standard errors.

        >>> Forecast._times(0.88), Forecast._times(0.98), Forecast._times(0.91, 0.04)
        ('9 of 10', '98 of 100', '8 to 10 of 10')
        """
        low, high = (round(10 * min(max(share + side * error, 0.0), 1.0)) for side in (-2, 2))
        if low < high:
            return f"{low} to {high} of 10"
        return f"{100 * share:.0f} of 100" if 0.95 <= share < 0.995 else f"{10 * share:.0f} of 10"


Progress = Callable[[float, float], None]


def forecast(
    site: Site, cloak: Cloak, *, known: Forecast | None = None, frames: int = FRAMES, progress: Progress | None = None
) -> Forecast | None:
    """Simulate people at a site; None where they are not followed, or too many to simulate.

    `known` is the forecast of an earlier plan, which is returned if nothing has changed since. `progress` is called
    with (frames done, frames in total); the total grows where a better setting has to be found.
    """
    if site.not_followed or site.samples_locally:
        return None
    job = Job.of(site, cloak, frames=frames)
    if known is not None and known.simulation == job.digest:
        return known
    found = job.run(progress)
    if found.useless and found.settled.room.value > found.guess.room:
        frames *= LONGER
        found = replace(job, frames=frames).run(progress)
    final, guess = found.settled, found.guess
    if not math.isfinite(final.room.value):  # nobody came in so short a time
        return None
    made = Forecast(
        simulation=job.digest,
        frames=frames,
        zone=job.zone,
        room=final.room.value,
        count=final.count.value,
        usual=guess.where,
        usual_room=guess.room,
        usual_count=guess.count,
        room_error=_known(final.room.error),
        count_error=_known(final.count.error),
        useless=found.useless,
    )
    return _with_remedy(made, site, progress) if made.useless else made


def _known(error: float) -> float:
    """A standard error; all of the share where too few blocks of frames had anyone to count."""
    return min(error, 1.0) if math.isfinite(error) else 1.0


def _with_remedy(useless: Forecast, site: Site, progress: Progress | None) -> Forecast:
    """Add the weakest change that makes the map better than guessing, if one does."""
    frames, done = min(useless.frames, RETRY_FRAMES), useless.frames

    def show(k: float, _: float) -> None:
        if progress is not None:
            progress(done + k, done + frames)

    for key, remedy, weaker in _weaker(site):
        try:
            cloak = weaker.cloak()
        except (CalibrationError, InputError):
            continue
        tried = Job.of(weaker, cloak, frames=frames).run(show)
        done += frames
        if not tried.useless:
            return replace(useless, key=key, remedy=remedy, remedy_room=tried.settled.room.value)
    return useless


def _weaker(site: Site) -> Iterator[tuple[str, str, Site]]:
    """Sites with one change each, the weakest first: the key, the change in words, and the site."""
    privacy = site.spec.privacy
    for factor in FACTORS:
        claims: list[tuple[str, Any]] = [("epsilon", factor * privacy.epsilon), ("alpha", privacy.alpha / factor)]
        for key, value in claims:
            changed = privacy.model_copy(update={key: value})
            yield key, f"{key} = {value:g} under [privacy]", _with(site, privacy=changed)
        short = privacy.window / factor**2
        if privacy.readings_per_window >= factor**2:
            fewer = {"window": short, "readings_per_window": privacy.readings_per_window // factor**2}
            words = f'window = "{short:g}s" and readings_per_window = {fewer["readings_per_window"]} under [privacy]'
            yield "window", words, _with(site, privacy=privacy.model_copy(update=fewer))
        if site.spec.sensors is not None:
            number = factor * site.spec.sensors
            yield "sensors", f"sensors = {number}", _with(site, sensors=number)


def _with(site: Site, **update: object) -> Site:
    return Site(site.spec.model_copy(update=update), site.folder, site.source)
