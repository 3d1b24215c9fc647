"""A quick simulation of a site: how often the map names the right room and the right number of people."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from cloakwork.privacy import Cloak
from cloakwork.site.advice import Advice
from cloakwork.site.installation import Site
from cloakwork.site.tracking_quality import ZoneNumbers, follow_simulated

FRAMES = 160
LONGER = 4  # times as many frames, where so few cannot tell whether the map helps
Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class Forecast:
    """How well simulated people are followed, one window later, and what always giving the same answer achieves.

    `room` is the share of people who are found in their room (`zone`: a room, a zone, a node), `count` the share of
    frames with the right number; both have standard errors, since a simulation is short. The map is `useless` where it
    is no better than guessing.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="ignore")  # other versions say more
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

    @property
    def sentence(self) -> str:
        """What to expect of the map."""
        guess = f"always guessing: {self._times(self.usual_room)}, {self._times(self.usual_count)}"
        room, count = self._times(self.room, self.room_error), self._times(self.count, self.count_error)
        right = f"right {self.zone} {room} times, right count {count}"
        return f"{right} ({guess}), in {self.frames:,} simulated frames"

    @property
    def advice(self) -> tuple[Advice, ...]:
        """What helps, where the map is useless."""
        if not self.useless:
            return ()
        problem = (
            f"the map is no better than always guessing {self.usual!r}, which names the right {self.zone} of "
            f"{100 * self.usual_room:.0f} % of people."
        )
        change = "Compare settings: a larger epsilon or smaller alpha, fewer readings per window, or more sensors."
        return (Advice(("privacy", "epsilon"), problem, change),)

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


def forecast(
    site: Site, cloak: Cloak, *, frames: int = FRAMES, progress: Callable[[int, int], None] = lambda _, __: None
) -> Forecast | None:
    """Simulate people at a site; None where they are not followed, or too many to simulate.

    `progress` is called with (frames done, frames in total), which grow where so few frames cannot tell enough.
    """
    if site.not_followed or site.samples_locally:
        return None
    found = follow_simulated(site, cloak.sigmas, frames=frames, offsets=cloak.offsets, progress=progress)
    if found.useless and found.settled.room.value > found.guess.room:
        frames *= LONGER
        found = follow_simulated(site, cloak.sigmas, frames=frames, offsets=cloak.offsets, progress=progress)
    final, guess = found.settled, found.guess
    if not math.isfinite(final.room.value):  # nobody came in so short a time
        return None
    return Forecast(
        frames=frames,
        zone=ZoneNumbers.of(site).kind,
        room=final.room.value,
        count=final.count.value,
        usual=guess.where,
        usual_room=guess.room,
        usual_count=guess.count,
        room_error=_known(final.room.error),
        count_error=_known(final.count.error),
        useless=found.useless,
    )


def _known(error: float) -> float:
    """A standard error; all of the share where too few blocks of frames had anyone to count."""
    return min(error, 1.0) if math.isfinite(error) else 1.0
