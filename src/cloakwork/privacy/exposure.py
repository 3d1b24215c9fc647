"""What an observer who keeps everything learns over a span of time."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloakwork.accuracy import bayes_risk, typical_std
from cloakwork.privacy.claim import Scope
from cloakwork.privacy.distribution import NoiseLaw
from cloakwork.privacy.gaussian import Profile

if TYPE_CHECKING:
    from cloakwork.privacy.cloak import Cloak
    from cloakwork.privacy.flip import Flip

FOUND = 0.999  # once a source is found this often, no longer time is simulated


@dataclass(frozen=True)
class Exposure:
    """What someone learns who keeps the `readings` of each sensor over a span of `time`.

    `epsilon` is for the observer of the guarantee, and `together` for one of all sensors where the guarantee is about
    one; these are for sources that may move in each frame. `stay` is the epsilon of all sensors for a source that stays
    all that time, at the delta for stays; None without one. `best_test_accuracy` is how often the best test between
    two histories is right, from all sensors.

    The others are what the best method reaches against a lone source that stays: it names the right place at most with
    the probability `right_place`, and its mean distance is at least `mean_distance`. `std` is the least standard
    deviation along an axis of an unbiased method at a typical place. They are None where they mean nothing, or take
    too long.
    """

    time: str
    readings: int
    epsilon: float
    best_test_accuracy: float
    together: float | None = None
    stay: float | None = None
    right_place: float | None = None
    mean_distance: float | None = None
    std: float | None = None


def exposures(cloak: "Cloak", spans: Mapping[str, int], *, named: bool = True) -> Iterator[Exposure]:
    """Yield what the readings of each span reveal together; `spans` as for `Guarantee.of`.

    Unless `named`, the chance of naming the right place and the mean distance are left out: these are simulated.
    """
    physics, sigmas, stay = cloak.physics, cloak.claimed_sigmas, cloak.stay
    several = physics.places > 1
    located = several and (physics.explicit or physics.space.places.shape[1] > 0)
    named = named and several and physics.explicit and cloak.noise is NoiseLaw.GAUSSIAN
    right, mean = (0.0, 0.0) if named else (None, None)
    for time, readings in spans.items():
        worth = cloak.stay_worth(readings)
        if right is not None:
            risk = None if right >= FOUND else bayes_risk(physics, sigmas, readings=math.ceil(worth))
            right, mean = (risk.right_place, risk.mean_distance) if risk else (1.0, 0.0)
        within = readings == cloak.readings_per_window
        together = cloak.compose(readings * cloak.observers)
        staying = Profile(0.0) if stay is None else Profile(cloak.stay_mu(readings), cloak.family.doubt)
        yield Exposure(
            time,
            readings,
            epsilon=cloak.epsilon if within else cloak.compose(readings).epsilon(cloak.delta),
            best_test_accuracy=together.best_test_accuracy,
            together=None if cloak.scope is Scope.NETWORK else together.epsilon(cloak.delta),
            stay=None if stay is None else staying.compose(cloak.observers).epsilon(stay.delta),
            right_place=right,
            mean_distance=mean,
            std=typical_std(physics, sigmas / math.sqrt(worth)) if located else None,
        )


def flip_exposures(flip: "Flip", spans: Mapping[str, int]) -> Iterator[Exposure]:
    """Yield what the reports of each span reveal together of one person."""
    for time, readings in spans.items():
        within = readings == flip.readings_per_window
        epsilon = flip.epsilon if within else flip.compose(readings, flip.delta)
        yield Exposure(time, readings, epsilon, flip.best_test_accuracy(readings))
