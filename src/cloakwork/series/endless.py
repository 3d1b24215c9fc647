"""Which filters a stream serves, and which of them without an end in sight."""

import numpy as np

from cloakwork._checks import count
from cloakwork.errors import InputError
from cloakwork.series.causal import SquareRoot, forgets
from cloakwork.series.filters import Filter, Taps, taps_of
from cloakwork.series.strategies import Task

_LONGEST_REACH = 1 << 16  # of a filter without a horizon
_SHORTEST, _LONGEST = 1 << 12, 1 << 17  # values after which an endless stream counts as settled
_DAMPINGS = (1.0, *(1 - 2.0**-k for k in range(12, 3, -1)))


def looking_back(filter: Filter, horizon: int | None) -> Taps:  # noqa: A002 - it is one
    """The taps of a filter that a stream can serve, from the present on; without a horizon, one that forgets."""
    taps = taps_of(filter, _LONGEST_REACH if horizon is None else horizon)
    if taps.first < 0:
        raise InputError(
            f"{filter.name} looks {-taps.first} values ahead: a stream cannot. Publish it at once, at the end, with "
            "publish().",
            ahead=-taps.first,
        )
    if horizon is None and taps.first + len(taps.values) >= _LONGEST_REACH:
        raise InputError(
            f"{filter.name} looks back without end, or nearly so: without a horizon its error would grow with time, or "
            "its memory. Give a horizon, or a filter that forgets, such as Decay(0.99) or WindowSum(168)."
        )
    return Taps(np.concatenate([np.zeros(taps.first), taps.values]), averaging=taps.averaging)


def settled_length(taps: Taps, band: int | None) -> int:
    """A length after which the error of an endless stream changes no more, to plan with."""
    reach = max(len(taps.values), 1 if band is None else count("band", band))
    if reach > _LONGEST_REACH:
        raise InputError(f"band={band}: without a horizon, give up to {_LONGEST_REACH}.", band=band)
    return min(max(1 << (4 * reach - 1).bit_length(), _SHORTEST), _LONGEST)


def causal(filter: Filter, task: Task, band: int | None, horizon: int | None) -> SquareRoot:  # noqa: A002 - it is one
    """The mechanism for a stream; without a horizon, one whose strategy forgets, so that errors stay bounded."""
    if horizon is not None:
        return SquareRoot(band)
    for damping in _DAMPINGS:
        mechanism = SquareRoot(band or task.n // 4, damping)
        strategy = mechanism.strategy(task)
        if np.isfinite(strategy.variances).all() and forgets(strategy.weights):
            return mechanism
    raise InputError(
        f"{filter.name}: errors of this filter would grow, or die out too slowly, in a stream without a horizon. Give "
        "a horizon, or a smaller band."
    )
